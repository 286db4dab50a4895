//! Sends again what was sent before, and everything new unchanged. Takes a request and the memory; gives the bytes at
//! once: nothing is counted, nothing is decided. Never hides a block for the first time.

use std::sync::Arc;

use crate::{
    facts::facts,
    history::{BlockId, Blocks, History, row_of},
    identity::{ChainHash, chain},
    json::widen,
    memory::Memory,
    plan::{MessageUnit, edits_as_sent, edits_of, group_units, may_shorten, sent_fold, units_by_turn},
    recall::block_handle,
    verdict::{Decision, Reason, SentVerdict, Verdict},
    wire::write,
};

/// A request in which only earlier verdicts are repeated.
#[derive(Debug, Clone)]
pub struct ResentRequest {
    /// The bytes to send.
    pub request: Vec<u8>,
    /// The client's request.
    pub history: Arc<History>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) chain: Vec<ChainHash>,
}

impl ResentRequest {
    /// Tells whether nothing is hidden.
    pub fn keeps_all(&self) -> bool {
        self.decisions.iter().all(|decision| decision.verdict == Verdict::Keep)
    }
}

/// Repeats the verdicts that memory holds for a request: what an edge sends when there is no time to plan.
pub fn resend(history: Arc<History>, memory: &Memory) -> ResentRequest {
    let chain = chain(&history);
    let sent: Vec<Option<&SentVerdict>> = chain.iter().map(|hash| memory.verdict(*hash)).collect();
    let folded = sent_fold(&history, &sent);
    let in_place: Vec<Decision> = (0..)
        .zip(&sent)
        .map(|(number, sent)| {
            let behind = folded.as_ref().is_none_or(|fold| number >= fold.end.0);
            let in_summary = sent.is_some_and(|sent| sent.verdict().is_fold());
            repeat_decision(BlockId(number), sent.filter(|_| !(in_summary && behind)))
        })
        .collect();
    let elsewhere = memory.hidden_elsewhere(&history, &chain, &sent);
    let all = with_rewritten(&history, &in_place, &elsewhere);
    let nothing = || history.ids().map(Decision::keep).collect();
    let decisions = [all, in_place].into_iter().find(|decisions| !is_torn(&history, decisions));
    let decisions = decisions.unwrap_or_else(nothing);
    let request = write(&history, &edits_of(&history, &decisions));
    ResentRequest { request, history, decisions, chain }
}

/// Returns the bytes that were sent for a request, by what became of the blocks that were not sent whole and the block after which a
/// cache marker was added.
pub fn as_sent(history: &History, hidden: &[(BlockId, SentVerdict)], marker: Option<BlockId>) -> Vec<u8> {
    let mut decisions: Vec<Decision> = history.ids().map(Decision::keep).collect();
    for (block, sent) in hidden {
        // What a store says of another request's blocks is no reason to stop.
        if let Some(decision) = decisions.get_mut(widen(block.0)) {
            *decision = repeat_decision(*block, Some(sent));
        }
    }
    if decisions.iter().all(|decision| decision.verdict == Verdict::Keep) {
        return history.bytes().to_vec();
    }
    write(history, &edits_as_sent(history, &decisions, marker))
}

/// Decides that a block is sent as it was.
fn repeat_decision(block: BlockId, sent: Option<&SentVerdict>) -> Decision {
    let verdict = sent.map_or(Verdict::Keep, |sent| sent.verdict().clone());
    Decision { block, verdict, handle: None }
}

/// Adds what was hidden before the client rewrote what precedes it: texts where the protocol lets them stand, exchanges
/// where the whole of them was gone, pointers where what they point at is sent.
fn with_rewritten(
    history: &History,
    in_place: &[Decision],
    elsewhere: &[Option<&SentVerdict>],
) -> Vec<Decision> {
    let mut decisions: Blocks<Decision> = in_place.iter().cloned().collect();
    for (decision, sent) in decisions.iter_mut().zip(elsewhere).filter(|(_, sent)| sent.is_some()) {
        *decision = repeat_decision(decision.block, *sent);
        if decision.verdict.text().is_some() && !may_shorten(history, decision.block) {
            *decision = Decision::keep(decision.block);
        }
    }
    if decisions.iter().zip(elsewhere).any(|(decision, sent)| sent.is_some() && decision.verdict.is_gone()) {
        keep_parts_of_exchanges(history, &mut decisions, elsewhere);
    }
    let pointers: Vec<BlockId> = decisions.iter().zip(elsewhere).filter_map(lone_pointer).collect();
    for id in pointers {
        let target = match &decisions[id].verdict {
            Verdict::Trim { handle, .. } => handle.clone(),
            // What is identical has the same handle.
            _ => block_handle(history, &history[id]),
        };
        let shows = |decision: &Decision| {
            decision.block < id
                && decision.verdict.shows_all()
                && block_handle(history, &history[decision.block]) == target
        };
        if !decisions.iter().any(shows) {
            decisions[id] = Decision::keep(id);
        }
    }
    decisions.into_vec()
}

