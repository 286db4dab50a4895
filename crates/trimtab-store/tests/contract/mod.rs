//! What every engine promises. Takes a way to open an empty store; each function here is one promise.

pub(crate) mod scopes;
pub(crate) mod sent;
pub(crate) mod wishes;

use trimtab_core::{Millis, SentVerdict, Usage, Verdict, block_handle, block_original, fit, parse};
use trimtab_store::{
    Append, Appended, ForgetSelection, RunMode, SessionLabel, Store, StoreError, StoredSummary,
};

use crate::common::{
    Said, fit_and_keep, keep, keep_named, long, model, remembered, request, search, settings, tool, user,
    working,
};

/// Writes one test for each promise, with a store from `$open`.
macro_rules! contract {
    ($open:path: $($promise:ident)*) => {
        $(#[test] fn $promise() { contract::$promise(&*$open().1); })*
    };
    ($open:path: $($part:ident::$promise:ident)*) => {
        $(#[test] fn $promise() { contract::$part::$promise(&*$open().1); })*
    };
}
pub(crate) use contract;

fn session(store: &dyn Store, said: &[Said], at: i64) -> String {
    keep(store, said, at).session.to_string()
}

pub(crate) fn a_request_comes_back_byte_for_byte(store: &dyn Store) {
    let mut kept = Vec::new();
    for steps in 0..12 {
        let said = working(steps);
        kept.push((keep(store, &said, 1).request, request(&said)));
    }
    for (id, bytes) in kept {
        assert_eq!(String::from_utf8(store.request(id).unwrap().bytes), String::from_utf8(bytes));
    }
}

pub(crate) fn markers_that_move_change_nothing_but_themselves(store: &dyn Store) {
    // As Anthropic's clients do: the last message carries the marker, and only it.
    let at = |count: usize| {
        let message = |index: usize| {
            let marker = if index + 1 == count { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
            let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
            format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"message {index}"{marker}}}]}}"#)
        };
        let messages: Vec<String> = (0..count).map(message).collect();
        format!(
            r#"{{"system":"s","max_tokens":9,"messages":[{}],"tools":[{{"name":"t"}}]}}"#,
            messages.join(",")
        )
    };
    let none = settings("none", 1000);
    let all: Vec<_> = (1..10).step_by(2).map(|count| at(count).into_bytes()).collect();
    let kept: Vec<_> =
        all.iter().map(|bytes| fit_and_keep(store, bytes.clone(), &none, 1, None).unwrap()).collect();
    for (kept, bytes) in kept.iter().zip(&all) {
        assert_eq!(store.request(kept.request).unwrap().bytes, *bytes);
    }
    assert_eq!(store.sessions().unwrap().len(), 1);
    // Five messages of the user, four of the model, one system prompt, one tool.
    assert_eq!(store.disk_usage().unwrap().blocks, 11);
}

pub(crate) fn every_block_can_be_recalled(store: &dyn Store) {
    let kept = keep(store, &working(3), 1);
    let history = &kept.fitted.history;
    for block in history.blocks() {
        let original = store.recall(&block_handle(history, block)).unwrap();
        assert_eq!(original, *block_original(history, block));
    }
}

pub(crate) fn identical_content_is_kept_once(store: &dyn Store) {
    let said = |times| [vec![user("Go.")], vec![tool("make", &long(1)); times]].concat();
    keep(store, &said(1), 1);
    let once = store.disk_usage().unwrap().block_bytes;
    keep(store, &said(9), 2);
    let more = store.disk_usage().unwrap().block_bytes - once;
    assert!(more < 9 * 120, "{more} bytes for the same result eight times more");
}

pub(crate) fn what_is_hidden_is_remembered_with_its_reason(store: &dyn Store) {
    let kept = fit_and_keep(store, request(&working(20)), &settings("recent", 20_000), 1, None).unwrap();
    let hidden: Vec<(u32, SentVerdict)> = (0..)
        .zip(SentVerdict::of_plan(&kept.fitted.plan))
        .filter(|(_, verdict)| *verdict != SentVerdict::WHOLE)
        .collect();
    assert!(hidden.len() > 3, "the policy hides: {hidden:?}");
    let stored = store.request(kept.request).unwrap();
    assert_eq!(stored.hidden, hidden);
    assert_eq!(stored.info.tokens_before, kept.fitted.plan.before().0);
    assert_eq!(stored.info.tokens_after, kept.fitted.plan.after().0);
}

