//! Sends again what was sent before, and everything new as it came. Takes a request and the memory; gives the bytes at
//! once: nothing is counted, nothing is decided. Never hides a block for the first time.

use std::sync::Arc;

use crate::{
    count::Tokens,
    history::{BlockId, History},
    json::{narrow, widen},
    memory::{ChainHash, Memory, Sent, chain},
    plan::{Decision, Reason, Verdict, edits_of, is_out, sent_fold},
    wire::{Format, WireError, parse, parse_as, write},
};

/// A request in which only earlier verdicts are repeated.
#[derive(Debug, Clone)]
pub struct Resent {
    /// The bytes to send.
    pub request: Vec<u8>,
    /// The request as it came.
    pub history: History,
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
///
/// # Errors
/// Says what is wrong where the bytes are not a request.
pub fn resend(
    request: impl Into<Arc<Vec<u8>>>,
    memory: &Memory,
    format: Option<Format>,
) -> Result<Resent, WireError> {
    let history = match format {
        Some(format) => parse_as(request, format)?,
        None => parse(request)?,
    };
    let chain = chain(&history);
    let sent: Vec<Option<&Sent>> = chain.iter().map(|hash| memory.verdict(*hash)).collect();
    let folded = sent_fold(&history, &sent);
    let mut decisions: Vec<Decision> = (0..)
        .zip(&sent)
        .map(|(number, sent)| {
            let behind = folded.as_ref().is_none_or(|fold| number >= fold.end.0);
            let (verdict, reason) = match sent {
                Some(
                    Sent::Shortened { reason: Reason::Folded { .. }, .. }
                    | Sent::NotAtAll { reason: Reason::Folded { .. } },
                ) if behind => (Verdict::Keep, None),
                // What a text counts is not asked here: only its bytes are used.
                Some(Sent::Shortened { text, reason }) => {
                    (Verdict::Shorten { text: text.clone(), tokens: Tokens::ZERO }, Some(reason.clone()))
                }
                Some(Sent::NotAtAll { reason }) => (Verdict::Drop, Some(reason.clone())),
                Some(Sent::Whole) | None => (Verdict::Keep, None),
            };
            Decision { block: BlockId(number), verdict, reason, handle: None }
        })
        .collect();
    if is_torn(&history, &decisions) {
        for decision in &mut decisions {
            (decision.verdict, decision.reason) = (Verdict::Keep, None);
        }
    }
    let request = write(&history, &edits_of(&history, &decisions));
    Ok(Resent { request, history, decisions, chain })
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
    use crate::{Millis, Policy, Settings, fit};

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
        assert_eq!(resend(conversation(8), &memory, None).unwrap().request, first.request);
        let longer = resend(conversation(9), &memory, None).unwrap();
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
        let resent = resend(conversation(3), &Memory::default(), None).unwrap();
        assert_eq!(resent.request, conversation(3));
        assert!(resent.keeps_all());
    }

    #[test]
    fn what_was_sent_again_counts_as_sent() {
        let mut memory = Memory::default();
        memory.resent(&resend(conversation(3), &memory, None).unwrap(), Millis(5));
        assert!(!memory.is_empty());
    }
}
