//! gemini-cli's masking of tool output. Takes a track; gives views in which output older than the newest 50,000 tokens of it is
//! a preview with the name of a file, when that frees at least 30,000. Never touches the last message or four kinds of tools.

use trimtab_core::{BlockId, BlockKind, json::narrow};

use super::{
    PeerCase, Rival, RivalRole,
    walk::{PeerWalk, acts_as, text_of, tool_of},
};
use crate::replay::{Track, Views};

/// Tokens of the newest tool output that are kept.
const PROTECTED: usize = 50_000;
/// Tokens that must be freed for anything to be masked.
const LEAST_FREED: usize = 30_000;
/// Tools whose output is never masked.
const EXEMPT: [&str; 4] = ["activate_skill", "save_memory", "ask_user", "exit_plan_mode"];
/// Characters of the preview at each end.
const PREVIEW_CHARACTERS: usize = 250;
/// Lines of the preview of a shell's output at each end.
const PREVIEW_LINES: usize = 10;

pub(super) const RIVAL: Rival = Rival {
    name: "peer:gemini-masking",
    about: "Masks tool output older than the newest 50,000 tokens of it by a preview, if that frees at least 30,000.",
    knob: ("", &[]),
    role: RivalRole::Peer,
    views: mask_old,
};

fn mask_old(case: &PeerCase<'_>) -> Views {
    let track = case.track;
    let mut walk = PeerWalk::new(track);
    let mut open: Vec<(BlockId, usize)> = Vec::new();
    while walk.next().is_some() {
        let new = walk.new_results().into_iter().filter(|block| !EXEMPT.contains(&&*tool_of(track, *block)));
        open.extend(new.map(|block| (block, tokens(&text_of(track, block)))));
        let last_step = results_end_it(track, &walk).then(|| walk.step());
        let (mut total, mut freed) = (0, 0);
        let mut old: Vec<BlockId> = Vec::new();
        for (block, tokens) in open.iter().rev() {
            if last_step.is_some() && track.facts.row(*block).map(|fact| fact.step) == last_step {
                continue;
            }
            total += tokens;
            if total > PROTECTED {
                freed += tokens;
                old.push(*block);
            }
        }
        if freed < LEAST_FREED {
            continue;
        }
        for block in old {
            let text = mask_text(track, block);
            if tokens(&text) < tokens(&text_of(track, block)) {
                walk.show_text(block, text);
            }
        }
        open.retain(|(block, _)| walk.is_whole(*block));
    }
    walk.into_views()
}

/// Tells whether the last message is one of results.
fn results_end_it(track: &Track<'_>, walk: &PeerWalk<'_>) -> bool {
    let last = walk.block_count().checked_sub(1).map(|last| BlockId(narrow(last)));
    last.and_then(|last| acts_as(track, last)) == Some(BlockKind::Result)
}

/// Estimates as gemini-cli does: a quarter of a token per ASCII character, one and a half per other.
fn tokens(text: &str) -> usize {
    let ascii = text.chars().filter(char::is_ascii).count();
    (ascii + 6 * (text.chars().count() - ascii)) / 4
}

fn mask_text(track: &Track<'_>, block: BlockId) -> String {
    let text = text_of(track, block);
    let tool = tool_of(track, block);
    let preview = if tool.contains("shell") { lines_preview(&text) } else { characters_preview(&text) };
    let id = track.history.block(block).and_then(|block| track.history.call_id(block)).unwrap_or_default();
    format!(
        "<tool_output_masked>\n{preview}\n\nOutput too large. Full output available at: tool-outputs/{tool}_{id}.txt\n</tool_output_masked>"
    )
}

fn characters_preview(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * PREVIEW_CHARACTERS {
        return text.to_owned();
    }
    let head: String = text.chars().take(PREVIEW_CHARACTERS).collect();
    let tail: String = text.chars().skip(count - PREVIEW_CHARACTERS).collect();
    format!("{head}\n... [TRUNCATED] ...\n{tail}")
}

fn lines_preview(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let hidden = lines.len().saturating_sub(2 * PREVIEW_LINES);
    if hidden == 0 {
        return characters_preview(text);
    }
    let head = lines.get(..PREVIEW_LINES).unwrap_or_default().join("\n");
    let tail = lines.get(lines.len() - PREVIEW_LINES..).unwrap_or_default().join("\n");
    format!("{head}\n\n... [{hidden} lines omitted] ...\n\n{tail}")
}
