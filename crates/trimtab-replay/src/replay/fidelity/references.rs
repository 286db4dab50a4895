//! First-use reference recall. Takes what calls say outside the old text of edits; gives how many of the names in it that
//! only results had shown were visible when they were first used. Never counts a name that stands in the tool definitions,
//! the system prompt, the user's words or what the agent said before: these are no first uses, so that names which are
//! everywhere need no separate list.
//!
//! A name is a path, a file's name, an address, an identifier of several words (`snake_case`, `camelCase`), a hash or an
//! error code, of six characters or more.
//!
//! Strict: where an edit or a write puts the name into a file, the agent needed to see what it is, not only that it is. So
//! one of the lines that contained it must be visible, whole; a name in a note or in a list of names does not count.

use std::collections::HashSet;

use trimtab_core::{facts::ToolKind, json::widen};

use super::{
    Fidelity,
    input::CallInput,
    normal::{hash, words_in},
    texts::NamePlaces,
    uses::{SegmentUses, TextUse, UsePlace},
    visible::VisibleBlocks,
};

/// The shortest name, in bytes.
const SHORTEST: usize = 6;

/// The shortest hash, in hex digits: git's abbreviation.
const SHORTEST_HASH: usize = 7;

/// Ends of file names. Other words after a dot are members of something.
const EXTENSIONS: &[&str] = &[
    "astro", "bash", "bat", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "css", "csv", "cue", "dart",
    "diff", "env", "ex", "exs", "fish", "gif", "go", "gradle", "gz", "h", "hpp", "hs", "html", "ini",
    "ipynb", "java", "jpeg", "jpg", "js", "json", "json5", "jsonl", "jsx", "kt", "lock", "log", "lua", "md",
    "mdx", "mjs", "mod", "nix", "patch", "pdf", "php", "pl", "png", "properties", "proto", "ps1", "py",
    "pyi", "rb", "rs", "rst", "scala", "scss", "sh", "snap", "sql", "sum", "svelte", "svg", "swift", "tar",
    "tf", "toml", "ts", "tsv", "tsx", "txt", "vue", "wasm", "xml", "yaml", "yml", "zig", "zip", "zsh",
];

/// The names that calls have used.
#[derive(Default)]
pub(super) struct UsedNames {
    used: HashSet<String>,
}

impl UsedNames {
    /// Notes the names of a call.
    pub(super) fn add_call(
        &mut self,
        uses: &mut SegmentUses,
        place: UsePlace,
        said: &CallInput,
        tool: Option<ToolKind>,
    ) {
        let in_edit = matches!(tool, Some(ToolKind::Edit | ToolKind::Write));
        for name in said.others.iter().flat_map(|text| names_in(text)) {
            if self.used.contains(name) {
                continue;
            }
            self.used.insert(name.to_owned());
            match uses.texts.places_of_name(name, widen(place.call.0)) {
                NamePlaces::Nowhere => uses.guessed += 1,
                NamePlaces::OnlyIn(results) => {
                    uses.references.extend(place.make_use(name, results).map(|found| (found, in_edit)));
                }
                NamePlaces::Elsewhere => {}
            }
        }
    }
}

/// Counts the names that were visible.
pub(super) fn judge_references(uses: &SegmentUses, visible: &VisibleBlocks<'_>, fidelity: &mut Fidelity) {
    for (name, in_edit) in &uses.references {
        let whole = name.has_whole_holder(visible);
        let named = whole || stands_in_text(name, visible);
        let strictly = whole || (named && (!in_edit || has_line(name, uses, visible)));
        fidelity.references.add_use(named);
        fidelity.strict_references.add_use(strictly);
        if !strictly {
            let metric = if named { "strict_references" } else { "references" };
            fidelity.misses.extend(name.miss_in(metric, visible));
        }
    }
}

fn stands_in_text(name: &TextUse, visible: &VisibleBlocks<'_>) -> bool {
    let words: Vec<u64> = words_in(&name.text).map(|word| hash(word.text)).collect();
    let mut texts = visible.shown_texts(name.request);
    texts.any(|read| {
        words.iter().all(|word| read.words.contains(word)) && read.normal.contains_name(&name.text)
    })
}

