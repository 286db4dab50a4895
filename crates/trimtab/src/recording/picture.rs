//! A recording as a short text, for tests. Takes a file; gives a line for each segment, message, point and problem.
//! Never shows what a reader does not decide: spans, steps, keys that were copied as they were.

use super::{Point, Recording, Segment, read};
use crate::history::{Block, BlockKind, Entry, History};

/// Draws a file's recording, or why there is none.
pub(super) fn picture(file: &str) -> String {
    match read(file.as_bytes()) {
        Ok(recording) => draw(&recording),
        Err(fault) => fault.to_string(),
    }
}

fn draw(recording: &Recording) -> String {
    let mut lines = vec![recording.agent.to_owned()];
    for segment in &recording.segments {
        let name = segment.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        lines.push(format!("{}{name}, {}", segment.start.name(), segment.history.format()));
        lines.extend(segment.history.entries().iter().map(|entry| message(&segment.history, entry)));
        lines.extend(segment.points.iter().map(|made| point(segment, made)));
    }
    lines.extend(recording.problems.iter().map(ToString::to_string));
    lines.join("\n")
}

fn message(history: &History, entry: &Entry) -> String {
    let blocks = history.blocks_of(entry).iter().map(|item| block(history, item));
    format!("  {}: {}", entry.role.name(), blocks.collect::<Vec<_>>().join(", "))
}

fn block(history: &History, block: &Block) -> String {
    let text = history.block_text(block).replace('\n', "/");
    let name = history.tool_name(block).unwrap_or_default();
    let id = history.call_id(block).unwrap_or_default();
    match block.kind {
        BlockKind::Text => text,
        BlockKind::Call => format!("{name}#{id} {text}"),
        BlockKind::Result => format!("{name}#{id} = {text}"),
        BlockKind::Definition => name.into_owned(),
        BlockKind::Reasoning | BlockKind::Media | BlockKind::Unknown => {
            format!("{}({text})", block.kind.name())
        }
    }
}

fn point(segment: &Segment, point: &Point) -> String {
    assert!(crate::wire::parse_as(segment.request(point), segment.history.format()).is_ok());
    let mut line = format!("  @{}", point.messages);
    if let Some(at) = point.at {
        line.push_str(&format!(" {}ms", at.0));
    }
    if let Some(model) = &point.model {
        line.push_str(&format!(" {model}"));
    }
    if let Some(usage) = point.usage {
        let super::Usage { input, cache_read, cache_write, output, .. } = usage;
        line.push_str(&format!(" {input}+{cache_read}r+{cache_write}w>{output}"));
    }
    line
}
