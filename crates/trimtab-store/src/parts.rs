//! The bytes of a request as parts: what precedes the messages, each message with what separates it from the one
//! before, and what follows. Takes a history; gives its parts with holes where blocks stand, and bytes again of both.
//! Never loses a byte: what is not in a block is copied.

use trimtab_core::{History, PartKind};

use crate::{
    codec::{put_number, take_bytes, take_number, take_size},
    spelling::JsonSpelling,
};

/// A piece of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestPiece<B> {
    /// Bytes that stand there.
    Literal(Vec<u8>),
    /// A block's original, or some of its bytes, written as a client writes it.
    Hole { block: B, spelling: JsonSpelling, range: Option<(usize, usize)> },
}

/// Returns where each part of a request ends. The parts follow one another without a gap.
pub(crate) fn part_ends(history: &History) -> Vec<usize> {
    let messages = history.messages();
    let Some(first) = messages.first() else { return vec![history.bytes().len()] };
    let mut ends = vec![first.span.start()];
    ends.extend(messages.iter().map(|entry| entry.span.end()));
    ends.push(history.bytes().len());
    ends
}

/// A place in a request where a block's original, or a part of it, can be put back.
#[derive(Debug, Clone, Copy)]
struct HolePlace {
    start: usize,
    end: usize,
    block: usize,
    text: Option<(usize, usize)>,
}

/// Returns the pieces of the parts that end at `ends[from..to]`, with the numbers of the blocks that they hold.
pub(crate) fn part_pieces(
    history: &History,
    ends: &[usize],
    from: usize,
    to: usize,
) -> Vec<Vec<RequestPiece<usize>>> {
    let mut start = from.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let last = to.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    let places = block_places(history, start, last);
    let mut rest = places.as_slice();
    let mut parts = Vec::new();
    for end in ends.get(from..to).unwrap_or_default() {
        let here = rest.partition_point(|place| place.end <= *end);
        let (inside, behind) = rest.split_at(here);
        parts.push(pieces_between(history, start, *end, inside));
        (start, rest) = (*end, behind);
    }
    parts
}

/// Returns the places of all blocks between two offsets, in the order of the bytes, none of them overlapping.
fn block_places(history: &History, from: usize, to: usize) -> Vec<HolePlace> {
    let mut places = Vec::new();
    for (number, block) in history.blocks().iter().enumerate() {
        let (start, end) = (block.span.start(), block.span.end());
        if start < from || end > to {
            continue;
        }
        let parts = history.parts_of(block);
        if parts.is_empty() || parts.iter().any(|part| part.kind != PartKind::Text) {
            places.push(HolePlace { start, end, block: number, text: None });
            continue;
        }
        // The original of several texts is the texts with a line break between them.
        let mut at = 0;
        for part in parts {
            let length = history.part_text(part).len();
            let (start, end) = (part.span.start(), part.span.end());
            places.push(HolePlace { start, end, block: number, text: Some((at, at + length)) });
            at += length + 1;
        }
    }
    places.sort_by_key(|place| place.start);
    let mut reached = from;
    places.retain(|place| {
        let apart = place.start >= reached && place.end > place.start;
        reached = if apart { place.end } else { reached };
        apart
    });
    places
}

fn pieces_between(
    history: &History,
    start: usize,
    end: usize,
    places: &[HolePlace],
) -> Vec<RequestPiece<usize>> {
    let bytes = history.bytes();
    let mut pieces = Vec::new();
    let mut literal_from = start;
    for place in places {
        let Some(spelling) = block_spelling(history, place) else { continue };
        let before = bytes.get(literal_from..place.start).unwrap_or_default();
        if !before.is_empty() {
            pieces.push(RequestPiece::Literal(before.to_vec()));
        }
        pieces.push(RequestPiece::Hole { block: place.block, spelling, range: place.text });
        literal_from = place.end;
    }
    let rest = bytes.get(literal_from..end).unwrap_or_default();
    if !rest.is_empty() {
        pieces.push(RequestPiece::Literal(rest.to_vec()));
    }
    pieces
}

fn block_spelling(history: &History, place: &HolePlace) -> Option<JsonSpelling> {
    if place.text.is_none() {
        return Some(JsonSpelling::Raw);
    }
    let block = history.blocks().get(place.block)?;
    let part = history.parts_of(block).iter().find(|part| part.span.start() == place.start)?;
    JsonSpelling::find_spelling(&history.part_text(part), part.span.bytes_in(history.bytes()))
}

/// Writes parts, blocks named by number.
pub(crate) fn encode_parts(parts: &[Vec<RequestPiece<u64>>]) -> Vec<u8> {
    let mut out = Vec::new();
    for pieces in parts {
        put_number(&mut out, u64::try_from(pieces.len()).unwrap_or(u64::MAX));
        for piece in pieces {
            match piece {
                RequestPiece::Literal(bytes) => {
                    out.push(LITERAL);
                    put_number(&mut out, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                    out.extend_from_slice(bytes);
                }
                RequestPiece::Hole { block, spelling, range: None } => {
                    out.push(spelling.number());
                    put_number(&mut out, *block);
                }
                RequestPiece::Hole { block, spelling, range: Some((from, to)) } => {
                    out.push(RANGE | spelling.number());
                    put_number(&mut out, *block);
                    put_number(&mut out, u64::try_from(*from).unwrap_or(u64::MAX));
                    put_number(&mut out, u64::try_from(to - from).unwrap_or(u64::MAX));
                }
            }
        }
    }
    out
}

const LITERAL: u8 = 0xff;
const RANGE: u8 = 0x10;

/// Reads what [`encode_parts`] wrote; nothing where the bytes are no such thing.
pub(crate) fn decode_parts(mut rest: &[u8]) -> Option<Vec<Vec<RequestPiece<u64>>>> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let count = take_size(&mut rest)?;
        let mut pieces = Vec::new();
        for _ in 0..count {
            pieces.push(decode_piece(&mut rest)?);
        }
        parts.push(pieces);
    }
    Some(parts)
}

