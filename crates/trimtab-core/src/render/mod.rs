//! Makes every sentence a model may see instead of content. Takes a text, pieces of it and a [`NoteContext`]; gives the
//! shortened text: the pieces as they stand in the original, short notes where something is missing, and one closing note
//! that says what it was, why it is shorter and how to get it back. Never makes anything longer, never joins lines.

mod clip;
pub(crate) mod ledger;
mod note;
pub(crate) mod prompt;
mod series;
mod wrapped;

pub use note::RecallHint;
#[cfg(test)]
pub(crate) use note::USUAL_RECALL;
pub(crate) use note::{NoteContext, ShownCopy, ShownFile, argument_note, argument_of_series};

use crate::{
    digest::{Container, DigestText, JsonRows, Note, Piece, TextContext, json_rows},
    history::{WrappedResult, readable_text},
    json::encode,
    notes::{NOTE_MEMBER, holds_note, is_foreign_placeholder},
};

/// Writes a text as its pieces and notes. The pieces are of what the text says (`history::readable_text`): where a client wrapped that
/// in JSON, pieces and notes are written into the JSON's strings.
pub(crate) fn render(text: &str, pieces: &[Piece], context: &NoteContext<'_>) -> String {
    if let Some(wrapped) = WrappedResult::find_leaves(text) {
        return wrapped::render_leaves(text, &wrapped, pieces, context);
    }
    let rows = if is_json(pieces) { json_rows(text) } else { None };
    match rows {
        Some(rows) => render_rows(text, pieces, &rows, context),
        None => render_lines(text, pieces, context),
    }
}

/// Writes a text as its pieces and notes; nothing where that would not be smaller in bytes and in tokens, or where the text is
/// already shortened, by us or by another tool.
pub(crate) fn shorten(
    text: &str,
    pieces: &[Piece],
    context: &NoteContext<'_>,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    if holds_note(text) || is_foreign_placeholder(&readable_text(text)) {
        return None;
    }
    let rendered = render(text, pieces, context);
    if rendered.len() >= text.len() {
        return None;
    }
    let before = context.tokens.unwrap_or_else(|| count(text));
    (count(&rendered) < before).then_some(rendered)
}

fn is_json(pieces: &[Piece]) -> bool {
    let of_json = |piece: &Piece| {
        matches!(piece, Piece::Elements(_) | Piece::Note(Note::Shape { .. } | Note::ElementsOmitted { .. }))
    };
    pieces.iter().any(of_json)
}

fn render_lines(text: &str, pieces: &[Piece], context: &NoteContext<'_>) -> String {
    let mut shown = write_lines(text, pieces, count_gaps(pieces));
    shown.push_str(&closing_note(text, pieces, context));
    shown
}

/// Counts the gaps that are named: many are named shortly.
fn count_gaps(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| matches!(piece, Piece::Note(Note::Omitted { .. }))).count()
}

/// Writes lines of a text, and notes where some are missing.
fn write_lines(text: &str, pieces: &[Piece], gaps: usize) -> String {
    let lines = DigestText::new(text, TextContext::default());
    let mut shown = String::new();
    for piece in pieces {
        match piece {
            Piece::Lines(range) => shown.push_str(lines.raw_lines(range.clone())),
            Piece::Cut { line, head, tail } => shown.push_str(&cut_line(lines.line(*line), *head, *tail)),
            Piece::Note(note) => shown.push_str(&note::inline_note(note, gaps).unwrap_or_default()),
            Piece::Elements(_) => {}
        }
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

/// Writes the closing note.
fn closing_note(text: &str, pieces: &[Piece], context: &NoteContext<'_>) -> String {
    let facts: Vec<&Note> = pieces.iter().filter_map(fact_note).collect();
    note::closing_note(text, &facts, pieces.iter().any(shows), context)
}

fn fact_note(piece: &Piece) -> Option<&Note> {
    match piece {
        Piece::Note(note) => Some(note),
        Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) => None,
    }
}

/// Tells whether a piece shows something of the original.
fn shows(piece: &Piece) -> bool {
    match piece {
        Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) => true,
        Piece::Note(_) => false,
    }
}

/// Writes a line without its middle, marked at the cut.
fn cut_line(line: &str, head: usize, tail: usize) -> String {
    let start = line.get(..head).unwrap_or_default();
    let end = line.get(line.len().saturating_sub(tail)..).unwrap_or_default();
    let gone = line.chars().count().saturating_sub(start.chars().count() + end.chars().count());
    format!("{start}{}{end}", note::cut_mark(gone))
}

fn render_rows(text: &str, pieces: &[Piece], rows: &JsonRows, context: &NoteContext<'_>) -> String {
    let JsonRows { container, inside, elements } = rows;
    let mut parts: Vec<String> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Elements(range) => {
                let start = elements.get(range.start).map_or(inside.end, |element| element.start);
                let last = elements.get(range.end.saturating_sub(1));
                let end = last.map_or(inside.end, |element| element.end);
                parts.push(text.get(start..end).unwrap_or_default().to_owned());
            }
            Piece::Note(note) => parts.extend(note::inline_note(note, 1).map(|note| quote_json(&note))),
            Piece::Lines(_) | Piece::Cut { .. } => {}
        }
    }
    let closing = quote_json(&closing_note(text, pieces, context));
    parts.push(match container {
        Container::Array => closing,
        Container::Object => format!("{}:{closing}", quote_json(NOTE_MEMBER)),
    });
    // The blanks of the original stay around what is shown, so that a printed value still reads as one.
    let between = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let first = elements.first().map_or(inside.start, |first| first.start);
    let separator = match elements.as_slice() {
        [one, two, ..] => between(one.end, two.start),
        [_] | [] => ",",
    };
    let last = elements.last().map_or(inside.end, |last| last.end);
    let rows = [between(inside.start, first), &parts.join(separator), between(last, inside.end)].concat();
    [between(0, inside.start), &rows, between(inside.end, text.len())].concat()
}

fn quote_json(text: &str) -> String {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    String::from_utf8(json).unwrap_or_default()
}

#[cfg(test)]
mod tests;
