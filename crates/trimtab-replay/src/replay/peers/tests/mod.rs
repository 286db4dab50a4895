//! Tiny sessions drawn as text, and what each request of them shows drawn as text. Takes one line per message; gives one
//! letter per block. All tests of peers and oracles go through `check` or `check_text`.

mod budgets;
mod laws;
mod results;

use serde_json::{Value, json};
use trimtab_core::{
    BlockId, BlockKind, Format, Millis, Role, Tokens,
    count::{Counter, Tokenizer},
    prices::find_model,
    wire,
};

use crate::{
    recording::{Recording, Segment},
    replay::{PeerCase, ResultNeed, ShownBlock, Track, Views, VisibleRequest, peers::find_rival},
};

/// Makes a segment of a session drawn line by line: `s` the system, `u` the user, `a` what the model says, `c TOOL FILE` its
/// calls (several with ` + `), `r` their results, `fail` a result that the protocol calls failed, `wait SECONDS` a pause before
/// the next request. In texts `#8` is 8 characters, `lines 3` is 3 lines, and ` &image` adds an image.
pub(in crate::replay) fn segment(session: &[&str]) -> Segment {
    let mut messages: Vec<Value> = Vec::new();
    let (mut system, mut ids, mut open) = (None, 0, Vec::new());
    let (mut now, mut times) = (0, Vec::new());
    for line in session {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "s" => system = Some(text(rest)),
            "u" => messages.push(json!({"role": "user", "content": text(rest)})),
            "a" => messages.push(json!({"role": "assistant", "content": text(rest)})),
            "c" => {
                let calls = rest.split(" + ").map(|call| {
                    ids += 1;
                    open.push(ids);
                    let (name, file) = call.split_once(' ').unwrap_or((call, "x"));
                    let input = match name {
                        "Edit" => json!({"file_path": file, "old_string": "old", "new_string": "new"}),
                        _ => json!({"file_path": file}),
                    };
                    json!({"type": "tool_use", "id": format!("call_{ids}"), "name": name, "input": input})
                });
                let calls: Vec<Value> = calls.collect();
                messages.push(json!({"role": "assistant", "content": calls}));
            }
            "r" | "fail" => {
                let results = rest.split(" + ").zip(open.drain(..)).map(|(said, id)| {
                    json!({"type": "tool_result", "tool_use_id": format!("call_{id}"), "content": content(said),
                        "is_error": kind == "fail"})
                });
                let results: Vec<Value> = results.collect();
                messages.push(json!({"role": "user", "content": results}));
            }
            "wait" => now += rest.parse::<i64>().expect("seconds") * 1000,
            _ => panic!("a line begins with s, u, a, c, r, fail or wait: {line}"),
        }
        if matches!(kind, "a" | "c") {
            times.push(now);
        }
    }
    let mut request = json!({"model": "claude-opus-5", "max_tokens": 100, "messages": messages});
    if let Some(system) = system {
        request["system"] = json!(system);
    }
    let history = wire::parse_as(request.to_string().into_bytes(), Format::Anthropic).expect("a request");
    let mut segment = Recording::of_request(history).segments.remove(0);
    for (number, point) in segment.points.iter_mut().enumerate() {
        point.at = Some(Millis(times.get(number).copied().unwrap_or(now)));
    }
    segment
}

fn content(said: &str) -> Value {
    let Some(said) = said.strip_suffix(" &image") else { return json!(text(said)) };
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    json!([{"type": "text", "text": text(said)}, {"type": "image", "source": source}])
}

fn text(said: &str) -> String {
    if let Some(count) = said.strip_prefix('#') {
        return "x".repeat(count.parse().expect("a number of characters"));
    }
    match said.strip_prefix("lines ") {
        Some(count) => {
            let count: usize = count.parse().expect("a number of lines");
            (0..count).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n")
        }
        None => said.to_owned(),
    }
}

/// Returns `count` exchanges of a read whose result has so many characters.
pub(in crate::replay) fn reads(count: usize, characters: usize) -> Vec<String> {
    (0..count).flat_map(|number| [format!("c Read {number}.rs"), format!("r #{characters}")]).collect()
}

/// The room in which the oracles that keep a budget are tried: the sessions of the laws are twice as large.
const TEST_ROOM: Tokens = Tokens(60_000);

/// Joins parts of a session.
pub(in crate::replay) fn joined<'a>(parts: &[&'a [String]], begin: &[&'a str]) -> Vec<&'a str> {
    let rest = parts.iter().flat_map(|part| part.iter().map(String::as_str));
    begin.iter().copied().chain(rest).collect()
}

pub(in crate::replay) fn track(segment: &Segment) -> Track<'_> {
    Track::new(segment, Counter::new(Tokenizer::CharsPerFour))
}

/// Runs a rival over a session; gives one picture per request: `s`, `u`, `a`, `c`, `r` for what is shown whole, `-` for another
/// text, `.` for what is gone.
pub(in crate::replay) fn pictures(session: &[&str], asked: &str, needs: &[ResultNeed]) -> Vec<String> {
    let segment = segment(session);
    let track = track(&segment);
    drawn(&track, &views(&track, asked, needs))
}

pub(in crate::replay) fn views(track: &Track<'_>, asked: &str, needs: &[ResultNeed]) -> Views {
    views_in_room(track, asked, needs, TEST_ROOM)
}

pub(in crate::replay) fn views_in_room(
    track: &Track<'_>,
    asked: &str,
    needs: &[ResultNeed],
    room: Tokens,
) -> Views {
    let (rival, knob) = find_rival(asked).expect("a rival");
    let model = find_model("claude-opus-5").expect("a model");
    (rival.views)(&PeerCase { track, knob, needs, room, model: &model })
}

pub(in crate::replay) fn drawn(track: &Track<'_>, views: &Views) -> Vec<String> {
    let mut showing = VisibleRequest::default();
    let requests = track.requests.iter().zip(&views.changes).map(|(request, changes)| {
        showing.advance_to(request.blocks, changes);
        showing
            .shown_blocks()
            .iter()
            .zip(track.facts.rows())
            .map(|(shown, fact)| match shown {
                ShownBlock::Text { .. } => '-',
                ShownBlock::Gone => '.',
                ShownBlock::Whole => match (fact.acts_as, fact.role) {
                    (BlockKind::Call, _) => 'c',
                    (BlockKind::Result, _) => 'r',
                    (_, Role::System) => 's',
                    (_, Role::Assistant) => 'a',
                    _ => 'u',
                },
            })
            .collect()
    });
    requests.collect()
}

/// Compares what the last requests of a session show.
pub(in crate::replay) fn check(session: &[&str], asked: &str, needs: &[ResultNeed], last: &[&str]) {
    let pictures = pictures(session, asked, needs);
    let shown = &pictures[pictures.len() - last.len()..];
    assert_eq!(shown, last, "{asked}; all: {pictures:#?}");
}

/// Compares the text that a block has in the end.
pub(in crate::replay) fn check_text(
    session: &[&str],
    asked: &str,
    needs: &[ResultNeed],
    block: u32,
    expected: &str,
) {
    let segment = segment(session);
    let track = track(&segment);
    let mut showing = VisibleRequest::default();
    for (request, changes) in track.requests.iter().zip(&views(&track, asked, needs).changes) {
        showing.advance_to(request.blocks, changes);
    }
    let ShownBlock::Text { text, .. } = showing.shown_block(BlockId(block)) else {
        panic!("{:?}", showing.shown_block(BlockId(block)))
    };
    assert_eq!(&**text, expected);
}
