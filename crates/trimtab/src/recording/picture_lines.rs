//! Pictures of recordings for tests. Takes the lines of a file; gives one line per segment, one per request in
//! it and one per problem. Never shows more of a text than its beginning.

use super::{Point, Recording, Segment, read};
use crate::{
    history::{Block, BlockKind, History},
    wire,
};

/// Reads the lines and compares the picture of what they hold.
pub(super) fn check(lines: &[&str], expected: &[&str]) {
    let recording = read(lines.join("\n").as_bytes()).expect("a recording");
    assert_eq!(picture(&recording), expected, "got:\n{}", picture(&recording).join("\n"));
}

fn picture(recording: &Recording) -> Vec<String> {
    let segments = recording.segments.iter().flat_map(|segment| {
        let points = segment.points.iter().map(|point| request(segment, point));
        std::iter::once(segment_line(segment)).chain(points)
    });
    segments.chain(recording.problems.iter().map(ToString::to_string)).collect()
}

fn segment_line(segment: &Segment) -> String {
    let history = &segment.history;
    let name = segment.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let messages = history.entries().iter().map(|entry| {
        let blocks = history.blocks_of(entry).iter().map(|block| block_picture(history, block));
        format!(" | {}: {}", entry.role.name(), blocks.collect::<Vec<_>>().join(" + "))
    });
    format!("{}{name} {}{}", segment.start.name(), history.format(), messages.collect::<String>())
}

fn block_picture(history: &History, block: &Block) -> String {
    let text: String = history.block_text(block).replace('\n', "/").chars().take(40).collect();
    let tool = history.tool_name(block).unwrap_or_default();
    match block.kind {
        BlockKind::Text => text,
        BlockKind::Call => format!("{tool}({text})"),
        BlockKind::Result if block.failed => format!("{tool} failed {text}"),
        BlockKind::Result => format!("{tool} gave {text}"),
        BlockKind::Definition | BlockKind::Reasoning | BlockKind::Media | BlockKind::Unknown => {
            format!("{} {text}", block.kind.name())
        }
    }
}

fn request(segment: &Segment, point: &Point) -> String {
    let parsed = wire::parse_as(segment.request(point), segment.history.format()).expect("a request");
    assert_eq!(parsed.messages().len(), point.messages, "the request at a point carries its messages");
    let at = point.at.map(|at| format!(" at {}", at.0)).unwrap_or_default();
    let model = point.model.as_ref().map(|model| format!(" to {model}")).unwrap_or_default();
    let usage = point.usage.map(|usage| {
        let (read, written) = (usage.cache_read, usage.cache_write);
        format!(": {} new, {read} read, {written} written, {} out", usage.input, usage.output)
    });
    format!("  {} messages{at}{model}{}", point.messages, usage.unwrap_or_default())
}
