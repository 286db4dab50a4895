//! A stored session whose requests differ in one thing each, at round prices of tokens.

use trimtab_core::{
    Policy, Settings, Usage, fit, misses::ChangedPlace, misses::MissReason, parse, prices::models,
};
use trimtab_store::{Append, Appended, SessionLabel, Sqlite};

use super::*;

/// One request: minutes since the first, its tool, its system prompt, what was said, and tokens read and written.
struct Sent<'a> {
    minutes: i64,
    tool: &'a str,
    system: &'a str,
    said: &'a [&'a str],
    read: u64,
    written: u64,
}

/// A request that goes on, with a marker at its end.
fn sent<'a>(minutes: i64, said: &'a [&'a str], read: u64, written: u64) -> Sent<'a> {
    Sent { minutes, tool: "reads a file", system: "You help.", said, read, written }
}

fn request(sent: &Sent<'_>) -> Vec<u8> {
    let last = sent.said.len().saturating_sub(1);
    let message = |(index, text): (usize, &&str)| {
        let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
        let marker = if index == last { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"{text}"{marker}}}]}}"#)
    };
    let messages: Vec<String> = sent.said.iter().enumerate().map(message).collect();
    format!(
        r#"{{"model":"claude-opus-4-8","max_tokens":99,"tools":[{{"name":"Read","description":"{}","input_schema":{{"type":"object"}}}}],"system":"{}","messages":[{}]}}"#,
        sent.tool,
        sent.system,
        messages.join(",")
    )
    .into_bytes()
}

/// Keeps requests with their usage; gives what is explained of the session of the last.
fn explain(all: &[Sent<'_>]) -> ExplainedRecording {
    let (_folder, store, last) = keep(all);
    explain_session(&store, last, &models()).expect("a session")
}

/// Keeps requests with their usage; gives the session of the last.
fn keep(all: &[Sent<'_>]) -> (tempfile::TempDir, Sqlite, SessionId) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("trimtab.db")).expect("a store");
    let settings = Settings::new(Policy::find_shipped("none").expect("a policy"));
    let mut last = SessionId(0);
    for sent in all {
        let (request, at) = (request(sent), Millis(sent.minutes * 60_000));
        let label = SessionLabel::with_name(Some("one conversation"));
        let known = store.recognize(&parse(request.clone()).expect("a request"), label).expect("the store");
        let fitted = fit(request, &known.memory, &settings, at).expect("a plan");
        let kept =
            store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, at)).expect("the store");
        let Appended::Stored { session, request } = kept else { panic!("nobody else writes") };
        let usage = Usage { cache_read: sent.read, cache_write: sent.written, ..Usage::default() };
        store.record_usage(request, &usage).expect("the store");
        last = session;
    }
    (folder, store, last)
}

/// Compares the number of each request that missed something, and the reason.
#[track_caller]
fn check(all: &[Sent<'_>], expected: &[(usize, &str)]) -> Vec<MissReason> {
    let explained = explain(all);
    let missed: Vec<(usize, MissReason)> = explained
        .requests
        .iter()
        .filter_map(|row| Some((row.request, row.miss.as_ref()?.reason.clone())))
        .collect();
    let found: Vec<(usize, &str)> = missed.iter().map(|(number, reason)| (*number, reason.name())).collect();
    assert_eq!(found, expected, "{missed:?}");
    missed.into_iter().map(|(_, reason)| reason).collect()
}

const ONE: [&str; 1] = ["Hi"];
const THREE: [&str; 3] = ["Hi", "Ho", "And?"];
const FIVE: [&str; 5] = ["Hi", "Ho", "And?", "So.", "Bye"];

#[test]
fn a_conversation_that_reads_what_it_left_misses_nothing() {
    check(&[sent(0, &ONE, 0, 5_000), sent(1, &THREE, 5_000, 100), sent(2, &FIVE, 5_100, 90)], &[]);
}

#[test]
fn a_pause_and_a_loss_are_told_apart_by_the_clock() {
    check(&[sent(0, &ONE, 0, 5_000), sent(5, &THREE, 0, 5_100)], &[(2, "expired")]);
    check(&[sent(0, &ONE, 0, 5_000), sent(4, &THREE, 0, 5_100)], &[(2, "lost-by-provider")]);
    // The request in between used it, so that it was kept for longer.
    let kept = [sent(0, &ONE, 0, 5_000), sent(4, &THREE, 5_000, 100), sent(8, &FIVE, 0, 5_200)];
    check(&kept, &[(3, "lost-by-provider")]);
}

#[test]
fn what_the_client_changed_is_named_and_shown() {
    // With another head it is another session of the store. The words of the model show that the conversation goes on.
    let begun = || [sent(0, &ONE, 0, 5_000), sent(1, &THREE, 5_000, 100)];
    let [one, two] = begun();
    let changed = Sent { system: "You help much.", ..sent(2, &FIVE, 0, 5_200) };
    let reasons = check(&[one, two, changed], &[(1, "client-change")]);
    let [MissReason::ClientChange(change)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(change.place, ChangedPlace::System);
    assert!(change.now.contains("much"), "{change:?}");

    let [one, two] = begun();
    let changed = Sent { tool: "reads files", ..sent(2, &FIVE, 0, 5_200) };
    let reasons = check(&[one, two, changed], &[(1, "client-change")]);
    let [MissReason::ClientChange(change)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(change.place, ChangedPlace::Tool("Read".to_owned()));
}

#[test]
fn a_message_that_the_client_wrote_otherwise_is_found() {
    let other = ["Hi", "Ho", "And what?", "So.", "Bye"];
    let all = [sent(0, &ONE, 0, 5_000), sent(1, &THREE, 5_000, 100), sent(2, &other, 3_000, 2_200)];
    let reasons = check(&all, &[(3, "client-change")]);
    let [MissReason::ClientChange(change)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(change.place, ChangedPlace::Message(3));
}

#[test]
fn looking_in_parts_finds_the_same_as_looking_at_once() {
    let other = ["Hi", "Ho", "And what?", "So.", "Bye"];
    let all = [sent(0, &ONE, 0, 5_000), sent(9, &THREE, 0, 5_100), sent(10, &other, 3_000, 2_200)];
    let (_folder, store, session) = keep(&all);
    let whole = explain_session(&store, session, &models()).expect("a session");
    let requests = store.requests(session).expect("requests");
    let mut known = KnownMisses::default();
    for looks in 1..=3 {
        // Time for one request.
        let before = std::cell::Cell::new(0);
        let is_over = || before.replace(before.get() + 1) > 0;
        let part = explain_requests(&store, &requests, &models(), &mut known, is_over).expect("a part");
        assert_eq!(part.requests.len(), looks);
    }
    let never = explain_requests(&store, &requests, &models(), &mut known, || true).expect("all");
    assert_eq!(never.summary, whole.summary, "nothing is left to be read");
    assert_eq!(never.summary.requests_with_misses, 2);
}