/// Returns a block that is hidden because another shows the same, where the client rewrote what precedes it.
fn lone_pointer((decision, sent): (&Decision, &Option<&SentVerdict>)) -> Option<BlockId> {
    let relies_on_another = matches!(
        decision.verdict,
        Verdict::Point { .. } | Verdict::Trim { .. } | Verdict::Drop { reason: Reason::Identical { .. } }
    );
    (sent.is_some() && relies_on_another).then_some(decision.block)
}

/// Keeps exchanges of which only a part would go.
fn keep_parts_of_exchanges(
    history: &History,
    decisions: &mut Blocks<Decision>,
    elsewhere: &[Option<&SentVerdict>],
) {
    let units = group_units(history, &facts(history));
    for turn in units_by_turn(&units) {
        let gone = |id: &BlockId| decisions[*id].verdict.is_gone();
        let whole_turn = turn.iter().all(|unit| unit.turn_may_go && unit.blocks.iter().all(gone));
        let goes = |unit: &MessageUnit| whole_turn || (unit.may_go && unit.blocks.iter().all(gone));
        let parts = turn.iter().filter(|unit| !goes(unit));
        let kept: Vec<BlockId> = parts.flat_map(|unit| unit.blocks.iter().copied()).collect();
        for id in kept {
            let verdict = &decisions[id].verdict;
            if row_of(elsewhere, id).is_some() && verdict.is_gone() && !verdict.goes_alone() {
                decisions[id] = Decision::keep(id);
            }
        }
    }
}

