//! A provider's cache that is shown real requests. Takes each request as it reached the provider; gives the usage that the
//! provider would report, under the same rules that replay charges by. Never sees what was not sent.

use std::collections::HashMap;

use trimtab_core::{
    Block, BlockKind, ChainHash, Entry, History, Millis, Role, Tokens, chain,
    count::{CountMemo, Counter},
    json::{narrow, widen},
    prices::{CacheLanding, Model},
    session::CacheLifetime,
    usage::Usage,
};

use super::{
    bill::usage_of,
    cache::{PiecePosition, PrefixPiece, SimulatedCache},
};

/// Most markers that a request may carry where markers are set.
const MAX_MARKERS: usize = 4;

/// The cache of one conversation at one provider.
#[derive(Debug)]
pub struct CacheSimulation {
    model: Model,
    counter: Counter,
    cache: SimulatedCache,
    memo: CountMemo,
    /// Numbers for what stands at a place: everything before it is the same for the same number.
    forms: HashMap<ChainHash, u32>,
    /// The forms of the last request, in order.
    last: Vec<u32>,
}

impl CacheSimulation {
    /// Makes an empty cache with the rules of a model.
    pub fn new(model: &Model) -> CacheSimulation {
        let cache = SimulatedCache::new(model.cache, model.cache.lifetime_ms);
        let counter = Counter::for_model(&model.name);
        let (memo, forms) = (CountMemo::default(), HashMap::new());
        CacheSimulation { model: model.clone(), counter, cache, memo, forms, last: Vec::new() }
    }

    /// Returns what the provider reports for a request that comes at a time.
    pub fn usage_of_request(&mut self, request: &History, at: Millis) -> Usage {
        let counts = self.counter.count_request(request, &mut self.memo);
        let spoken = request.entries().iter().filter(|entry| entry.role != Role::Tools).count();
        let fixed = counts.frame() - counts.per_entry().times(spoken);
        let seen = SeenRequest::from_request(request, self.model.cache.drops_old_reasoning);
        let chain = chain(request);
        let mut now = Vec::new();
        for &(id, _) in &seen.blocks {
            let Some(hash) = chain.get(id) else { continue };
            let next = narrow(self.forms.len() + 1);
            now.push(*self.forms.entry(*hash).or_insert(next));
        }
        let same = self.last.iter().zip(&now).take_while(|(one, other)| one == other).count();
        let earlier_end = self.cache.len();
        let head = usize::from(fixed > Tokens::ZERO);
        self.cache.keep_pieces(if self.last.is_empty() { 0 } else { same + head });
        if self.cache.len() < head {
            self.cache.push_piece(PrefixPiece { block: None, form: 0 }, fixed, PiecePosition::Begins);
        }
        let mut before =
            same.checked_sub(1).and_then(|index| seen.blocks.get(index)).map(|(_, block)| *block);
        for (place, ((id, block), form)) in (0_u32..).zip(seen.blocks.iter().zip(&now)).skip(same) {
            let begins = before.is_none_or(|before| before.entry != block.entry);
            let spoken = block.kind != BlockKind::Definition;
            let frame = if spoken && begins { counts.per_entry() } else { Tokens::ZERO };
            let runs = matches!(block.kind, BlockKind::Call | BlockKind::Result);
            let goes_on = runs && before.is_some_and(|before| before.kind == block.kind);
            let run = if goes_on { PiecePosition::GoesOn } else { PiecePosition::Begins };
            let tokens = counts.blocks().get(*id).copied().unwrap_or_default();
            self.cache.push_piece(PrefixPiece { block: Some(place), form: *form }, tokens + frame, run);
            before = Some(*block);
        }
        self.last = now;
        if self.model.cache.landing == CacheLanding::UnitEnds && same + head >= earlier_end {
            let said = seen.blocks.iter().skip(earlier_end.saturating_sub(head));
            let said = said.take_while(|(_, block)| seen.role_of(block) == Some(Role::Assistant)).count();
            if said > 0 {
                self.cache.record_reply(earlier_end + said);
            }
        }
        let markers = seen.marker_places(&self.cache, head);
        usage_of(&self.cache.send_request(at.0, &markers), CacheLifetime::Usual)
    }
}

