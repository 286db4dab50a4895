//! Model names as people write them. Takes any spelling, gives the bare name: lower case, without
//! vendor, region, date or variant, with `-` for every separator. Never says whether a model exists.

/// Returns the bare name of a model: `us.anthropic.claude-opus-4-5-20251101-v1:0` is `claude-opus-4-5`.
pub(crate) fn bare_model_name(model: &str) -> String {
    let name = model.trim().to_ascii_lowercase();
    let name = name.strip_prefix("ft:").unwrap_or(&name);
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.split([':', '@', '[']).next().unwrap_or(name);
    let name = without_date(without_revision(without_vendor(name)));
    name.replace(['.', '_', ' '], "-")
}

/// Drops leading words that end in a dot, as in `us.anthropic.claude`; the dot of `gpt-4.1` stays.
fn without_vendor(name: &str) -> &str {
    match name.split_once('.') {
        Some((vendor, rest))
            if is_word(vendor) && rest.starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            without_vendor(rest)
        }
        Some(_) | None => name,
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Drops a trailing `-v1` or `-latest`.
fn without_revision(name: &str) -> &str {
    ["-v1", "-v2", "-latest"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Drops a trailing `-20250929` or `-2025-04-14`.
fn without_date(name: &str) -> &str {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, last)) = name.rsplit_once('-') else { return name };
    if digits(last, 8) {
        return rest;
    }
    let Some((rest, month)) = rest.rsplit_once('-') else { return name };
    let Some((rest, year)) = rest.rsplit_once('-') else { return name };
    if digits(last, 2) && digits(month, 2) && digits(year, 4) { rest } else { name }
}

#[cfg(test)]
mod tests {
    use super::bare_model_name;

    #[track_caller]
    fn check(bare: &str, spellings: &[&str]) {
        for spelling in spellings {
            assert_eq!(bare_model_name(spelling), bare, "{spelling}");
        }
    }

    #[test]
    fn vendors_regions_dates_and_variants_are_read_past() {
        check(
            "claude-sonnet-4-5",
            &[
                "claude-sonnet-4-5",
                "Claude-Sonnet-4.5",
                "anthropic/claude-sonnet-4.5:thinking",
                "claude-sonnet-4-5@20250929",
                "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
                " openrouter/anthropic/claude-sonnet-4.5 ",
                "claude-sonnet-4-5[1m]",
            ],
        );
        check("gpt-4-1", &["gpt-4.1", "azure/gpt-4.1-2025-04-14", "ft:gpt-4.1:org::id"]);
        check("gemini-2-5-pro", &["models/gemini-2.5-pro", "vertex_ai/gemini-2.5-pro"]);
    }

    #[test]
    fn what_is_no_decoration_stays() {
        check("kimi-k2-thinking", &["kimi-k2-thinking"]);
        check("gpt-4-32k", &["gpt-4-32k"]);
        check("", &["", "/", ":"]);
    }
}