pub(crate) fn memory_is_that_of_the_process_that_wrote_it(store: &dyn Store) {
    let settings = settings("recent", 20_000);
    let mut memory = trimtab_core::Memory::default();
    for steps in [12, 16, 20] {
        let kept = fit_and_keep(store, request(&working(steps)), &settings, 1, None).unwrap();
        memory.remember_sent(&kept.fitted.plan, Millis(1));
    }
    let history = parse(request(&working(20))).unwrap();
    let known = store.recognize(&history, SessionLabel::default()).unwrap();
    assert_eq!(remembered(&known.memory), remembered(&memory));
    assert!(memory.total_cost().raw > 0.0);
    assert_eq!(known.memory.total_cost(), memory.total_cost());
    assert_eq!(known.known_blocks, history.blocks().len());
    let placed = store.find_place(&history, history.chain(), SessionLabel::default()).unwrap();
    assert!(placed.memory.is_empty());
    assert_eq!(
        (placed.session, placed.after, placed.known_blocks, placed.seen),
        (known.session, known.after, known.known_blocks, known.seen)
    );
}

pub(crate) fn a_hidden_block_is_hidden_in_the_same_words_for_ever(store: &dyn Store) {
    let first = fit_and_keep(store, request(&working(20)), &settings("recent", 20_000), 1, None).unwrap();
    let later = fit_and_keep(store, request(&working(21)), &settings("none", 1_000_000), 2, None).unwrap();
    let said = |plan: &trimtab_core::Plan, count: usize| -> Vec<Verdict> {
        plan.decisions().iter().take(count).map(|decision| decision.verdict.clone()).collect()
    };
    let blocks = first.fitted.history.blocks().len();
    assert_eq!(said(&later.fitted.plan, blocks), said(&first.fitted.plan, blocks));
    assert_eq!(first.session, later.session);
}

pub(crate) fn the_first_verdict_wins_between_processes(store: &dyn Store) {
    let bytes = request(&working(20));
    let history = parse(bytes.clone()).unwrap();
    let known = store.recognize(&history, SessionLabel::default()).unwrap();
    // Another process is faster, and hides.
    let first = fit_and_keep(store, bytes.clone(), &settings("recent", 20_000), 1, None).unwrap();
    let fitted = fit(bytes, &known.memory, &settings("none", 1_000_000), Millis(1)).unwrap();
    let done = store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(1))).unwrap();
    let Appended::SaidBefore { verdicts, .. } = done else { panic!("two processes said two things") };
    let hidden = first.fitted.plan.decisions().iter().filter(|decision| decision.verdict != Verdict::Keep);
    assert_eq!(verdicts.len(), hidden.count());
    assert_eq!(store.requests(first.session).unwrap().len(), 1, "nothing was kept of the second");
}

pub(crate) fn a_conversation_goes_on_in_its_session(store: &dyn Store) {
    let one = [user("Hi"), model("Ho"), user("And?")];
    assert_eq!(session(store, &one[..1], 1), "s1");
    assert_eq!(session(store, &one, 2), "s1");
    assert_eq!(store.sessions().unwrap()[0].requests, 2);
}

pub(crate) fn another_try_of_the_same_request_is_the_same_session(store: &dyn Store) {
    assert_eq!(session(store, &[user("Hi")], 1), "s1");
    assert_eq!(session(store, &[user("Hi")], 2), "s1");
}

pub(crate) fn the_same_words_after_an_answer_begin_a_new_session(store: &dyn Store) {
    let first = keep(store, &[user("Hi")], 1);
    store.record_usage(first.request, &Usage { input: 5, ..Usage::default() }).unwrap();
    assert_eq!(session(store, &[user("Hi")], 2), "s2");
    assert_eq!(session(store, &[user("Hi"), model("Two"), user("a")], 3), "s2");
    // The first one goes on later, with another answer: only its beginning identifies it.
    assert_eq!(session(store, &[user("Hi"), model("One"), user("b")], 4), "s1");
}

