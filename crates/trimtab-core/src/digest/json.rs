//! JSON data. Keeps the first rows of the array or object that makes most of the text, rows that report an error, and its
//! shape. Loses the other rows. Stays valid JSON. A text that a client only wrapped in JSON is read without it
//! (`history::WrappedResult`) and never comes here.

use std::ops::Range;

use super::{Container, Digest, DigestText, Note, Piece, errors, other};
use crate::{
    history::breaks_strings,
    json::{Span, Value, decode, scan},
};

/// How many rows are shown, and how many bytes of them at most.
const ROWS: usize = 3;
const ROWS_BYTES: usize = 1_500;
/// How many rows that report an error are shown, and how many bytes of each at most.
const ERROR_ROWS: usize = 5;
const ERROR_ROW_BYTES: usize = 1_000;
/// How many names of members are listed.
const KEYS: usize = 8;
/// A value that makes more than this share of its container, in percent, is looked into.
const MOST_OF_IT: usize = 60;

pub(super) const DIGEST: Digest = Digest {
    name: "json",
    about: "Keeps the first 3 rows, rows that report an error, and the shape; stays valid JSON.",
    shorten,
};

/// The array or object that makes most of a JSON text, with several elements or members.
#[derive(Debug)]
pub(crate) struct JsonRows {
    /// Which of both.
    pub(crate) container: Container,
    /// The bytes between its brackets.
    pub(crate) inside: Range<usize>,
    /// The bytes of each element or member.
    pub(crate) elements: Vec<Range<usize>>,
}

/// Finds the array or object that makes most of a JSON text; nothing if the text is not JSON or has none.
pub(crate) fn json_rows(text: &str) -> Option<JsonRows> {
    let tape = scan(text.as_bytes()).ok()?;
    let mut value = tape.root(text.as_bytes())?;
    loop {
        let largest =
            child_ranges(value).into_iter().map(|(_, child)| child).max_by_key(|child| child.span().len())?;
        let dominates = largest.span().len() * 100 > value.span().len() * MOST_OF_IT;
        if !(dominates && (largest.is_array() || largest.is_object())) {
            return largest_container(value);
        }
        value = largest;
    }
}

/// Returns the bytes of each element or member, with its value.
fn child_ranges(value: Value<'_>) -> Vec<(Range<usize>, Value<'_>)> {
    let members = value.members().map(|(key, value)| (Span::start(key.span())..value.span().end(), value));
    members.chain(value.items().map(|value| (value.span().range(), value))).collect()
}

fn largest_container(value: Value<'_>) -> Option<JsonRows> {
    let elements: Vec<Range<usize>> = child_ranges(value).into_iter().map(|(range, _)| range).collect();
    (elements.len() >= 2).then_some(())?;
    let container = if value.is_array() { Container::Array } else { Container::Object };
    Some(JsonRows { container, inside: value.span().start() + 1..value.span().end() - 1, elements })
}

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let json = scan(text.whole().as_bytes()).is_ok()
        && (!breaks_strings(text.whole()) || errors::surviving_errors(text).is_empty());
    if !json {
        // Not JSON, or a program's report with something like JSON around it: a text like others.
        return other::shorten(text);
    }
    let JsonRows { container, elements, .. } = json_rows(text.whole())?;
    show_rows(text.whole(), container, &elements)
}

fn show_rows(text: &str, container: Container, elements: &[Range<usize>]) -> Option<Vec<Piece>> {
    let mut left = ROWS_BYTES;
    let mut first = 0;
    for element in elements.iter().take(ROWS) {
        let Some(less) = left.checked_sub(element.len()) else { break };
        (left, first) = (less, first + 1);
    }
    let reports =
        |index: &usize| elements.get(*index).is_some_and(|element| reports_error(text, element.clone()));
    let errors: Vec<usize> = match container {
        Container::Array => (first..elements.len()).filter(reports).take(ERROR_ROWS).collect(),
        Container::Object => Vec::new(),
    };
    let mut pieces = Vec::new();
    let mut at = 0;
    for range in std::iter::once(0..first).chain(errors.iter().map(|&index| index..index + 1)) {
        push_gap(&mut pieces, at..range.start, elements.len(), container);
        at = range.end;
        if !range.is_empty() {
            pieces.push(Piece::Elements(range));
        }
    }
    let shown = first + errors.len();
    (shown < elements.len()).then_some(())?;
    push_gap(&mut pieces, at..elements.len(), elements.len(), container);
    pieces.push(Piece::Note(Note::Shape {
        container,
        elements: elements.len(),
        shown,
        keys: element_keys(text, container, elements),
    }));
    Some(pieces)
}

/// Names the elements left out between others; those of an object are counted in the closing note.
fn push_gap(pieces: &mut Vec<Piece>, gap: Range<usize>, of: usize, container: Container) {
    if !gap.is_empty() && container == Container::Array && gap.end < of {
        pieces.push(Piece::Note(Note::ElementsOmitted { first: gap.start + 1, last: gap.end, of }));
    }
}

/// Tells a row that says of itself that something went wrong.
fn reports_error(text: &str, element: Range<usize>) -> bool {
    let Some(row) = text.get(element).filter(|row| row.starts_with('{') && row.len() <= ERROR_ROW_BYTES)
    else {
        return false;
    };
    let Ok(tape) = scan(row.as_bytes()) else { return false };
    let Some(root) = tape.root(row.as_bytes()) else { return false };
    root.members().any(|(key, value)| {
        let key = key.string().unwrap_or_default();
        match key.as_ref() {
            "error" | "errors" | "exception" => {
                !matches!(value.raw(), b"null" | b"false" | b"0" | b"\"\"" | b"[]" | b"{}")
            }
            "level" | "severity" | "status" | "outcome" | "conclusion" | "result" => {
                value.string().is_some_and(|word| {
                    matches!(
                        word.to_ascii_lowercase().as_str(),
                        "error" | "fatal" | "failed" | "failure" | "critical" | "fail"
                    )
                })
            }
            _ => false,
        }
    })
}

fn element_keys(text: &str, container: Container, elements: &[Range<usize>]) -> Vec<String> {
    let first = elements.first().and_then(|first| text.get(first.clone())).unwrap_or_default();
    match container {
        Container::Object => {
            elements.iter().take(KEYS).filter_map(|member| key_of(text.get(member.clone())?)).collect()
        }
        Container::Array => {
            let Ok(tape) = scan(first.as_bytes()) else { return Vec::new() };
            let Some(root) = tape.root(first.as_bytes()) else { return Vec::new() };
            root.members().take(KEYS).filter_map(|(key, _)| Some(key.string()?.into_owned())).collect()
        }
    }
}

/// Returns the name of a member that begins with it.
fn key_of(member: &str) -> Option<String> {
    let (tape, _) = crate::json::scan_first(member.as_bytes()).ok()?;
    let key = tape.root(member.as_bytes())?;
    key.is_string().then(|| decode(key.raw().get(1..key.raw().len() - 1).unwrap_or_default()).into_owned())
}
