//! A fitted request as messages. Takes the bytes of the original request and of the sent one; gives for every message to send
//! whether it is one of those that came, or its new bytes. Compares and scans; never parses what did not change.

use std::ops::Range;

use trimtab_core::{FittedRequest, Verdict};

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutgoingMessage {
    /// The message of this number, unchanged.
    Same(usize),
    /// Other bytes; of the message of this number, where they are one message's.
    Changed { number: Option<usize>, bytes: Range<usize> },
}

impl OutgoingMessage {
    /// Returns the number of the message that this is, or was.
    pub(crate) fn number(&self) -> Option<usize> {
        match self {
            OutgoingMessage::Same(number) => Some(*number),
            OutgoingMessage::Changed { number, .. } => *number,
        }
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageFate {
    Whole,
    Touched,
    Gone,
}

/// Finds the messages of a fitted request. `head` bytes precede the first message of the caller, and `lead` messages
/// that are not the caller's. Nothing where the bytes are not what was expected.
pub(crate) fn find_messages(
    fitted: &FittedRequest,
    places: &[Range<usize>],
    head: usize,
    lead: usize,
) -> Option<Vec<OutgoingMessage>> {
    let (came, sends) = (fitted.history.bytes(), fitted.request.as_slice());
    if fitted.plan.keeps_all() && came == sends {
        return Some((0..places.len()).map(OutgoingMessage::Same).collect());
    }
    if came.get(..head)? != sends.get(..head)? {
        return None;
    }
    let fates = message_fates(fitted, lead, places.len());
    let numbers: Vec<usize> =
        (0..).zip(&fates).filter(|(_, fate)| **fate != MessageFate::Gone).map(|(number, _)| number).collect();
    // A summary precedes the first message after those that it replaces.
    let mut summary = summary_before(fitted, lead);
    let is_folded = summary.is_some();
    let mut sent = Vec::with_capacity(places.len());
    let mut next = 0;
    let mut at = skip_comma(sends, head);
    while sends.get(at).is_some_and(|byte| *byte != b']') {
        let as_it_came = |number: &usize| end_of_repeated(came.get(places.get(*number)?.clone())?, sends, at);
        let expected = numbers.get(next).copied();
        // Where a summary is joined to its neighbours, the messages before and after it are not there by themselves.
        let ahead =
            numbers.get(next..).unwrap_or_default().iter().take(if is_folded { numbers.len() } else { 1 });
        let found =
            (0..).zip(ahead).find_map(|(skipped, number)| Some((skipped, *number, as_it_came(number)?)));
        if let Some((skipped, number, end)) = found {
            next += skipped + 1;
            sent.push(OutgoingMessage::Same(number));
            at = skip_comma(sends, end);
            continue;
        }
        let end = element_end(sends, at)?;
        let is_summary = summary.is_some_and(|before| expected.is_none_or(|number| number >= before));
        let touched =
            expected.filter(|number| fates.get(*number) == Some(&MessageFate::Touched) && !is_summary);
        if is_summary {
            summary = None;
        }
        next += usize::from(touched.is_some());
        sent.push(OutgoingMessage::Changed { number: touched, bytes: at..end });
        at = skip_comma(sends, end);
    }
    // Every message that was to be sent was found, or the bytes are not understood.
    (is_folded || next == numbers.len()).then_some(sent)
}

/// Returns the number of the first message after a summary.
fn summary_before(fitted: &FittedRequest, lead: usize) -> Option<usize> {
    let messages = fitted.plan.decisions().iter().find_map(|decision| match decision.verdict {
        Verdict::Fold { messages, .. } => usize::try_from(messages).ok(),
        _ => None,
    });
    messages.map(|messages| messages.saturating_sub(lead))
}

/// Returns what the plan says of each message of the caller.
fn message_fates(fitted: &FittedRequest, lead: usize, count: usize) -> Vec<MessageFate> {
    let history = &fitted.history;
    let first = history.entries().len() - history.messages().len() + lead;
    let mut fates: Vec<Option<MessageFate>> = vec![None; count];
    for decision in fitted.plan.decisions() {
        let Some(block) = history.block(decision.block) else { continue };
        let number = usize::try_from(block.entry.0).ok().and_then(|entry| entry.checked_sub(first));
        let Some(fate) = number.and_then(|number| fates.get_mut(number)) else { continue };
        *fate = Some(match (*fate, &decision.verdict) {
            (None | Some(MessageFate::Whole), Verdict::Keep) => MessageFate::Whole,
            (None | Some(MessageFate::Gone), verdict) if verdict.is_gone() => MessageFate::Gone,
            (_, _) => MessageFate::Touched,
        });
    }
    fates.into_iter().map(|fate| fate.unwrap_or(MessageFate::Whole)).collect()
}

/// Returns where a message ends that is here unchanged.
fn end_of_repeated(message: &[u8], sends: &[u8], at: usize) -> Option<usize> {
    let end = at + message.len();
    let is_same = sends.get(at..end)? == message && matches!(sends.get(end), Some(b',' | b']'));
    is_same.then_some(end)
}

fn skip_comma(bytes: &[u8], at: usize) -> usize {
    at + usize::from(bytes.get(at) == Some(&b','))
}

/// Returns where the object that begins here ends.
fn element_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut place = at;
    loop {
        match bytes.get(place)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            b'"' => place = string_end(bytes, place)?,
            _ => {}
        }
        place += 1;
    }
}

/// Returns where the closing quote of the string that begins here stands.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut place = at + 1;
    loop {
        let quote = place + memchr::memchr(b'"', bytes.get(place..)?)?;
        let slashes = bytes.get(at + 1..quote)?.iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Some(quote);
        }
        place = quote + 1;
    }
}