pub(crate) fn two_conversations_with_one_beginning_stay_apart(store: &dyn Store) {
    assert_eq!(session(store, &[user("First task")], 1), "s1");
    assert_eq!(session(store, &[user("Second task")], 2), "s2");
    assert_eq!(session(store, &[user("First task"), model("a"), user("b")], 3), "s1");
    assert_eq!(session(store, &[user("Second task"), model("a"), user("b")], 4), "s2");
}

pub(crate) fn the_same_conversation_held_again_is_a_session_of_its_own(store: &dyn Store) {
    let said = [user("Hi"), model("Ho"), user("And?"), model("So."), user("Bye")];
    for run in 1..=2 {
        for length in [1, 3, 5] {
            let kept = keep(store, &said[..length], run);
            assert_eq!(kept.session.to_string(), format!("s{run}"), "run {run}, {length} messages");
            store.record_usage(kept.request, &Usage::default()).unwrap();
        }
    }
}

pub(crate) fn a_branch_stays_in_its_session(store: &dyn Store) {
    assert_eq!(session(store, &[user("Hi"), model("Ho"), user("left")], 1), "s1");
    assert_eq!(session(store, &[user("Hi"), model("Ho"), user("right")], 2), "s1");
    assert_eq!(session(store, &[user("Hi"), model("Ho"), user("left"), model("l"), user("on")], 3), "s1");
    assert_eq!(session(store, &[user("Hi"), model("Ho"), user("right"), model("r"), user("on")], 4), "s1");
}

pub(crate) fn a_rewritten_history_is_still_known_by_its_beginning(store: &dyn Store) {
    let said = [user("Hi"), tool("a", "1"), tool("b", "2"), tool("c", "3")];
    keep(store, &said, 1);
    let mut rewritten = said.clone();
    rewritten[3] = tool("c", "[cleared]");
    let rewritten = [&rewritten[..], &[tool("d", "4")]].concat();
    assert_eq!(session(store, &rewritten, 2), "s1");
}

pub(crate) fn a_compacted_history_is_a_new_session_under_the_same_name(store: &dyn Store) {
    let said = [user("Hi"), model("Ho"), user("And?")];
    let before = keep_named(store, &said, 1, Some("abc"));
    let after = keep_named(store, &[user("Summary: we said Hi and Ho.")], 2, Some("abc"));
    assert_ne!(before.session, after.session);
    let names: Vec<_> = store.sessions().unwrap().into_iter().map(|session| session.name).collect();
    assert_eq!(names, [Some("abc".to_owned()), Some("abc".to_owned())]);
}

pub(crate) fn sub_agents_side_by_side_keep_to_their_own(store: &dyn Store) {
    let mut agents: Vec<Vec<Said>> = (0..4).map(|agent| vec![user(&format!("task {agent}"))]).collect();
    for round in 0..5 {
        for (number, said) in agents.iter_mut().enumerate() {
            let kept = keep_named(store, said, round, Some("same name"));
            assert_eq!(kept.session.0, i64::try_from(number).unwrap() + 1, "round {round}");
            said.push(tool("look", &format!("{number} {round}")));
        }
    }
}

pub(crate) fn a_name_tells_equal_beginnings_apart(store: &dyn Store) {
    let name = |name, said: &[Said], at| keep_named(store, said, at, Some(name)).session.to_string();
    assert_eq!(name("a", &[user("Hi")], 1), "s1");
    assert_eq!(name("b", &[user("Hi")], 2), "s2");
    assert_eq!(name("a", &[user("Hi"), model("1"), user("x")], 3), "s1");
    assert_eq!(name("b", &[user("Hi"), model("2"), user("x")], 4), "s2");
    // Resumed under a new name: what was said tells.
    assert_eq!(name("c", &[user("Hi"), model("2"), user("x"), model("3"), user("y")], 5), "s2");
}

