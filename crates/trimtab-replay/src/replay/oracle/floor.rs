//! The least that could be shown: [`floor_oracle`]. Takes a track and what is needed; gives views in which every result shows,
//! from its first request on, only the lines that a later edit or copy takes from it and that nothing else shows.
//!
//! Whoever changes results only, brings nothing back and misses nothing shows at least that much: names count for nothing
//! here, because a note may hold them, and a text that several blocks show is left out, because any of them may be kept.

use std::collections::HashMap;

use trimtab_core::BlockId;

use super::{NeedKind, ResultNeed};
use crate::replay::{
    Track, Views,
    peers::walk::{PeerWalk, text_of},
};

/// Shows of every result what is needed later.
pub(in crate::replay) fn floor_oracle(track: &Track<'_>, needs: &[ResultNeed]) -> Views {
    let mut of_block: HashMap<BlockId, Vec<&ResultNeed>> = HashMap::new();
    for need in needs.iter().filter(|need| need.only_there && need.kind != NeedKind::Name) {
        of_block.entry(need.provider).or_default().push(need);
    }
    let mut walk = PeerWalk::new(track);
    let mut due: Vec<Vec<BlockId>> = vec![Vec::new(); track.requests.len() + 1];
    while let Some(request) = walk.next() {
        let new = walk.new_results();
        let earlier = due.get_mut(request).map(std::mem::take).unwrap_or_default();
        for block in new.into_iter().chain(earlier) {
            let needs = of_block.get(&block).into_iter().flatten().copied();
            let later: Vec<&ResultNeed> = needs.filter(|need| need.request >= request).collect();
            let next = later.iter().map(|need| need.request).min();
            if let Some(due) = next.and_then(|next| due.get_mut(next + 1)) {
                due.push(block);
            }
            let shown = walk.as_text(block, fewest_lines(&text_of(track, block), &later));
            // A result that is shorter than the frame of a text costs no more than that.
            if walk.tokens_as(block, &shown) < walk.tokens_as(block, walk.shown_block(block)) {
                walk.show_block(block, shown);
            }
        }
    }
    walk.into_views()
}

/// Joins the lines that are needed, without their indentation; of a need that names several places, the first is enough.
fn fewest_lines(text: &str, needs: &[&ResultNeed]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = vec![false; lines.len()];
    for range in needs.iter().filter_map(|need| need.lines.first()) {
        kept.get_mut(range.clone()).into_iter().flatten().for_each(|kept| *kept = true);
    }
    let needed = lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| line.trim());
    needed.collect::<Vec<&str>>().join("\n")
}
