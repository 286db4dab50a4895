//! A TOML text and the places in it. Takes the text with the name of its file; gives lines for faults, and the known word
//! nearest to one that is not. Never decides what a key means.

use std::ops::Range;

use toml::de::DeValue;

use super::PolicyError;

/// A TOML text with the name under which its faults are reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct TomlSource<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl TomlSource<'_> {
    /// Returns the line of an offset, counted from 1.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        memchr::memchr_iter(b'\n', before).count() + 1
    }

    /// Makes the sentence about something wrong at a place.
    pub(super) fn fault_at(&self, at: &Range<usize>, what: String) -> PolicyError {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        PolicyError::At { file: self.file.to_owned(), line: self.line_of(at.start), column, what }
    }

    /// Says in our words what the TOML reader refused.
    pub(super) fn toml_fault(&self, fault: &toml::de::Error) -> PolicyError {
        let at = fault.span().unwrap_or_default();
        self.fault_at(&at, plain_fault(fault.message()))
    }
}

/// Names the nearest known key where the reader met one it does not know: its own list is long.
fn plain_fault(message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    if message == "invalid type: map, expected a sequence" {
        return "this is a list: write [[rule]] or [[step]], with two brackets".to_owned();
    }
    let Some(rest) = message.strip_prefix("unknown field `") else { return message };
    let mut names = rest.split('`');
    let Some(unknown) = names.next() else { return message };
    let known: Vec<&str> = names.skip(1).step_by(2).collect();
    unknown_key(unknown, &known)
}

/// Says that a key is not known, with the nearest one that is.
pub(super) fn unknown_key(unknown: &str, known: &[&str]) -> String {
    match nearest_word(unknown, known) {
        Some(near) => format!("there is no key `{unknown}`; did you mean `{near}`?"),
        None => format!("there is no key `{unknown}`; there are: {}", known.join(", ")),
    }
}

/// Returns the known word that is nearest to one, where any is near.
pub(super) fn nearest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = |name: &str| strsim::levenshtein(&word.to_lowercase(), &name.to_lowercase());
    let near = known.iter().map(|name| (far(name), *name)).min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, name)| *distance * 2 <= name.len().max(word.len())).map(|(_, name)| name)
}

/// Returns a plain value as its words; a text is given unchanged.
pub(super) fn plain_value(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => format!("a {}", value.type_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_and_a_far_one_is_not() {
        assert_eq!(nearest_word("tol", &["tool", "path"]), Some("tool"));
        assert_eq!(nearest_word("prune_protct", &["prune_minimum", "prune_protect"]), Some("prune_protect"));
        assert_eq!(nearest_word("xyz", &["tool", "path"]), None);
    }

    #[test]
    fn the_readers_list_becomes_the_one_that_was_meant() {
        let message = "unknown field `wen`, expected one of `when`, `only_if`, `select`";
        assert_eq!(plain_fault(message), "there is no key `wen`; did you mean `when`?");
        assert_eq!(plain_fault("invalid string\nexpected `\"`"), "invalid string expected `\"`");
    }
}