pub(crate) fn usage_and_times_are_summed_for_each_session(store: &dyn Store) {
    let said = [user("Hi"), model("Ho"), user("And?")];
    let usage = Usage { input: 3, cache_read: 1000, cache_write: 20, cache_write_1h: 10, output: 7 };
    for (length, at) in [(1, 100), (3, 200)] {
        store.record_usage(keep(store, &said[..length], at).request, &usage).unwrap();
    }
    keep(store, &[user("Other")], 150);
    let sessions = store.sessions().unwrap();
    assert_eq!(sessions.iter().map(|session| session.last.0).collect::<Vec<_>>(), [200, 150], "newest first");
    let first = &sessions[0];
    assert_eq!((first.first.0, first.requests, first.model.as_deref()), (100, 2, Some("gpt-5")));
    assert_eq!((first.usage.input, first.usage.cache_read, first.usage.output), (6, 2000, 14));
    let requests = store.requests(first.id).unwrap();
    assert_eq!(requests.iter().map(|request| request.usage).collect::<Vec<_>>(), [Some(usage); 2]);
    assert_eq!(requests.iter().map(|request| request.at.0).collect::<Vec<_>>(), [100, 200]);
}

pub(crate) fn pings_are_kept_with_their_request_and_are_no_requests(store: &dyn Store) {
    let kept = keep(store, &[user("Hi")], 100);
    let usage = Usage { cache_read: 100_000, output: 1, ..Usage::default() };
    let pings = [(100 + 280_000, usage), (100 + 560_000, Usage { input: 7, ..usage })];
    for (at, usage) in pings {
        store.record_ping(kept.request, Millis(at), &usage).unwrap();
    }
    let requests = store.requests(kept.session).unwrap();
    let found: Vec<_> = requests[0].pings.iter().map(|ping| (ping.at.0, ping.usage)).collect();
    assert_eq!((requests.len(), found.as_slice()), (1, &pings[..]));
    assert_eq!(requests[0].usage, None, "what the request itself used is still unknown");
}

pub(crate) fn what_is_reported_again_takes_the_place_of_the_first_report(store: &dyn Store) {
    // A stream tells what was read in at its beginning and what was written at its end.
    let kept = keep(store, &[user("Hi")], 1);
    let begun = Usage { input: 9, cache_read: u64::from(u32::MAX), ..Usage::default() };
    let ended = Usage { output: 70_000, ..begun };
    for usage in [begun, ended] {
        store.record_usage(kept.request, &usage).unwrap();
    }
    assert_eq!(store.request(kept.request).unwrap().info.usage, Some(ended));
    assert_eq!(store.sessions().unwrap()[0].usage, ended, "not summed twice");
}

pub(crate) fn summaries_are_kept_in_order(store: &dyn Store) {
    let kept = keep(store, &[user("Hi")], 1);
    let through = kept.fitted.history.chain()[0];
    let summary = |at, text: &str| StoredSummary { at: Millis(at), through, text: text.to_owned() };
    let all = [summary(1, "They greeted."), summary(2, "They greeted again.")];
    all.iter().for_each(|summary| store.add_summary(kept.session, summary).unwrap());
    assert_eq!(store.summaries(kept.session).unwrap(), all);
    let unknown = store.add_summary(trimtab_store::SessionId(99), &all[0]).unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownSession(_)), "{unknown}");
}

pub(crate) fn search_finds_the_best_block_first(store: &dyn Store) {
    let said = [
        user("Why does the parser fail?"),
        tool(
            "cat a",
            "nothing here\nthe parser is mentioned once in a long text\nand other things\nand more of them\n",
        ),
        tool("cat b", "parser_error: unexpected token\nparser gave up: token"),
        tool("cat c", "no such thing"),
    ];
    keep(store, &said, 1);
    let found = search(store, "parser token", 10).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].line, found[0].text.as_str()), (1, "parser_error: unexpected token"));
    assert!(store.recall(&found[0].handle).unwrap().starts_with(b"parser_error"));
    let found = search(store, "PARSER", 10).unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].text.starts_with("parser_error"), "twice in a short text is best: {found:?}");
    assert_eq!(search(store, "absent", 10).unwrap(), []);
    assert_eq!(search(store, "\"'*-", 10).unwrap(), [], "signs are no words");
    // What comes later is found as well.
    keep(store, &[&said[..], &[tool("d", "a late zebra")]].concat(), 2);
    assert_eq!(search(store, "zebra", 10).unwrap().len(), 1);
}