/// The blocks of a request that the provider looks at.
struct SeenRequest<'a> {
    request: &'a History,
    blocks: Vec<(usize, &'a Block)>,
}

impl<'a> SeenRequest<'a> {
    fn from_request(request: &'a History, drops_old_reasoning: bool) -> SeenRequest<'a> {
        let answers =
            |entry: &Entry| request.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Result);
        let turn = request.messages().iter().rfind(|entry| entry.role == Role::User && !answers(entry));
        let turn = turn.map_or(0, |entry| widen(entry.first_block));
        let kept = |(id, block): &(usize, &Block)| {
            !(drops_old_reasoning && *id < turn && block.kind == BlockKind::Reasoning)
        };
        SeenRequest { request, blocks: request.blocks().iter().enumerate().filter(kept).collect() }
    }

    fn role_of(&self, block: &Block) -> Option<Role> {
        self.request.entry_of(block).map(|entry| entry.role)
    }

    /// Returns where markers are set, as numbers of pieces before them: where the request has them, and as clients do where
    /// it has none: after tools and system, at the end, and where the request before ended in a loop of tools.
    fn marker_places(&self, cache: &SimulatedCache, head: usize) -> Vec<usize> {
        let in_head = |block: &Block| matches!(self.role_of(block), Some(Role::Tools | Role::System));
        let leading = self.blocks.iter().take_while(|(_, block)| in_head(block)).count();
        let marked = self.blocks.iter().enumerate().filter(|(_, (_, block))| block.marked);
        let mut markers: Vec<usize> = marked.map(|(place, _)| head + place + 1).collect();
        if !markers.contains(&cache.len()) {
            let spoken =
                |(_, (_, block)): &(usize, &(usize, &Block))| self.role_of(block) == Some(Role::Assistant);
            let answer = self.blocks.iter().enumerate().rev().skip_while(|row| !spoken(row));
            let before = answer.skip_while(|row| spoken(row)).map(|(place, _)| head + place + 1).next();
            markers.extend(before);
            markers.push(head + leading);
            markers.push(cache.len());
        }
        markers.sort_unstable();
        markers.dedup();
        // The latest are worth the most.
        markers.drain(..markers.len().saturating_sub(MAX_MARKERS));
        markers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::{find_model, parse};

    fn check(model: &str, requests: &[&[&str]], read: &[bool]) {
        let mut cache = CacheSimulation::new(&find_model(model).unwrap());
        let mut found = Vec::new();
        for (number, words) in (0_i64..).zip(requests) {
            let message = |(index, word): (usize, &&str)| {
                let role = if index % 2 == 0 { "user" } else { "assistant" };
                format!(r#"{{"role":"{role}","content":"{}"}}"#, format!("{word} ").repeat(6000))
            };
            let messages: Vec<String> = words.iter().enumerate().map(message).collect();
            let request =
                format!(r#"{{"model":"{model}","max_tokens":9,"messages":[{}]}}"#, messages.join(","));
            let history = parse(request.into_bytes()).unwrap();
            let usage = cache.usage_of_request(&history, Millis(number * 1000));
            let total = Counter::for_model(model).count_request(&history, &mut CountMemo::default()).total();
            assert_eq!(usage.total_input(), total.0, "request {number}");
            found.push(usage.cache_read > 0);
        }
        assert_eq!(found, read, "{model}");
    }

    #[test]
    fn a_request_that_goes_on_is_read_from_the_cache() {
        for model in ["gpt-5", "claude-opus-4-6", "gemini-2.5-pro"] {
            check(model, &[&["a"], &["a", "b", "c"], &["x", "b", "c"]], &[false, true, false]);
        }
    }

    #[test]
    fn an_edit_in_the_middle_leaves_what_stands_before_it() {
        check("gpt-5", &[&["a", "b", "c"], &["a", "b", "d"]], &[false, true]);
    }
}
