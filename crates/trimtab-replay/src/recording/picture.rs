//! A recording as a short text, for tests. Takes a file; gives a line for the agent, each segment, message, request
//! and problem. Never shows what a reader does not decide: spans, steps, keys that were copied as they were.

use trimtab_core::{
    Block, BlockKind, Entry, History,
    usage::{Point, Usage},
    wire::parse_as,
};

use super::{Recording, Segment, read};

/// Reads a file and compares the picture of what it holds, or the sentence that says why it holds nothing.
pub(super) fn check(file: impl AsRef<[u8]>, expected: &[&str]) {
    let lines = match read(file.as_ref()) {
        Ok(recording) => picture(&recording),
        Err(fault) => vec![fault.to_string()],
    };
    assert_eq!(lines, expected, "got:\n{}", lines.join("\n"));
}

/// Joins the lines of a file, so that a test can name them.
pub(super) fn lines(lines: &[&str]) -> String {
    lines.join("\n")
}

fn picture(recording: &Recording) -> Vec<String> {
    let mut lines = vec![recording.agent.to_owned()];
    for segment in &recording.segments {
        let name = segment.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        lines.push(format!("{}{name}, {}", segment.start.name(), segment.history.format()));
        lines.extend(segment.history.entries().iter().map(|entry| message(&segment.history, entry)));
        lines.extend(segment.points.iter().map(|point| request(segment, point)));
    }
    lines.extend(recording.problems.iter().map(ToString::to_string));
    lines
}

fn message(history: &History, entry: &Entry) -> String {
    let blocks = history.blocks_of(entry).iter().map(|block| part(history, block));
    format!("  {}: {}", entry.role.name(), blocks.collect::<Vec<_>>().join(" + "))
}

fn part(history: &History, block: &Block) -> String {
    let text = history.block_text(block).replace('\n', "/");
    let name = history.tool_name(block).unwrap_or_default();
    let id = history.call_id(block).unwrap_or_default();
    match block.kind {
        BlockKind::Text => text,
        BlockKind::Call => format!("{name}#{id} {text}"),
        BlockKind::Result if block.failed => format!("{name}#{id} failed: {text}"),
        BlockKind::Result => format!("{name}#{id} = {text}"),
        BlockKind::Definition => name.into_owned(),
        BlockKind::Reasoning | BlockKind::Media | BlockKind::Unknown => {
            format!("{}({text})", block.kind.name())
        }
    }
}

/// Draws a request: how many messages it carries, when it was sent to which model, and its usage as input that was
/// new, read from the cache and written to it, and output.
fn request(segment: &Segment, point: &Point) -> String {
    let parsed = parse_as(segment.request_at(point), segment.history.format()).expect("a request");
    assert_eq!(parsed.messages().len(), point.messages, "the request at a point carries its messages");
    let at = point.at.map(|at| format!(" {}ms", at.0)).unwrap_or_default();
    let model = point.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
    let usage = point.usage.map(|usage| {
        let Usage { input, cache_read, cache_write, output, .. } = usage;
        format!(" {input}+{cache_read}r+{cache_write}w>{output}")
    });
    format!("  @{}{at}{model}{}", point.messages, usage.unwrap_or_default())
}