pub(crate) fn forgetting_one_session_leaves_the_others_whole(store: &dyn Store) {
    let shared = tool("make", &long(1));
    let one = keep(store, &[user("one"), shared.clone(), tool("a", "only in one, secretword")], 1);
    let two = [user("two"), shared, tool("b", "only in two")];
    let kept = keep(store, &two, 2);
    assert_eq!(search(store, "secretword", 9).unwrap().len(), 1);
    let told = store.forget(&ForgetSelection::Sessions(vec![one.session]), RunMode::DryRun).unwrap();
    assert_eq!((told.sessions.len(), store.sessions().unwrap().len()), (1, 2), "a dry run does nothing");
    store.forget(&ForgetSelection::Sessions(vec![one.session]), RunMode::Do).unwrap();
    assert_eq!(store.sessions().unwrap().len(), 1);
    assert_eq!(search(store, "secretword", 9).unwrap(), []);
    assert_eq!(store.request(kept.request).unwrap().bytes, request(&two));
    let gone =
        one.fitted.history.blocks().last().map(|block| block_handle(&one.fitted.history, block)).unwrap();
    assert!(matches!(store.recall(&gone), Err(StoreError::UnknownHandle(_))));
    assert!(matches!(store.requests(one.session), Err(StoreError::UnknownSession(_))));
    store.check_contents().unwrap();
    // The other goes on, and what is new is found.
    keep(store, &[&two[..], &[tool("c", "newword")]].concat(), 3);
    assert_eq!(search(store, "newword", 9).unwrap().len(), 1);
}

pub(crate) fn a_verdict_that_two_sessions_share_outlives_one_of_them(store: &dyn Store) {
    let hide = settings("recent", 20_000);
    let one = fit_and_keep(store, request(&working(20)), &hide, 1, Some("a")).unwrap();
    store.record_usage(one.request, &Usage::default()).unwrap();
    keep_named(store, &working(0), 2, Some("b"));
    let two = fit_and_keep(store, request(&working(20)), &hide, 3, Some("b")).unwrap();
    assert_ne!(one.session, two.session);
    let hidden = store.request(two.request).unwrap().hidden;
    assert!(!hidden.is_empty());
    store.forget(&ForgetSelection::Sessions(vec![one.session]), RunMode::Do).unwrap();
    assert_eq!(store.request(two.request).unwrap().hidden, hidden);
    store.check_contents().unwrap();
}

pub(crate) fn old_sessions_are_forgotten_first(store: &dyn Store) {
    for number in 0..6_usize {
        keep(
            store,
            &[user(&format!("task {number}")), tool("x", &long(number))],
            i64::try_from(number).unwrap(),
        );
    }
    let left = || store.sessions().unwrap().iter().map(|session| session.last.0).collect::<Vec<_>>();
    store.forget(&ForgetSelection::OlderThan(Millis(2)), RunMode::Do).unwrap();
    assert_eq!(left(), [5, 4, 3, 2]);
    let size = store.disk_usage().unwrap().bytes;
    assert_eq!(store.forget(&ForgetSelection::LargerThan(size * 2), RunMode::Do).unwrap().sessions.len(), 0);
    let told = store.forget(&ForgetSelection::LargerThan(size - 1), RunMode::DryRun).unwrap();
    assert_eq!(told.sessions.iter().map(|session| session.last.0).collect::<Vec<_>>(), [2]);
    store.forget(&ForgetSelection::LargerThan(0), RunMode::Do).unwrap();
    assert_eq!(left(), [0; 0]);
    assert_eq!(store.disk_usage().unwrap().blocks, 0);
    store.check_contents().unwrap();
}

