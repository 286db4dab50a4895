//! Sends again what was sent before, and everything new as it came. Takes a request and the memory; gives the bytes at
//! once: nothing is counted, nothing is decided. Never hides a block for the first time.

use std::sync::Arc;

use crate::{
    facts::facts,
    history::{BlockId, History},
    identity::{ChainHash, chain},
    json::{narrow, widen},
    memory::{Memory, Sent, StoredVerdict},
    plan::{Unit, edits_as_sent, edits_of, is_out, may_shorten, sent_fold, turns, units},
    recall::block_handle,
    units::Tokens,
    verdict::{Decision, Reason, Verdict},
    wire::write,
};

/// A request in which only earlier verdicts are repeated.
#[derive(Debug, Clone)]
pub struct Resent {
    /// The bytes to send.
    pub request: Vec<u8>,
    /// The request as it came.
    pub history: Arc<History>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) chain: Vec<ChainHash>,
}

impl Resent {
    /// Tells whether nothing is hidden.
    pub fn keeps_all(&self) -> bool {
        self.decisions.iter().all(|decision| decision.verdict == Verdict::Keep)
    }
}

/// Repeats the verdicts that memory holds for a request: what an edge sends when there is no time to plan.
pub fn resend(history: Arc<History>, memory: &Memory) -> Resent {
    let chain = chain(&history);
    let sent: Vec<Option<&Sent>> = chain.iter().map(|hash| memory.verdict(*hash)).collect();
    let folded = sent_fold(&history, &sent);
    let in_place: Vec<Decision> = (0..)
        .zip(&sent)
        .map(|(number, sent)| {
            let behind = folded.as_ref().is_none_or(|fold| number >= fold.end.0);
            let in_summary = matches!(
                sent,
                Some(
                    Sent::Shortened { reason: Reason::Folded { .. }, .. }
                        | Sent::NotAtAll { reason: Reason::Folded { .. } },
                )
            );
            repeated(BlockId(number), sent.filter(|_| !(in_summary && behind)))
        })
        .collect();
    let elsewhere = memory.hidden_elsewhere(&history, &chain, &sent);
    let all = with_rewritten(&history, &in_place, &elsewhere);
    let nothing = || (0..narrow(chain.len())).map(|number| repeated(BlockId(number), None)).collect();
    let decisions = [all, in_place].into_iter().find(|decisions| !is_torn(&history, decisions));
    let decisions = decisions.unwrap_or_else(nothing);
    let request = write(&history, &edits_of(&history, &decisions));
    Resent { request, history, decisions, chain }
}

/// Returns the bytes that were sent for a request, by what became of the blocks that were not sent whole and the block behind which a
/// cache marker was added.
pub fn as_sent(history: &History, hidden: &[(BlockId, StoredVerdict)], marker: Option<BlockId>) -> Vec<u8> {
    let keep =
        |number| Decision { block: BlockId(number), verdict: Verdict::Keep, reason: None, handle: None };
    let mut decisions: Vec<Decision> = (0..narrow(history.blocks().len())).map(keep).collect();
    for (block, stored) in hidden {
        let (verdict, reason) = match stored {
            StoredVerdict::Whole | StoredVerdict::WholeAgain => continue,
            StoredVerdict::Shortened { text, reason } => {
                (Verdict::Shorten { text: text.as_str().into(), tokens: Tokens::ZERO }, reason)
            }
            StoredVerdict::Dropped { reason } => (Verdict::Drop, reason),
        };
        if let Some(decision) = decisions.get_mut(widen(block.0)) {
            (decision.verdict, decision.reason) = (verdict, Some(reason.clone()));
        }
    }
    if decisions.iter().all(|decision| decision.verdict == Verdict::Keep) {
        return history.bytes().to_vec();
    }
    write(history, &edits_as_sent(history, &decisions, marker))
}

/// Decides that a block is sent as it was.
fn repeated(block: BlockId, sent: Option<&Sent>) -> Decision {
    let (verdict, reason) = match sent {
        // What a text counts is not asked here: only its bytes are used.
        Some(Sent::Shortened { text, reason }) => {
            (Verdict::Shorten { text: text.clone(), tokens: Tokens::ZERO }, Some(reason.clone()))
        }
        Some(Sent::NotAtAll { reason }) => (Verdict::Drop, Some(reason.clone())),
        Some(Sent::Whole | Sent::WholeAgain) | None => (Verdict::Keep, None),
    };
    Decision { block, verdict, reason, handle: None }
}

