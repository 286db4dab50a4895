//! What the fuzzing targets of `crates/trimtab-fuzz` see of the inside: the scanner's nodes and the reader of notes. Only
//! built with `--cfg fuzzing`.

use crate::{
    json::{self, JsonError, Span},
    notes,
};

/// Scans a text that holds exactly one JSON value; gives where every value and key is, in the order of the text.
///
/// # Errors
/// Says what was expected where.
pub fn scan_spans(text: &[u8]) -> Result<Vec<Span>, JsonError> {
    let tape = json::scan(text)?;
    Ok((0..).map_while(|index| tape.value(text, index)).map(json::Value::span).collect())
}

/// Decodes the contents of a JSON string.
pub fn decode_string(contents: &[u8]) -> String {
    json::decode(contents).into_owned()
}

/// Encodes a text as a JSON string with its quotes.
pub fn encode_string(text: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    json::encode(text, &mut encoded);
    encoded
}

/// Tells whether a text was shortened by us.
pub fn holds_note(text: &str) -> bool {
    notes::holds_note(text)
}

/// Reads all that a text may say as a note.
pub fn read_notes(text: &str) {
    let _ = (notes::holds_note(text), notes::file_in_note(text), notes::points_at(text));
    let _ = (notes::is_foreign_placeholder(text), notes::handle_in_clause(text), notes::hash_of_handle(text));
}