pub(crate) fn tidying_changes_nothing_that_is_read(store: &dyn Store) {
    let mut said = vec![user("Go.")];
    let mut kept = Vec::new();
    for step in 0..60 {
        let output: String = (0..8).map(|part| long(step * 8 + part)).collect();
        said.push(tool(&format!("make {step}"), &output));
        kept.push((keep(store, &said, 1).request, request(&said)));
    }
    let before = store.disk_usage().unwrap().bytes;
    let tidied = store.tidy().unwrap();
    assert!(store.disk_usage().unwrap().bytes < before, "what is freed is given back");
    assert!(tidied.pieces > 10, "{tidied:?}");
    for (id, bytes) in &kept {
        assert_eq!(store.request(*id).unwrap().bytes, *bytes);
    }
    store.check_contents().unwrap();
    store.forget(&ForgetSelection::LargerThan(0), RunMode::Do).unwrap();
    assert_eq!(store.check_contents().unwrap(), trimtab_store::CheckedCounts::default());
}

pub(crate) fn what_is_not_there_is_named(store: &dyn Store) {
    keep(store, &[user("Hi")], 1);
    let fault = |error: StoreError| error.to_string();
    assert!(
        fault(store.recall("0123456789ab").unwrap_err()).contains("no block has the handle 0123456789ab")
    );
    assert!(fault(store.recall("nonsense").unwrap_err()).contains("nonsense is not a handle"));
    assert!(fault(store.recall("'; DROP TABLE").unwrap_err()).contains("is not a handle"));
    assert!(fault(store.request(trimtab_store::RequestId(77)).unwrap_err()).contains("no request 77"));
    let unknown =
        store.forget(&ForgetSelection::Sessions(vec![trimtab_store::SessionId(8)]), RunMode::Do).unwrap_err();
    assert!(fault(unknown).contains("no session s8"));
    let ping = store.record_ping(trimtab_store::RequestId(77), Millis(0), &Usage::default()).unwrap_err();
    assert!(matches!(ping, StoreError::UnknownRequest(77)));
    let usage = store.record_usage(trimtab_store::RequestId(77), &Usage::default()).unwrap_err();
    assert!(fault(usage).contains("no request 77"));
}

/// What a new process would know of a conversation of so many steps.
fn known_after(store: &dyn Store, steps: usize) -> Vec<String> {
    let history = parse(request(&working(steps))).unwrap();
    remembered(&store.recognize(&history, SessionLabel::default()).unwrap().memory)
}

pub(crate) fn what_a_provider_refused_was_never_sent(store: &dyn Store) {
    let hiding = settings("ladder", 7_000);
    let send = |steps, at| fit_and_keep(store, request(&working(steps)), &hiding, at, None).unwrap();
    send(12, 1_000);
    let accepted = known_after(store, 24);
    let sent = send(24, 2_000);
    let if_accepted = known_after(store, 24);
    assert_ne!(if_accepted, accepted);
    store.record_refusal(sent.request).unwrap();
    assert_eq!(known_after(store, 24), accepted);
    assert_eq!(store.request(sent.request).unwrap().sent_bytes().unwrap(), sent.fitted.request);
    // Another try says the same; it is refused too, and the third is accepted.
    let again = send(24, 3_000);
    assert_eq!((again.session, &again.fitted.request), (sent.session, &sent.fitted.request));
    store.record_refusal(again.request).unwrap();
    assert_eq!(known_after(store, 24), accepted);
    send(24, 4_000);
    assert_eq!(known_after(store, 24), if_accepted);
    store.check_contents().unwrap();
    assert!(matches!(
        store.record_refusal(trimtab_store::RequestId(999)),
        Err(StoreError::UnknownRequest(999))
    ));
}

pub(crate) fn a_verdict_after_two_refused_ones_is_the_one_before_them(store: &dyn Store) {
    let send = |policy, budget, at| {
        fit_and_keep(store, request(&working(24)), &settings(policy, budget), at, None).unwrap()
    };
    let accepted = known_after(store, 24);
    // Two tries under way at once, the later one hides more; the earlier one is refused first.
    let (first, second) = (send("ladder", 12_000, 1_000), send("ladder", 5_000, 1_001));
    assert_ne!(first.fitted.request, second.fitted.request);
    store.record_refusal(first.request).unwrap();
    store.record_refusal(second.request).unwrap();
    assert_eq!(known_after(store, 24), accepted);
}