/// Tells whether a call would go without its result or the other way round.
fn is_torn(history: &History, decisions: &[Decision]) -> bool {
    let goes = |id: BlockId| row_of(decisions, id).verdict.is_gone();
    let mut calls = history.ids().filter_map(|id| Some((id, history[id].partner?)));
    calls.any(|(id, partner)| goes(id) != goes(partner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Millis, Policy, Settings, Tokens, fit, parse};

    fn read(request: Vec<u8>) -> Arc<History> {
        Arc::new(parse(request).unwrap())
    }

    fn conversation(results: usize) -> Vec<u8> {
        let exchange = |number: usize| {
            let text: String = (0..400).map(|line| format!("line {line} of result {number}\\n")).collect();
            format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{number}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{number}","content":"{text}"}}"#
            )
        };
        let exchanges: String = (0..results).map(exchange).collect();
        format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"Go on."}}{exchanges}]}}"#)
            .into_bytes()
    }

    fn check(policy: &str, changed: &[(String, f64)], budget: u64) {
        let settings = Settings {
            budget: Some(Tokens(budget)),
            ..Settings::new(Policy::shipped_with(policy, changed).unwrap())
        };
        let mut memory = Memory::default();
        let first = fit(conversation(8), &memory, &settings, Millis(0)).unwrap();
        assert!(!first.plan.keeps_all());
        memory.remember_sent(&first.plan, Millis(0));
        assert_eq!(resend(read(conversation(8)), &memory).request, first.request);
        let longer = resend(read(conversation(9)), &memory);
        let body = first.request.strip_suffix(b"]}").unwrap();
        assert!(longer.request.starts_with(body), "what was sent before is sent again");
        assert!(
            longer.request.ends_with(&conversation(9)[conversation(8).len() - 2..]),
            "what is new is whole"
        );
    }

    #[test]
    fn shortened_results_are_repeated_and_new_ones_are_whole() {
        check("recent", &[("keep_last".to_owned(), 3.0)], 100_000);
    }

    #[test]
    fn dropped_exchanges_stay_away() {
        check("ladder", &[], 7_000);
    }

    #[test]
    fn without_memory_the_request_is_what_it_was() {
        let resent = resend(read(conversation(3)), &Memory::default());
        assert_eq!(resent.request, conversation(3));
        assert!(resent.keeps_all());
    }

    #[test]
    fn what_was_sent_again_counts_as_sent() {
        let mut memory = Memory::default();
        memory.remember_resent(&resend(read(conversation(3)), &memory), Millis(5));
        assert!(!memory.is_empty());
    }

    /// The same conversation after its client wrote the first message again in other words.
    fn rewritten(results: usize) -> Vec<u8> {
        let text = String::from_utf8(conversation(results)).unwrap();
        text.replacen("Go on.", "Go on, it is Tuesday.", 1).into_bytes()
    }

    fn check_rewritten(policy: &str, changed: &[(String, f64)], budget: u64) {
        let settings = Settings {
            budget: Some(Tokens(budget)),
            ..Settings::new(Policy::shipped_with(policy, changed).unwrap())
        };
        let mut memory = Memory::default();
        let first = fit(conversation(8), &memory, &settings, Millis(0)).unwrap();
        assert!(!first.plan.keeps_all());
        memory.remember_sent(&first.plan, Millis(0));
        let sent = String::from_utf8(first.request).unwrap();
        let sent = sent.replacen("Go on.", "Go on, it is Tuesday.", 1);
        let body = sent.strip_suffix("]}").unwrap();
        let late = resend(read(rewritten(9)), &memory);
        assert!(late.request.starts_with(body.as_bytes()), "a late request repeats what was hidden");
        let in_time = fit(rewritten(9), &memory, &settings, Millis(1)).unwrap();
        let hidden = |decisions: &[Decision]| -> Vec<u32> {
            let hidden = decisions.iter().filter(|decision| decision.verdict != Verdict::Keep);
            hidden.map(|decision| decision.block.0).collect()
        };
        let (before, now) = (hidden(first.plan.decisions()), hidden(in_time.plan.decisions()));
        assert!(before.iter().all(|block| now.contains(block)), "{before:?} {now:?}");
        memory.remember_resent(&late, Millis(1));
        let later = fit(rewritten(9), &memory, &settings, Millis(2)).unwrap();
        let verdict =
            |decisions: &[Decision], block: u32| decisions.get(widen(block)).unwrap().verdict.clone();
        for block in before {
            let [was, is] =
                [first.plan.decisions(), later.plan.decisions()].map(|decisions| verdict(decisions, block));
            assert!(is == was || is.is_gone(), "and so it stays, or goes: {was:?} {is:?}");
        }
        assert!(later.request.len() <= late.request.len());
    }

    #[test]
    fn what_was_shortened_stays_so_when_the_client_rewrites_what_stands_before_it() {
        check_rewritten("recent", &[("keep_last".to_owned(), 3.0)], 100_000);
    }

    #[test]
    fn what_was_dropped_stays_away_when_the_client_rewrites_what_stands_before_it() {
        check_rewritten("ladder", &[], 7_000);
    }

    /// A conversation without names for its calls, in which the same file is read again and again.
    fn reads(first: &str, results: usize) -> Vec<u8> {
        let text: String = (0..400).map(|line| format!("line {line}\\n")).collect();
        let read = format!(
            r#",{{"role":"model","parts":[{{"functionCall":{{"name":"read","args":{{"path":"a"}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"read","response":{{"output":"{text}"}}}}}}]}}"#
        );
        format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"{first}"}}]}}{}]}}"#,
            read.repeat(results)
        )
        .into_bytes()
    }

    #[test]
    fn what_the_model_just_read_again_is_not_taken_for_what_was_hidden() {
        let settings =
            Settings::new(Policy::shipped_with("recent", &[("keep_last".to_owned(), 1.0)]).unwrap())
                .with_budget(Tokens(100_000));
        let mut memory = Memory::default();
        let first = fit(reads("Go on.", 2), &memory, &settings, Millis(0)).unwrap();
        assert!(!first.plan.keeps_all());
        memory.remember_sent(&first.plan, Millis(0));
        for words in ["Go on.", "Go on, it is Tuesday."] {
            let late = resend(read(reads(words, 3)), &memory);
            let shown: Vec<bool> =
                late.decisions.iter().map(|decision| decision.verdict == Verdict::Keep).collect();
            let hidden: Vec<bool> =
                first.plan.decisions().iter().map(|decision| decision.verdict == Verdict::Keep).collect();
            assert_eq!(shown, [&hidden[..], &[true, true]].concat(), "{words}");
        }
    }
}
