//! Makes every sentence a model may see instead of content. Takes a text, pieces of it and a [`NoteContext`]; gives the
//! shortened text: the pieces as they stand in the original, short notes where something is missing, and one closing note
//! that says what it was, why it is shorter and how to get it back. Never makes anything longer, never joins lines.

mod clip;
pub(crate) mod ledger;
mod note;
pub(crate) mod prompt;
mod recognize;

pub(crate) use note::{BEGINNING, NO_RESULT, NoteContext, Style, Topic, argument};
#[cfg(test)]
pub(crate) use recognize::is_note;
pub(crate) use recognize::{hash_of, holds_note, is_foreign_placeholder, points_at};

use crate::{
    digest::{About, Container, Focus, Note, Piece, Text, focus},
    json::encode,
};

/// The name of the member that holds the note of a shortened JSON object.
const MEMBER: &str = "[trimtab]";

/// Returns the handle of a text.
#[cfg(test)]
pub(crate) fn handle(text: &str) -> String {
    handle_of(text.as_bytes())
}

/// Returns the name by which `recall` brings an original back: the first 12 hex digits of its BLAKE3.
pub(crate) fn handle_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(12).collect()
}

/// Returns the same handle from the beginning of the hash.
pub(crate) fn handle_of_hash(hash: &[u8; 16]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |half: u8| DIGITS.get(usize::from(half & 15)).copied().unwrap_or('0');
    let mut handle = String::with_capacity(12);
    for byte in hash.iter().take(6) {
        handle.push(digit(byte >> 4));
        handle.push(digit(*byte));
    }
    handle
}

/// Writes a text as its pieces and notes.
pub(crate) fn render(text: &str, pieces: &[Piece], context: &NoteContext<'_>) -> String {
    match (is_json(pieces), focus_of(text, pieces)) {
        (true, Some(found)) => render_json(text, pieces, &found, context),
        (true | false, _) => render_lines(text, pieces, context),
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
    if holds_note(text) || is_foreign_placeholder(text) {
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
        matches!(
            piece,
            Piece::Elements(_)
                | Piece::Inside(_)
                | Piece::Note(Note::Shape { .. } | Note::ElementsOmitted { .. })
        )
    };
    pieces.iter().any(of_json)
}

/// Scans a text only where its pieces are of JSON.
fn focus_of(text: &str, pieces: &[Piece]) -> Option<Focus> {
    if is_json(pieces) { focus(text) } else { None }
}

fn render_lines(text: &str, pieces: &[Piece], context: &NoteContext<'_>) -> String {
    let lines = Text::new(text, About::default());
    let gaps = pieces.iter().filter(|piece| matches!(piece, Piece::Note(Note::Omitted { .. }))).count();
    let mut shown = String::new();
    for piece in pieces {
        match piece {
            Piece::Lines(range) => shown.push_str(lines.raw(range.clone())),
            Piece::Cut { line, head, tail } => shown.push_str(&cut(lines.line(*line), *head, *tail)),
            Piece::Note(note) => shown.push_str(&note::inline(note, gaps).unwrap_or_default()),
            Piece::Elements(_) | Piece::Inside(_) => {}
        }
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    let facts: Vec<&Note> = pieces.iter().filter_map(fact).collect();
    shown.push_str(&note::closing(text, &facts, pieces.iter().any(shows), context));
    shown
}

fn fact(piece: &Piece) -> Option<&Note> {
    match piece {
        Piece::Note(note) => Some(note),
        Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) | Piece::Inside(_) => None,
    }
}

/// Tells whether a piece shows something of the original.
fn shows(piece: &Piece) -> bool {
    match piece {
        Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) | Piece::Inside(_) => true,
        Piece::Note(_) => false,
    }
}

/// Writes a line without its middle, marked at the cut.
fn cut(line: &str, head: usize, tail: usize) -> String {
    let start = line.get(..head).unwrap_or_default();
    let end = line.get(line.len().saturating_sub(tail)..).unwrap_or_default();
    let gone = line.chars().count().saturating_sub(start.chars().count() + end.chars().count());
    format!("{start}{}{end}", note::cut(gone))
}

fn render_json(text: &str, pieces: &[Piece], found: &Focus, context: &NoteContext<'_>) -> String {
    match found {
        Focus::String { span, says } => {
            let inner = pieces.iter().find_map(|piece| match piece {
                Piece::Inside(inner) => Some(inner.as_slice()),
                Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) | Piece::Note(_) => None,
            });
            let said = render(says, inner.unwrap_or_default(), context);
            splice(text, span.start, span.end, &quoted(&said))
        }
        Focus::Rows { container, inside, elements } => {
            let mut parts: Vec<String> = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Elements(range) => {
                        let start = elements.get(range.start).map_or(inside.end, |element| element.start);
                        let end = elements
                            .get(range.end.saturating_sub(1))
                            .map_or(inside.end, |element| element.end);
                        parts.push(text.get(start..end).unwrap_or_default().to_owned());
                    }
                    Piece::Note(note) => parts.extend(note::inline(note, 1).map(|note| quoted(&note))),
                    Piece::Lines(_) | Piece::Cut { .. } | Piece::Inside(_) => {}
                }
            }
            let facts: Vec<&Note> = pieces.iter().filter_map(fact).collect();
            let closing = quoted(&note::closing(text, &facts, pieces.iter().any(shows), context));
            parts.push(match container {
                Container::Array => closing,
                Container::Object => format!("{}:{closing}", quoted(MEMBER)),
            });
            // The blanks of the original stay around what is shown, so that a printed value still reads as one.
            let between = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
            let first = elements.first().map_or(inside.start, |first| first.start);
            let separator = match elements.as_slice() {
                [one, two, ..] => between(one.end, two.start),
                [_] | [] => ",",
            };
            let last = elements.last().map_or(inside.end, |last| last.end);
            let rows =
                [between(inside.start, first), &parts.join(separator), between(last, inside.end)].concat();
            splice(text, inside.start, inside.end, &rows)
        }
    }
}

fn quoted(text: &str) -> String {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    String::from_utf8(json).unwrap_or_default()
}

fn splice(text: &str, start: usize, end: usize, with: &str) -> String {
    [text.get(..start).unwrap_or_default(), with, text.get(end..).unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests;
