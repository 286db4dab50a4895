//! Whether a provider would take what a view shows. Takes a track and views; gives how many requests break a rule that
//! the recorded request kept. Never repairs: a rival is judged as it is.

use trimtab_core::{
    BlockKind, Format, Role,
    json::{narrow, widen},
};

use super::{ShownBlock, Track, Views, VisibleRequest};

/// Counts the requests that show half of an exchange, that begin with another speaker than before where the format minds
/// that, or that say nothing at all.
pub(super) fn invalid_requests(track: &Track<'_>, views: &Views) -> usize {
    let mut showing = VisibleRequest::default();
    let mut invalid = 0;
    for (request, changes) in track.requests.iter().zip(&views.changes) {
        showing.advance_to(request.blocks, changes);
        if has_half_pair(track, &showing, request.blocks) || begins_wrongly(track, &showing, request.messages)
        {
            invalid += 1;
        }
    }
    invalid
}

/// Tells whether a call is shown without the result that the request holds, or a result without its call.
fn has_half_pair(track: &Track<'_>, showing: &VisibleRequest, blocks: usize) -> bool {
    let pairs = track.history.blocks().iter().zip(showing.shown_blocks()).take(blocks);
    pairs.filter(|(block, _)| block.kind == BlockKind::Call).any(|(block, shown)| {
        let partner = block.partner.filter(|partner| widen(partner.0) < blocks);
        partner.is_some_and(|partner| is_gone(showing.shown_block(partner)) != is_gone(shown))
    })
}

fn begins_wrongly(track: &Track<'_>, showing: &VisibleRequest, messages: usize) -> bool {
    let carried = track.history.messages().get(..messages).unwrap_or(track.history.messages());
    let is_shown = |first: u32, count: u32| {
        let blocks = showing.shown_blocks().get(widen(first)..widen(first + count)).unwrap_or_default();
        count == 0 || blocks.iter().any(|shown| !is_gone(shown))
    };
    let first = carried.iter().find(|entry| is_shown(entry.first_block, narrow(widen(entry.blocks))));
    let Some(first) = first else { return !carried.is_empty() };
    let minds = matches!(track.history.format(), Format::Anthropic | Format::Gemini);
    let began = carried.first().map(|entry| entry.role);
    minds && began == Some(Role::User) && first.role != Role::User
}

fn is_gone(shown: &ShownBlock) -> bool {
    matches!(shown, ShownBlock::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{recording::read, replay::ViewChange};
    use trimtab_core::{BlockId, count::Counter};

    const REQUEST: &str = r#"{"messages":[
        {"role":"user","content":[{"type":"text","text":"Go"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]},
        {"role":"assistant","content":[{"type":"text","text":"Done"}]}]}"#;

    fn check(gone: &[u32]) -> usize {
        let recording = read(REQUEST.as_bytes()).unwrap();
        let track = Track::new(&recording.segments[0], Counter::for_model("gpt-5"));
        let changes = gone.iter().map(|block| ViewChange { block: BlockId(*block), shown: ShownBlock::Gone });
        let mut views = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
        *views.changes.last_mut().unwrap() = changes.collect();
        invalid_requests(&track, &views)
    }

    #[test]
    fn half_an_exchange_is_invalid_and_a_whole_one_may_go() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[1]), 1);
        assert_eq!(check(&[2]), 1);
        assert_eq!(check(&[1, 2]), 0);
    }

    #[test]
    fn a_conversation_that_began_with_the_person_still_does() {
        assert_eq!(check(&[0]), 1);
    }

    #[test]
    fn something_is_said() {
        assert_eq!(check(&[0, 1, 2]), 1);
    }
}