/// Tells whether a line that contained the name stands in a text that is shown in place of a block.
fn has_line(name: &TextUse, uses: &SegmentUses, visible: &VisibleBlocks<'_>) -> bool {
    let normals = name.holders.iter().filter_map(|block| uses.texts.text_of(*block));
    let lines: HashSet<&str> = normals.flat_map(|normal| normal.lines_naming(&name.text)).collect();
    let mut texts = visible.shown_texts(name.request);
    texts.any(|read| read.normal.lines_naming(&name.text).any(|line| lines.contains(line)))
}

/// Finds the names in a text, in order.
fn names_in(text: &str) -> Vec<&str> {
    let in_name = |letter: char| letter.is_alphanumeric() || "_./-@+~:%?&=#".contains(letter);
    let mut found = Vec::new();
    for run in text.split(|letter| !in_name(letter)).filter(|run| run.len() >= SHORTEST) {
        if let Some(address) = web_address(run) {
            found.push(address);
            continue;
        }
        for piece in run.split([':', '%', '?', '&', '=', '#']) {
            add_names(piece, &mut found);
        }
    }
    found
}

fn web_address(run: &str) -> Option<&str> {
    let scheme = run.find("https://").or_else(|| run.find("http://"))?;
    let address = run.get(scheme..)?.trim_end_matches(['.', ':', '?', '&', '=', '#', '-', '/']);
    (address.len() > "https://".len()).then_some(address)
}

fn add_names<'a>(piece: &'a str, found: &mut Vec<&'a str>) {
    let piece = piece.trim_matches(['.', '-', '+', '@']);
    let path = piece.strip_prefix("//").unwrap_or(piece).trim_end_matches('/');
    if path.len() >= SHORTEST && path.trim_matches('/').contains('/') && path.contains(char::is_alphabetic) {
        found.push(path);
        return;
    }
    let piece = path.trim_matches('/');
    let extension = piece.rsplit_once('.').map(|(_, extension)| extension);
    if piece.len() >= SHORTEST && extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
        found.push(piece);
        return;
    }
    let words = piece.split(['.', '/', '-', '@', '+', '~']).map(|word| word.trim_matches('_'));
    found.extend(words.filter(|word| word.len() >= SHORTEST && is_telling(word)));
}

/// Tells an identifier of several words, a hash or an error code from a plain word.
fn is_telling(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_camel = bytes.windows(2).any(
        |pair| matches!(pair, [first, second] if first.is_ascii_lowercase() && second.is_ascii_uppercase()),
    );
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let has_letter = bytes.iter().any(u8::is_ascii_alphabetic);
    let is_hash =
        bytes.len() >= SHORTEST_HASH && has_digit && has_letter && bytes.iter().all(u8::is_ascii_hexdigit);
    let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let digits = bytes.iter().skip(letters).take_while(|byte| byte.is_ascii_digit()).count();
    let is_code = letters > 0 && digits >= 3 && letters + digits == bytes.len();
    (word.contains('_') && has_letter) || is_camel || is_hash || is_code
}

#[cfg(test)]
mod tests {
    use super::names_in;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(names_in(text), expected, "{text}");
    }

    #[test]
    fn names_are_told_from_words() {
        check("Read src/main.rs, please", &["src/main.rs"]);
        check("cat ./README.md --no-color", &["README.md"]);
        check("let user_name = getUser(value.is_some());", &["user_name", "getUser", "is_some"]);
        check("see https://example.com/a?b=1.", &["https://example.com/a?b=1"]);
        check("git show 1a2b3c4 and 1234567", &["1a2b3c4"]);
        check("error TS2345 or E12", &["TS2345"]);
        check("a/b.rs:12: os.path.join(x)", &["a/b.rs"]);
        check("/etc/hosts x86_64 __init__", &["/etc/hosts", "x86_64"]);
        check("plain words only, self.value", &[]);
    }
}
