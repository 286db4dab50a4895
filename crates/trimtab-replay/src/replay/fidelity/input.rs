//! What a call says. Takes a call; gives the texts that it looks for in files (anchors) and everything else in its
//! arguments. Never parses an edit itself: `files` does.

use std::collections::HashSet;

use trimtab_core::{BlockId, facts::argument_texts, files::texts_to_replace};

use super::normal::plain_text;
use crate::replay::Track;

/// The input of one call.
pub(super) struct CallInput {
    /// The old text of every replacement, and the lines of every hunk that must be there already.
    pub(super) anchors: Vec<String>,
    /// All other texts.
    pub(super) others: Vec<String>,
}

/// Returns the strings of a call's arguments, decoded.
pub(super) fn strings_of(track: &Track<'_>, call: BlockId) -> Vec<String> {
    track.history.block(call).map(|block| argument_texts(track.history, block)).unwrap_or_default()
}

/// Reads a call.
pub(super) fn read_input(track: &Track<'_>, call: BlockId) -> CallInput {
    let anchors: Vec<String> = texts_to_replace(track.history, &track.facts, call)
        .iter()
        .map(|old| plain_text(old).trim_matches('\n').to_owned())
        .filter(|old| !old.trim().is_empty())
        .collect();
    let all = strings_of(track, call).into_iter();
    if anchors.is_empty() {
        return CallInput { anchors, others: all.collect() };
    }
    let lines: HashSet<&str> = anchors.iter().flat_map(|anchor| anchor.split('\n')).collect();
    let is_anchor =
        |text: &String| anchors.iter().any(|anchor| plain_text(text).trim_matches('\n') == anchor);
    let others = all.filter(|text| !is_anchor(text)).map(|text| without_old_lines(&text, &lines)).collect();
    CallInput { anchors, others }
}

/// Leaves the anchors' lines out of a patch or of SEARCH blocks, and takes the sign off added lines.
fn without_old_lines(text: &str, old: &HashSet<&str>) -> String {
    let is_patch = text.contains("*** Begin Patch") || text.contains("@@ -");
    let is_search = text.contains(" SEARCH");
    if !is_patch && !is_search {
        return text.to_owned();
    }
    let kept = text.split('\n').filter_map(|line| {
        let inner = line.trim_end();
        let signed = inner.strip_prefix([' ', '-']).filter(|_| is_patch);
        if signed.is_some_and(|inner| old.contains(inner)) || (is_search && old.contains(inner)) {
            return None;
        }
        Some(line.strip_prefix('+').filter(|_| is_patch).unwrap_or(line))
    });
    kept.collect::<Vec<_>>().join("\n")
}
