//! History to request bytes. Takes a history and the edits to put in; gives the request with everything
//! outside the edits copied byte for byte. Never parses and never re-serialises.

use crate::{
    history::History,
    json::{Span, narrow},
};

/// A span of a request and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// The JSON text put in its place.
    pub with: Vec<u8>,
}

/// Writes the request of a history with edits put in.
///
/// Edits may come in any order. Where two overlap, the one that starts first counts.
pub fn write(history: &History, edits: &[Edit]) -> Vec<u8> {
    let bytes = history.bytes();
    let mut order: Vec<&Edit> = edits.iter().collect();
    order.sort_by_key(|edit| edit.span);
    let grown: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let gone: usize = edits.iter().map(|edit| edit.span.len()).sum();
    let mut request = Vec::with_capacity((bytes.len() + grown).saturating_sub(gone));
    let mut at = 0;
    for edit in order {
        let Some(kept) = bytes.get(at..edit.span.start()) else { continue };
        request.extend_from_slice(kept);
        request.extend_from_slice(&edit.with);
        at = edit.span.end();
    }
    request.extend_from_slice(bytes.get(at..).unwrap_or_default());
    request
}

/// Writes the request that holds only the first `messages` messages: what was sent at an earlier point.
pub fn request_of(history: &History, messages: usize) -> Vec<u8> {
    let all = history.messages();
    let (Some(list), Some(last)) = (history.message_list(), all.last()) else {
        return history.bytes().to_vec();
    };
    if messages >= all.len() {
        return history.bytes().to_vec();
    }
    let kept = messages.checked_sub(1).and_then(|index| all.get(index));
    let from = kept.map_or(list.span().start() + 1, |entry| entry.span.end());
    let removed = Span::new(narrow(from), narrow(last.span.end()));
    write(history, &[Edit { span: removed, with: Vec::new() }])
}

/// Takes elements out of a JSON list, each run of them with the commas that go with it.
pub(crate) fn remove_elements(elements: &[(Span, bool)]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = 0;
    while let Some(first) = elements.iter().skip(at).position(|(_, gone)| *gone).map(|found| at + found) {
        let last = elements
            .iter()
            .skip(first)
            .position(|(_, gone)| !*gone)
            .map_or(elements.len(), |found| first + found);
        let start = elements.get(first).map(|(span, _)| span.start());
        let end = last.checked_sub(1).and_then(|last| elements.get(last)).map(|(span, _)| span.end());
        let before = first.checked_sub(1).and_then(|before| elements.get(before)).map(|(span, _)| span.end());
        let after = elements.get(last).map(|(span, _)| span.start());
        // With the comma before the run; at the beginning of the list, with the one after it.
        let (from, to) = match (before, after) {
            (Some(before), _) => (Some(before), end),
            (None, Some(after)) => (start, Some(after)),
            (None, None) => (start, end),
        };
        if let (Some(from), Some(to)) = (from, to) {
            edits.push(Edit { span: Span::new(narrow(from), narrow(to)), with: Vec::new() });
        }
        at = last;
    }
    edits
}
