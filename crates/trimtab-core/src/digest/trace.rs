//! A stack trace. Keeps messages, the first and last frames and those of the project itself; loses the frames of libraries
//! between.

use std::ops::Range;

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

/// How many frames stay at each end of the traces, and how many of the project's own.
const ENDS: usize = 2;
const OWN: usize = 6;

/// Where frames of libraries and runtimes live.
const LIBRARIES: &[&str] = &[
    "site-packages", "dist-packages", "node_modules", "node:internal", "/rustc/", ".cargo/registry",
    "/usr/lib", "/lib/python", "java.base/", "java.", "javax.", "sun.", "jdk.internal", "org.junit",
    "kotlin.", "core::", "std::", "alloc::", "/usr/local/go", "runtime.", "<frozen", "internal/",
];

pub(super) const DIGEST: Digest = Digest {
    name: "trace",
    about: "Stack traces: keeps messages, the first and last 2 frames and up to 6 frames of the project itself.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let frames = find_frames(text);
    let mut kept = LineSelection::none(text);
    kept.keep_ends(ENDS + 1, ENDS + 1);
    let own = |frame: &&Range<usize>| !LIBRARIES.iter().any(|mark| text.line(frame.start).contains(mark));
    let ends = frames.iter().take(ENDS).chain(frames.iter().rev().take(ENDS));
    // The frames nearest to the failure are the last ones in Python and the first ones elsewhere.
    let nearest =
        frames.iter().filter(own).take(OWN / 2).chain(frames.iter().rev().filter(own).take(OWN / 2));
    ends.chain(nearest).for_each(|frame| kept.keep_lines(frame.clone()));
    let shown = frames.iter().filter(|frame| kept.keeps(frame.start)).count();
    if !frames.is_empty() {
        kept.add_fact(Note::Frames { total: frames.len(), shown });
    }
    kept.into_pieces()
}

/// Finds the frames: one line each, with the source line that Python prints below.
fn find_frames(text: &DigestText<'_>) -> Vec<Range<usize>> {
    let mut frames: Vec<Range<usize>> = Vec::new();
    for index in 0..text.len() {
        let line = text.line(index);
        if is_frame(line) {
            frames.push(index..index + 1);
        } else if let Some(last) = frames.last_mut()
            && last.end == index
            && last.len() < 3
            && line.starts_with("    ")
        {
            last.end = index + 1;
        }
    }
    frames
}

pub(super) fn is_frame(line: &str) -> bool {
    let inner = line.trim_start();
    let indented = inner.len() < line.len();
    (inner.starts_with("File \"") && inner.contains(", line "))
        || (indented && inner.starts_with("at ") && inner.contains([':', '(']))
        || (line.starts_with('\t') && inner.contains(".go:"))
        || (indented
            && inner.split_once(": ").is_some_and(|(number, name)| {
                number.len() <= 4
                    && !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && name.contains("::")
            }))
}
