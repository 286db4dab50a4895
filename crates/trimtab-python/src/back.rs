//! A fitted request as messages. Takes the request's bytes as they came and as they are sent; gives for every message to send
//! whether it is one of those that came, or its new bytes. Compares and scans; never parses what did not change.

use std::ops::Range;

use trimtab::{Fitted, Verdict};

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The message of this number, as it came.
    Same(usize),
    /// Other bytes; of the message of this number, where they are one message's.
    Changed { number: Option<usize>, bytes: Range<usize> },
}

impl Sent {
    /// Returns the number of the message that this is, or was.
    pub(crate) fn number(&self) -> Option<usize> {
        match self {
            Sent::Same(number) => Some(*number),
            Sent::Changed { number, .. } => *number,
        }
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Whole,
    Touched,
    Gone,
}

/// Finds the messages of a fitted request. `head` bytes stand before the first message of the caller, and `lead` messages
/// that are not the caller's. Nothing where the bytes are not what was expected.
pub(crate) fn messages(
    fitted: &Fitted,
    places: &[Range<usize>],
    head: usize,
    lead: usize,
) -> Option<Vec<Sent>> {
    let (came, sends) = (fitted.history.bytes(), fitted.request.as_slice());
    if fitted.plan.keeps_all() && came == sends {
        return Some((0..places.len()).map(Sent::Same).collect());
    }
    if came.get(..head)? != sends.get(..head)? {
        return None;
    }
    let mut sent = Vec::with_capacity(places.len());
    let fates = fates(fitted, lead, places.len());
    let mut at = skip_comma(sends, head);
    let mut numbers =
        places.iter().zip(&fates).enumerate().filter(|(_, (_, fate))| **fate != Fate::Gone).peekable();
    while sends.get(at).is_some_and(|byte| *byte != b']') {
        let expected = numbers.peek().map(|(number, (place, fate))| (*number, (*place).clone(), **fate));
        if let Some((number, place, _)) = &expected
            && let Some(end) = repeated(came.get(place.clone())?, sends, at)
        {
            numbers.next();
            sent.push(Sent::Same(*number));
            at = skip_comma(sends, end);
            continue;
        }
        let end = element(sends, at)?;
        let number = match expected {
            Some((number, _, Fate::Touched)) => {
                numbers.next();
                Some(number)
            }
            // A message that nobody sent: it stands for others.
            Some((_, _, Fate::Whole | Fate::Gone)) | None => None,
        };
        sent.push(Sent::Changed { number, bytes: at..end });
        at = skip_comma(sends, end);
    }
    // Every message that was to be sent was found, or the bytes are not understood.
    numbers.next().is_none().then_some(sent)
}

/// Returns what the plan says of each message of the caller.
fn fates(fitted: &Fitted, lead: usize, count: usize) -> Vec<Fate> {
    let history = &fitted.history;
    let first = history.entries().len() - history.messages().len() + lead;
    let mut fates: Vec<Option<Fate>> = vec![None; count];
    for decision in fitted.plan.decisions() {
        let Some(block) = history.block(decision.block) else { continue };
        let number = usize::try_from(block.entry.0).ok().and_then(|entry| entry.checked_sub(first));
        let Some(fate) = number.and_then(|number| fates.get_mut(number)) else { continue };
        *fate = Some(match (*fate, &decision.verdict) {
            (None | Some(Fate::Whole), Verdict::Keep) => Fate::Whole,
            (None | Some(Fate::Gone), Verdict::Drop) => Fate::Gone,
            (_, Verdict::Keep | Verdict::Shorten { .. } | Verdict::Drop) => Fate::Touched,
        });
    }
    fates.into_iter().map(|fate| fate.unwrap_or(Fate::Whole)).collect()
}

/// Returns where a message ends that stands here as it came.
fn repeated(message: &[u8], sends: &[u8], at: usize) -> Option<usize> {
    let end = at + message.len();
    let is_same = sends.get(at..end)? == message && matches!(sends.get(end), Some(b',' | b']'));
    is_same.then_some(end)
}

fn skip_comma(bytes: &[u8], at: usize) -> usize {
    at + usize::from(bytes.get(at) == Some(&b','))
}

/// Returns where the object that begins here ends.
fn element(bytes: &[u8], at: usize) -> Option<usize> {
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