/// Adds what was hidden before the client rewrote what stands before it: texts where the protocol lets them stand, exchanges
/// where the whole of them was gone, pointers where what they point at is sent.
fn with_rewritten(history: &History, in_place: &[Decision], elsewhere: &[Option<&Sent>]) -> Vec<Decision> {
    let mut decisions = in_place.to_vec();
    for (decision, sent) in decisions.iter_mut().zip(elsewhere).filter(|(_, sent)| sent.is_some()) {
        *decision = repeated(decision.block, *sent);
        if matches!(decision.verdict, Verdict::Shorten { .. }) && !may_shorten(history, decision.block) {
            *decision = repeated(decision.block, None);
        }
    }
    if decisions.iter().zip(elsewhere).any(|(decision, sent)| sent.is_some() && is_out(decision)) {
        keep_parts_of_exchanges(history, &mut decisions, elsewhere);
    }
    let pointers: Vec<BlockId> = decisions.iter().zip(elsewhere).filter_map(lone_pointer).collect();
    for id in pointers {
        let target = match decisions.get(widen(id.0)).and_then(|decision| decision.reason.as_ref()) {
            Some(Reason::Shown { handle, .. }) => Some(handle.clone()),
            _ => history.block(id).map(|block| block_handle(history, block)),
        };
        let shows = |decision: &Decision| {
            decision.block < id
                && decision.verdict == Verdict::Keep
                && history.block(decision.block).map(|block| block_handle(history, block)) == target
        };
        if !decisions.iter().any(shows) {
            decisions.get_mut(widen(id.0)).into_iter().for_each(|decision| *decision = repeated(id, None));
        }
    }
    decisions
}

/// Returns a block whose note points at another, where the client rewrote what stands before it.
fn lone_pointer((decision, sent): (&Decision, &Option<&Sent>)) -> Option<BlockId> {
    let pointer = decision.reason.as_ref().is_some_and(Reason::is_pointer);
    (sent.is_some() && pointer).then_some(decision.block)
}

/// Keeps exchanges of which only a part would go.
fn keep_parts_of_exchanges(history: &History, decisions: &mut [Decision], elsewhere: &[Option<&Sent>]) {
    let units = units(history, &facts(history));
    for turn in turns(&units) {
        let gone = |id: &BlockId| decisions.get(widen(id.0)).is_some_and(is_out);
        let whole_turn = turn.iter().all(|unit| unit.turn_may_go && unit.blocks.iter().all(gone));
        let goes = |unit: &Unit| whole_turn || (unit.may_go && unit.blocks.iter().all(gone));
        let parts = turn.iter().filter(|unit| !goes(unit));
        let kept: Vec<BlockId> = parts.flat_map(|unit| unit.blocks.iter().copied()).collect();
        for id in kept {
            let added = elsewhere.get(widen(id.0)).is_some_and(Option::is_some);
            let decision = decisions.get_mut(widen(id.0)).filter(|decision| added && is_out(decision));
            let alone = |decision: &Decision| matches!(decision.reason, Some(Reason::Unbound { .. }));
            if let Some(decision) = decision.filter(|decision| !alone(decision)) {
                *decision = repeated(id, None);
            }
        }
    }
}

/// Tells whether a call would go without its result or the other way round.
fn is_torn(history: &History, decisions: &[Decision]) -> bool {
    let dropped = |number: u32| decisions.get(widen(number)).is_some_and(is_out);
    let partners = (0..narrow(history.blocks().len())).zip(history.blocks());
    partners
        .filter_map(|(number, block)| Some((number, block.partner?)))
        .any(|(number, partner)| dropped(number) != dropped(partner.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Millis, Policy, Settings, fit, parse};

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
        memory.sent(&first.plan, Millis(0));
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
        memory.resent(&resend(read(conversation(3)), &memory), Millis(5));
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
        memory.sent(&first.plan, Millis(0));
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
        memory.resent(&late, Millis(1));
        let later = fit(rewritten(9), &memory, &settings, Millis(2)).unwrap();
        let verdict =
            |decisions: &[Decision], block: u32| decisions.get(widen(block)).unwrap().verdict.clone();
        for block in before {
            let [was, is] =
                [first.plan.decisions(), later.plan.decisions()].map(|decisions| verdict(decisions, block));
            assert!(is == was || is == Verdict::Drop, "and so it stays, or goes: {was:?} {is:?}");
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
        memory.sent(&first.plan, Millis(0));
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