fn decode_piece(rest: &mut &[u8]) -> Option<RequestPiece<u64>> {
    let code = *take_bytes(rest, 1)?.first()?;
    if code == LITERAL {
        let length = take_size(rest)?;
        return Some(RequestPiece::Literal(take_bytes(rest, length)?.to_vec()));
    }
    let spelling = JsonSpelling::of_number(code & !RANGE)?;
    let block = take_number(rest)?;
    if code & RANGE == 0 {
        return Some(RequestPiece::Hole { block, spelling, range: None });
    }
    let from = take_size(rest)?;
    let length = take_size(rest)?;
    Some(RequestPiece::Hole { block, spelling, range: Some((from, from.checked_add(length)?)) })
}

/// Writes the bytes that pieces stand for. `original` gives a block's content.
pub(crate) fn write_pieces<E>(
    pieces: &[RequestPiece<u64>],
    out: &mut Vec<u8>,
    mut original: impl FnMut(u64) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    for piece in pieces {
        match piece {
            RequestPiece::Literal(bytes) => out.extend_from_slice(bytes),
            RequestPiece::Hole { block, spelling, range } => {
                let content = original(*block)?;
                let (from, to) = range.unwrap_or((0, content.len()));
                spelling.write_text(content.get(from..to).unwrap_or_default(), out);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use trimtab_core::{block_original, parse};

    use super::*;

    /// Takes a request apart and puts it together again; gives how many of its bytes stand outside blocks.
    fn check(request: &str) -> usize {
        let history = parse(request.as_bytes().to_vec()).expect("a request");
        let ends = part_ends(&history);
        let named = |piece: RequestPiece<usize>| match piece {
            RequestPiece::Literal(bytes) => RequestPiece::Literal(bytes),
            RequestPiece::Hole { block, spelling, range } => {
                RequestPiece::Hole { block: u64::try_from(block).expect("small"), spelling, range }
            }
        };
        let parts = part_pieces(&history, &ends, 0, ends.len());
        let parts: Vec<Vec<RequestPiece<u64>>> =
            parts.into_iter().map(|part| part.into_iter().map(named).collect()).collect();
        let back = decode_parts(&encode_parts(&parts)).expect("what was written");
        assert_eq!(back, parts);
        let mut bytes = Vec::new();
        for pieces in &back {
            let original = |number: u64| {
                let block = &history.blocks()[usize::try_from(number).expect("small")];
                Ok::<_, ()>(block_original(&history, block).into_owned())
            };
            write_pieces(pieces, &mut bytes, original).expect("all blocks are there");
        }
        assert_eq!(String::from_utf8_lossy(&bytes), request);
        let literal = |piece: &RequestPiece<u64>| match piece {
            RequestPiece::Literal(bytes) => bytes.len(),
            RequestPiece::Hole { .. } => 0,
        };
        back.iter().flatten().map(literal).sum()
    }

    #[test]
    fn a_request_comes_back_byte_for_byte() {
        check(
            r#"{"model":"m","messages":[{"role":"user","content":"Hi"} , {"role":"assistant","content":"Ho"}],"stream":true}"#,
        );
        check(r#"{"messages":[],"system":"s"}"#);
        check(r#"{"input":"one bare string","model":"m"}"#);
        check(r#"[{"role":"user","content":"a bare list"}]"#);
        check(
            r#"{ "contents" : [ {"role":"user","parts":[{"text":"x"},{"text":"y"}]} ] , "tools":[{"a":1}] }"#,
        );
    }

    #[test]
    fn several_texts_in_one_result_come_back_each_in_its_place() {
        check(
            r#"{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a\nb"},{"type":"text","text":"é\u00e9"}]}]}]}"#,
        );
    }

    #[test]
    fn long_texts_stand_in_blocks_and_not_beside_them() {
        let long = "words and more words. ".repeat(100);
        let outside = check(&format!(r#"{{"messages":[{{"role":"user","content":"{long}"}}]}}"#));
        assert!(outside < 60, "{outside} bytes outside");
    }

    #[test]
    fn a_strangely_written_text_is_kept_as_it_stands() {
        check(r#"{"messages":[{"role":"user","content":"a\/b \u00E9 \ud800"}]}"#);
    }

    #[test]
    fn what_is_no_list_of_parts_is_refused() {
        for bytes in [&[1][..], &[1, 0x77], &[1, LITERAL, 9, 1], &[0x80]] {
            assert_eq!(decode_parts(bytes), None, "{bytes:?}");
        }
    }
}
