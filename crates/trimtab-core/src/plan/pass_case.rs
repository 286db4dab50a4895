//! A small conversation on which a single pass is tried: results of commands, a policy of a few steps, what was sent before.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    CachePrices, CacheState, PlanContext, PlanIndex, RequestView, SentBefore, TextCache, Units,
    wishes::BlockWishes, work::Work,
};
use crate::{
    count::{CountMemo, Counter},
    facts::facts,
    history::{BlockId, BlockKind, History},
    identity::{ChainHash, chain},
    memory::{InputCosts, Memory},
    policy::{Folding, Markers, Policy},
    render::USUAL_RECALL,
    units::{Millis, Tokens},
    verdict::{SentVerdict, Verdict},
    wire::parse,
};

/// A step that is about nothing: a policy must have one.
const NO_STEP: &str = "[[step]]\nwhen = \"cold\"\nselect = { tokens_over = 1000000 }\ndo = \"clear\"\n";

/// What a pass is tried on.
pub(super) struct PassCase {
    history: History,
    policy: Policy,
    chain: Vec<ChainHash>,
    sent: BTreeMap<BlockId, SentVerdict>,
    pub(super) budget: Option<Tokens>,
    pub(super) cache: CacheState,
}

impl PassCase {
    /// Makes a conversation in which each of these was printed by a separate command.
    pub(super) fn new(steps: &str, results: &[&str]) -> PassCase {
        let mut messages = vec![json!({"role": "user", "content": "Go on."})];
        for (number, text) in results.iter().enumerate() {
            let arguments = json!({"command": format!("print {number}")}).to_string();
            let call = json!({"id": format!("c{number}"), "type": "function",
                "function": {"name": "bash", "arguments": arguments}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": text}));
        }
        let request = json!({"model": "gpt-5", "messages": messages}).to_string();
        let history = parse(request.into_bytes()).unwrap();
        let policy =
            Policy::from_toml("test", &format!("about = \"A test.\"\n{steps}{NO_STEP}"), &[]).unwrap();
        let chain = chain(&history);
        let cache = CacheState {
            cold: false,
            cold_from: None,
            long_pause: false,
            first_look: false,
            unseen: Tokens::ZERO,
            alive_after: Millis(0),
            prices: CachePrices { read: 0.1, write: 1.25 },
            minimum: Tokens::ZERO,
            binds_reasoning: false,
        };
        PassCase { history, policy, chain, sent: BTreeMap::new(), budget: None, cache }
    }

    /// Returns the blocks of the results, in order.
    pub(super) fn results(&self) -> Vec<BlockId> {
        self.history.ids().filter(|id| self.history[*id].kind == BlockKind::Result).collect()
    }

    /// Says that all up to a result was sent whole, but these results, by number.
    pub(super) fn sent_up_to(mut self, last: usize, hidden: &[(usize, Verdict)]) -> PassCase {
        let results = self.results();
        let up_to = self.history.ids().take_while(|id| *id <= results[last]);
        self.sent.extend(up_to.map(|id| (id, SentVerdict::WHOLE)));
        let hidden =
            hidden.iter().map(|(number, verdict)| (results[*number], SentVerdict::As(verdict.clone())));
        self.sent.extend(hidden);
        self
    }

    /// Tries passes; gives what becomes of each result, in a word.
    pub(super) fn try_passes(&self, passes: impl FnOnce(&mut Work<'_>)) -> Vec<&'static str> {
        self.look_after(passes, |work| {
            self.results().into_iter().map(|id| work.verdict_of(id).word()).collect()
        })
    }

    /// Tries passes, and looks at what they leave.
    pub(super) fn look_after<T>(
        &self,
        passes: impl FnOnce(&mut Work<'_>),
        look: impl FnOnce(&Work<'_>) -> T,
    ) -> T {
        let facts = facts(&self.history);
        let (mut memo, mut made) = (CountMemo::default(), TextCache::default());
        let counter = Counter::for_model("gpt-5");
        let counts = counter.count_request(&self.history, &mut memo);
        let mut index = PlanIndex::default();
        index.extend(&self.history, &facts, &counts, 0);
        let units = Units::from_history(&self.history, &facts);
        let history = &self.history;
        let request =
            RequestView { history, facts: &facts, counts: &counts, counter, index: &index, units: &units };
        let mut memory = Memory::default();
        for (id, sent) in &self.sent {
            memory.remember(self.chain[usize::try_from(id.0).unwrap()], sent.clone());
        }
        // The session was cheaper than untrimmed so far, so that an edit may cost something.
        memory.resume(Millis(1), 20, InputCosts { ours: 100_000.0, raw: 200_000.0 });
        memory.ended_with(self.sent.keys().map(|id| (self.chain[usize::try_from(id.0).unwrap()], Millis(1))));
        let context = PlanContext {
            policy: &self.policy,
            budget: self.budget,
            before: SentBefore {
                memory: &memory,
                chain: &self.chain,
                sent: history.ids().map(|id| self.sent.get(&id)).collect(),
                elsewhere: Vec::new(),
                assumed_ends: Vec::new(),
            },
            cache: self.cache,
            markers: Markers::AsTheyCame,
            folding: Folding::Off,
            wished: BlockWishes::default(),
            recall: &USUAL_RECALL,
        };
        let mut work = Work::new(request, &context, &mut memo, &mut made);
        passes(&mut work);
        look(&work)
    }
}

/// Lines that a command printed, all different.
pub(super) fn lines(name: &str, count: usize) -> String {
    (0..count).map(|number| format!("{name} line {number} says {}\n", number * 7919)).collect()
}
