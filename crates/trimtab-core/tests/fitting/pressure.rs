//! What `steady` hides where the cache is cold and once the budget is exceeded, and how far it goes.

use serde_json::{Value, json};
use trimtab_core::{BlockKind, Format, Memory, Millis, Policy, Settings, Tokens, Verdict, fit};

/// A request with these calls and what each gave.
fn request(calls: impl IntoIterator<Item = (&'static str, Value, String)>) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Go on."})];
    for (number, (tool, arguments, text)) in calls.into_iter().enumerate() {
        let id = format!("call_{number}");
        messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": tool, "arguments": arguments.to_string()}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes()
}

/// A file of so many lines that is read.
fn read(file: usize, lines: usize) -> (&'static str, Value, String) {
    let text = (0..lines).map(|line| format!("    let value_{line} = compute({file}, {line});\n")).collect();
    ("read_file", json!({"path": format!("src/file_{file}.rs")}), text)
}

/// Reads of twelve files, none of them old enough to be hidden for its age.
fn twelve_reads() -> Vec<u8> {
    request((0..12).map(|file| read(file, 100)))
}

/// Returns what the request counts under a budget of nine tenths of it, in percent of the budget.
fn fills(low_water: f64) -> u64 {
    let fit_with = |budget: Option<Tokens>| {
        let policy =
            Policy::shipped_with("steady", &[("low_water".to_owned(), low_water)]).expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat).with_budget(budget);
        fit(twelve_reads(), &Memory::default(), &settings, Millis(0)).expect("a fit")
    };
    let whole = fit_with(None);
    assert!(whole.plan.keeps_all(), "nothing is hidden without pressure");
    let budget = whole.plan.before().scale(0.9);
    fit_with(Some(budget)).plan.after().0 * 100 / budget.0
}

#[test]
fn results_are_hidden_down_to_the_low_water_mark_and_not_much_further() {
    for (low_water, percent) in [(0.95, 95), (0.85, 85), (0.7, 70)] {
        let filled = fills(low_water);
        // One result is a tenth of the budget.
        assert!(filled <= percent && filled + 12 > percent, "{low_water}: {filled}");
    }
}

/// Sends a conversation call by call; gives, for each request, what it counts in percent of the budget and whether it changes what was
/// sent before.
fn sent_one_by_one(calls: &[(&'static str, Value, String)], budget: Tokens) -> Vec<(u64, bool)> {
    let policy = Policy::find_shipped("steady").expect("a policy");
    let settings = Settings::new(policy).with_format(Format::Chat).with_budget(budget);
    let mut memory = Memory::default();
    (1..=calls.len())
        .map(|count| {
            let now = Millis(i64::try_from(count).expect("few") * 1000);
            let bytes = request(calls.iter().take(count).cloned());
            let fitted = fit(bytes, &memory, &settings, now).expect("a fit");
            memory.remember_sent(&fitted.plan, now);
            (fitted.plan.after().0 * 100 / budget.0, fitted.plan.cache_break().is_some())
        })
        .collect()
}

#[test]
fn after_room_was_made_the_next_requests_change_nothing() {
    let calls: Vec<_> = (0..60).map(|file| read(file, 40)).collect();
    let all = sent_one_by_one(&calls, Tokens(1_000_000));
    assert!(all.iter().all(|(_, changes)| !changes), "there is room enough");
    let sent = sent_one_by_one(&calls, Tokens(14_000));
    let cuts: Vec<usize> = (0..sent.len()).filter(|number| sent[*number].1).collect();
    assert!(cuts.len() > 3 && sent.iter().all(|(percent, _)| *percent <= 100), "{sent:?}");
    assert!(cuts.iter().all(|number| sent[*number].0 <= 93), "{sent:?}");
    // One result is less than four hundredths of the budget.
    assert!(cuts.windows(2).all(|pair| pair[1] - pair[0] >= 2), "{cuts:?}");
}

#[test]
fn what_a_shell_was_told_goes_before_what_was_read() {
    let script = |number: usize| {
        let line = |line: usize| format!("echo part {number} of {line}, {}\n", line * 31 % 97);
        ("bash", json!({"command": (0..60).map(line).collect::<String>()}), "done".to_owned())
    };
    let calls: Vec<_> = (0..4).map(script).chain((0..8).map(|file| read(file, 40))).collect();
    let bytes = request(calls.iter().cloned());
    let fit_with = |budget, inputs| {
        let set = [("inputs_under_pressure", inputs), ("cold_low_water", 1.0), ("inputs", 0.0)];
        let set = set.map(|(name, value)| (name.to_owned(), value));
        let policy = Policy::shipped_with("steady", &set).expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat).with_cold_cache().with_budget(budget);
        fit(bytes.clone(), &Memory::default(), &settings, Millis(0)).expect("a fit")
    };
    let budget = Some(fit_with(None, 1.0).plan.before().scale(0.85));
    let hidden = |inputs| {
        let fitted = fit_with(budget, inputs);
        let pairs = fitted.history.blocks().iter().zip(fitted.plan.decisions());
        let hidden = pairs.filter(|(_, decision)| matches!(decision.verdict, Verdict::Shorten { .. }));
        hidden.map(|(block, _)| block.kind).collect::<Vec<_>>()
    };
    let (with, without) = (hidden(1.0), hidden(0.0));
    assert!(!with.is_empty() && with.iter().all(|kind| *kind == BlockKind::Call), "{with:?}");
    assert!(!without.contains(&BlockKind::Call), "switched off: {without:?}");
}

/// Fits into a budget; gives the numbers of the results that are hidden.
fn hidden(calls: &[(&'static str, Value, String)], share: f64) -> Vec<usize> {
    let fitted = |budget| {
        let set = [("low_water", 1.0), ("cold_low_water", 1.0), ("largest_output", 0.0)];
        let set = set.map(|(name, value)| (name.to_owned(), value));
        let policy = Policy::shipped_with("steady", &set).expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat).with_cold_cache().with_budget(budget);
        fit(request(calls.iter().cloned()), &Memory::default(), &settings, Millis(0)).expect("a fit").plan
    };
    let budget = fitted(None).before().scale(share);
    let plan = fitted(Some(budget));
    let history = trimtab_core::parse(request(calls.iter().cloned())).expect("a request");
    let results = history.blocks().iter().zip(plan.decisions());
    let results = results.filter(|(block, _)| block.kind == BlockKind::Result).enumerate();
    results.filter(|(_, (_, decision))| decision.verdict != Verdict::Keep).map(|(number, _)| number).collect()
}

#[test]
fn of_results_that_were_seen_the_large_one_goes_before_smaller_older_ones() {
    let calls = [read(0, 30), read(1, 30), read(2, 300), read(3, 30), read(4, 30)];
    assert_eq!(hidden(&calls, 0.8), [2]);
}

#[test]
fn of_equal_results_the_oldest_goes_first_and_the_latest_not_at_all() {
    let calls = [read(0, 100), read(1, 100), read(2, 100), read(3, 100)];
    assert_eq!(hidden(&calls, 0.8), [0]);
}

#[test]
fn an_older_view_of_a_file_that_was_changed_goes_before_a_larger_newer_one() {
    let edit =
        ("edit_file", json!({"path": "src/file_0.rs", "old_string": "value_1", "new_string": "value"}));
    let (tool, arguments) = edit;
    let calls = [
        read(0, 30),
        (tool, arguments, "The file was changed.".to_owned()),
        read(0, 300),
        read(1, 30),
        read(2, 30),
    ];
    assert_eq!(hidden(&calls, 0.7), [0, 2]);
}

#[test]
fn each_rule_of_what_is_shortened_at_once_can_be_switched_off() {
    const SWITCHES: [&str; 4] = ["birth_copies", "birth_lines", "birth_logs", "birth_repeats"];
    let run = |command: &str, text: String| ("bash", json!({"command": command}), text);
    let report = |lines: std::ops::Range<usize>| -> String {
        lines.map(|line| format!("the report says {line} about part {}\n", line * 7)).collect()
    };
    let log: String = (0..200).map(|test| format!("test part_{test}::works ... ok\n")).collect();
    let lasts = [
        run("./report --again", report(0..60)),
        run("./report --part", report(20..50) + "and no more\n"),
        run("cargo test", format!("running 200 tests\n{log}test result: ok. 200 passed\n")),
        run("./wait", "still waiting for the other side\n".repeat(60)),
    ];
    // What came last was never sent before, and is not old.
    let is_whole = |last: usize, on: Option<usize>| {
        let set: Vec<(String, f64)> = SWITCHES
            .iter()
            .enumerate()
            .map(|(number, switch)| ((*switch).to_owned(), f64::from(u8::from(on == Some(number)))))
            .collect();
        let policy = Policy::shipped_with("steady", &set).expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat);
        let calls = [run("./report", report(0..60)), run("./other", report(100..190)), lasts[last].clone()];
        let fitted = fit(request(calls), &Memory::default(), &settings, Millis(0)).expect("a fit");
        fitted.plan.decisions().last().is_some_and(|decision| decision.verdict == Verdict::Keep)
    };
    for (number, switch) in SWITCHES.iter().enumerate() {
        assert!(!is_whole(number, Some(number)), "{switch} shortens");
        assert!(is_whole(number, None), "{switch} is all that does");
    }
}

/// Lines of a file with their numbers.
fn numbered(file: usize, from: usize, count: usize, line: &str) -> String {
    (from..from + count).map(|number| format!("{number:>6}\t    {line}({file}, {number});\n")).collect()
}

#[test]
fn the_newest_view_of_a_file_that_somebody_else_changed_stays_while_an_older_one_is_in_sight() {
    // There is room for all: what a command printed is old at the third result, a file that was read is not.
    let steps = "about = \"A test.\"\n[[step]]\nwhen = \"pays\"\nselect = { shows = [\"shell-file\"], results_after = 3 }\ndo = \"names\"\n";
    let policy = std::sync::Arc::new(Policy::from_toml("test", steps, &[]).expect("a policy"));
    let hidden_with = |file: usize, from: usize| {
        let read_once =
            ("read_file", json!({"path": "src/file_0.rs"}), numbered(0, 1, 60, "let value = compute"));
        let command = format!("cat -n src/file_{file}.rs | sed -n '{from},{}p'", from + 29);
        let printed =
            ("bash", json!({"command": command}), numbered(file, from, 30, "let other = calculate"));
        let calls = [read_once, printed, read(2, 30), read(3, 30), read(4, 30)];
        let settings =
            Settings::new(std::sync::Arc::clone(&policy)).with_format(Format::Chat).with_cold_cache();
        let fitted = fit(request(calls), &Memory::default(), &settings, Millis(0)).expect("a fit");
        let results = fitted.history.blocks().iter().zip(fitted.plan.decisions());
        let results = results.filter(|(block, _)| block.kind == BlockKind::Result).enumerate();
        results
            .filter(|(_, (_, decision))| decision.verdict != Verdict::Keep)
            .map(|(number, _)| number)
            .collect::<Vec<_>>()
    };
    assert!(hidden_with(0, 20).is_empty(), "it shows other lines in the same place");
    assert_eq!(hidden_with(0, 80), [1], "it shows another place");
    assert_eq!(hidden_with(1, 20), [1], "it shows another file");
}

#[test]
fn a_turn_with_a_result_that_is_pinned_stays() {
    let pins = "base = 'ladder'\n[[step]]\nwhen = 'always'\nselect = { tools = ['read_file'] }\ndo = 'pin'\n";
    let settings =
        Settings::new(Policy::from_toml("pins.toml", pins, &[]).expect("a policy")).with_format(Format::Chat);
    let settings = settings.with_budget(Tokens(100));
    let said = |text: &str| json!({"role": "user", "content": text});
    let mut messages = Vec::new();
    for file in 0..3 {
        let request: Value = serde_json::from_slice(&request([read(file, 50)])).expect("a request");
        messages.extend(request["messages"].as_array().expect("messages").clone());
        messages.push(json!({"role": "assistant", "content": "Read."}));
    }
    messages.push(said("And now?"));
    let bytes = json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes();
    let fitted = fit(bytes, &Memory::default(), &settings, Millis(0)).expect("a fit");
    let sent = String::from_utf8(fitted.request).expect("text");
    assert!((0..3).all(|file| sent.contains(&format!("compute({file}, 49)"))), "{sent}");
    assert!(fitted.plan.floor().is_some(), "what cannot go is named");
}

/// The policies that keep to a budget.
fn keeping_policies() -> impl Iterator<Item = &'static str> {
    trimtab_core::policy::policies().map(|(name, _)| name).filter(|name| *name != "none")
}

/// Fits calls into a share of what they count; gives the texts of the results as they are sent, nothing for those that are not.
fn sent_results(
    policy: &str,
    set: &[(String, f64)],
    calls: &[(&'static str, Value, String)],
    share: f64,
) -> Vec<Option<String>> {
    let bytes = request(calls.iter().cloned());
    let policy = Policy::shipped_with(policy, set).expect("a policy");
    let settings = Settings::new(policy).with_format(Format::Chat).with_cold_cache();
    let whole = fit(bytes.clone(), &Memory::default(), &settings, Millis(0)).expect("a fit").plan.before();
    let settings = settings.with_budget(whole.scale(share));
    let fitted = fit(bytes, &Memory::default(), &settings, Millis(0)).expect("a fit");
    assert!(fitted.plan.floor().is_none(), "there is room enough");
    let sent: Value = serde_json::from_slice(&fitted.request).expect("JSON");
    let messages = sent["messages"].as_array().expect("messages");
    (0..calls.len())
        .map(|number| {
            let id = format!("call_{number}");
            let result = messages.iter().find(|message| message["tool_call_id"] == id.as_str())?;
            Some(result["content"].as_str().expect("text").to_owned())
        })
        .collect()
}

#[test]
fn the_newest_result_stays_whole_while_an_older_one_can_go() {
    // The newest is larger than all the others together, and there is room for it alone.
    let calls = [read(0, 60), read(1, 60), read(2, 60), read(3, 300)];
    for policy in keeping_policies() {
        let off = [("largest_output".to_owned(), 0.0)];
        let set: &[(String, f64)] = if policy.starts_with("steady") { &off } else { &[] };
        let sent = sent_results(policy, set, &calls, 0.75);
        assert_eq!(sent[3].as_ref(), Some(&calls[3].2), "{policy}");
        assert!(sent[..3].iter().zip(&calls).any(|(sent, call)| sent.as_ref() != Some(&call.2)), "{policy}");
    }
}

#[test]
fn of_a_new_result_that_does_not_fit_as_much_stays_as_does() {
    let calls = [read(0, 20), read(1, 600)];
    for policy in keeping_policies() {
        let sent = sent_results(policy, &[], &calls, 0.5);
        let newest = sent[1].as_deref().expect("it is sent");
        assert!(newest.lines().count() > 60, "{policy}: {newest}");
    }
}

#[test]
fn one_output_over_a_share_of_the_budget_is_shortened_by_its_kind_before_it_is_sent() {
    let log: String = (0..400).map(|test| format!("test part_{test}::works ... ok\n")).collect();
    let log = format!("running 400 tests\n{log}test result: ok. 400 passed; 0 failed\n");
    let calls = [read(0, 200), read(1, 200), ("bash", json!({"command": "make check"}), log)];
    let share = |largest: f64| {
        let set = [("largest_output", largest), ("birth_logs", 0.0), ("birth_repeats", 0.0)];
        let set = set.map(|(name, value)| (name.to_owned(), value));
        sent_results("steady", &set, &calls, 2.0).pop().flatten().expect("it is sent")
    };
    assert_eq!(share(0.0), calls[2].2, "switched off");
    assert!(share(0.1).contains("400 passed") && share(0.1).len() < calls[2].2.len() / 4, "{}", share(0.1));
    assert_eq!(share(0.9), calls[2].2, "it is not that large");
}

#[test]
fn a_new_file_of_a_third_of_the_budget_is_seen_whole_once() {
    let calls = [read(0, 40), read(1, 40), read(2, 200)];
    // The budget is twice the request: the file takes 36 % of it.
    let sent = sent_results("steady", &[], &calls, 2.0);
    assert_eq!(sent[2].as_ref(), Some(&calls[2].2));
}

#[test]
fn of_two_equal_reads_one_stays() {
    let calls = [read(0, 60), read(1, 60), read(0, 60), read(2, 60)];
    let on = [("deduplication".to_owned(), 1.0), ("deduplication_threshold".to_owned(), 0.1)];
    for policy in ["supersede", "age", "per-tool", "recent"] {
        let sent = sent_results(policy, &on, &calls, 1.1);
        let whole = |number: usize| sent[number].as_ref() == Some(&calls[number].2);
        assert!(whole(0) ^ whole(2), "{policy}: {:?} {:?}", sent[0], sent[2]);
    }
}

#[test]
fn a_request_of_which_nothing_is_known_is_changed_only_where_it_is_new() {
    let calls: Vec<_> = (0..30).map(|file| read(file % 3, 40)).chain([read(0, 40)]).collect();
    let policy = Policy::find_shipped("steady").expect("a policy");
    let settings = Settings::new(policy).with_format(Format::Chat);
    let fit_with = |settings: &Settings| {
        fit(request(calls.iter().cloned()), &Memory::default(), settings, Millis(0)).expect("a fit").plan
    };
    let plan = fit_with(&settings);
    let changed: Vec<u32> = plan
        .decisions()
        .iter()
        .filter(|decision| decision.verdict != Verdict::Keep)
        .map(|decision| decision.block.0)
        .collect();
    let last = u32::try_from(plan.decisions().len() - 1).expect("few");
    assert_eq!(changed, [last], "the last result is a copy, and was never sent");
    assert!(plan.leaves_cache_alone(), "and that is said");
    let cold = fit_with(&settings.with_cold_cache());
    assert!(!cold.leaves_cache_alone() && cold.after() < plan.after());
}

/// Two files that were seen, and a log that came last.
fn two_files_and_a_log() -> Vec<u8> {
    let log = (0..300).map(|line| format!("step {line} took {} ms\n", line * 17 % 101)).collect();
    request([read(0, 300), read(1, 300), ("bash", json!({"command": "./build.sh"}), log)])
}

#[test]
fn a_conversation_that_is_warm_follows_a_budget_that_changes() {
    let mut warm = trimtab_core::WarmState::default();
    for budget in [9_000, 6_000, 4_000] {
        let policy = Policy::find_shipped("steady").expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat).with_budget(Tokens(budget));
        let cold = fit(two_files_and_a_log(), &Memory::default(), &settings, Millis(0)).expect("a fit");
        let warmly = trimtab_core::session::fit_warm(
            two_files_and_a_log(),
            &mut warm,
            &Memory::default(),
            &settings,
            Millis(0),
        );
        assert_eq!(warmly.expect("a fit").request, cold.request, "{budget}");
    }
}

#[test]
fn what_came_last_is_not_shortened_for_room_while_what_was_seen_can_go() {
    for (policy, _) in trimtab_core::policy::policies().filter(|(name, _)| *name != "none") {
        let fitted = |budget| {
            let policy = Policy::shipped_with(policy, &[]).expect("a policy");
            let settings = Settings::new(policy).with_format(Format::Chat).with_budget(budget);
            fit(two_files_and_a_log(), &Memory::default(), &settings, Millis(0)).expect("a fit").plan
        };
        let budget = fitted(None).before().scale(0.8);
        let plan = fitted(Some(budget));
        assert!(plan.after() <= budget, "{policy}");
        let last = plan.decisions().last().expect("a block");
        // It may be shortened for its size, and not for room.
        assert!(
            matches!(last.reason(), None | Some(trimtab_core::Reason::TooLong)),
            "{policy}: {:?}",
            last.reason()
        );
    }
}

#[test]
fn what_a_new_result_points_at_stays_while_something_else_can_go() {
    let report: String =
        (0..60).map(|line| format!("part {line} waits for part {}\n", line * 31 % 97)).collect();
    let run = |command: &str, text: &str| ("bash", json!({"command": command}), text.to_owned());
    let again = format!("{report}and that is all\n");
    let calls =
        || [run("./report", &report), read(0, 300), run("./other", "done"), run("./report -a", &again)];
    let fitted = |budget| {
        let policy = Policy::shipped_with("steady", &[("birth_lines".to_owned(), 1.0)]).expect("a policy");
        let settings = Settings::new(policy).with_budget(budget).with_format(Format::Chat).with_cold_cache();
        fit(request(calls()), &Memory::default(), &settings, Millis(0)).expect("a fit").plan
    };
    let before = fitted(None);
    let budget = before.after().scale(0.5);
    let plan = fitted(Some(budget));
    assert!(plan.after() <= budget);
    let reasons = |plan: &trimtab_core::Plan| {
        let results =
            plan.decisions().iter().filter(|decision| plan.tokens_of(decision.block).0 > Tokens(200));
        results.map(trimtab_core::Decision::reason).collect::<Vec<_>>()
    };
    let told = reasons(&plan);
    assert!(matches!(told.last(), Some(Some(trimtab_core::Reason::Shown { .. }))), "{told:?}");
    assert_eq!(told.first(), Some(&None), "{told:?}");
}

#[test]
fn a_copy_that_is_shown_makes_later_ones_redundant_though_the_first_copy_is_hidden() {
    let (tool, arguments, text) = read(0, 60);
    let calls = [
        (tool, arguments.clone(), text.clone()),
        (tool, arguments, text.clone()),
        ("bash", json!({"command": "./print.sh"}), text),
        read(1, 60),
    ];
    let set = [("deduplication_threshold".to_owned(), 0.1)];
    let policy = Policy::shipped_with("supersede", &set).expect("a policy");
    let settings =
        Settings::new(policy).with_format(Format::Chat).with_budget(Tokens(8_000)).with_cold_cache();
    let once = fit(request(calls), &Memory::default(), &settings, Millis(0)).expect("a fit");
    let results = once.history.blocks().iter().zip(once.plan.decisions());
    let results = results.filter(|(block, _)| block.kind == BlockKind::Result);
    let hidden: Vec<bool> = results.map(|(_, decision)| decision.verdict != Verdict::Keep).collect();
    assert_eq!(hidden, [true, false, true, false]);
    let twice = fit(once.request.clone(), &Memory::default(), &settings, Millis(0)).expect("a fit");
    assert_eq!(twice.request, once.request, "fitting again changes nothing");
}

#[test]
fn words_beside_a_result_do_not_become_the_beginning_of_a_loop_that_does_not_think() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": id}});
    let result = |id: &str| {
        let text: String = (0..80).map(|line| format!("{id} says {}\n", line * 37 % 101)).collect();
        json!({"type": "tool_result", "tool_use_id": id, "content": text})
    };
    let thinking = json!({"type": "thinking", "thinking": "First I look.", "signature": "c2ln"});
    let mut messages = vec![
        json!({"role": "user", "content": "Make the change."}),
        json!({"role": "assistant", "content": [thinking, call("a")]}),
        json!({"role": "user", "content": [result("a")]}),
        json!({"role": "assistant", "content": [call("b")]}),
        json!({"role": "user", "content": [result("b"), {"type": "text", "text": "No pull request."}]}),
    ];
    for id in ["c", "d", "e"] {
        messages.push(json!({"role": "assistant", "content": [call(id)]}));
        messages.push(json!({"role": "user", "content": [result(id)]}));
    }
    let input = json!({"model": "claude-opus-4-6", "max_tokens": 100, "messages": messages});
    stays_valid_under_every_budget(&input);
}

/// The turn in which the loop began with thinking does not go while a later one speaks beside its results.
#[test]
fn a_turn_stays_that_begins_a_loop_with_thinking_which_the_next_turns_go_on_with() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": id}});
    let result = |id: &str, times: usize| json!({"type": "tool_result", "tool_use_id": id, "content": format!("{id} says so\n").repeat(times)});
    let thinking = json!({"type": "thinking", "thinking": "First I look.", "signature": "c2ln"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut messages = vec![
        json!({"role": "user", "content": "Begin."}),
        json!({"role": "assistant", "content": [text("Done.")]}),
        json!({"role": "user", "content": "Make the change."}),
        json!({"role": "assistant", "content": [thinking, call("a")]}),
        json!({"role": "user", "content": [result("a", 60), text("No, the other one.")]}),
    ];
    for id in ["b", "c", "d"] {
        messages.push(json!({"role": "assistant", "content": [call(id)]}));
        messages.push(json!({"role": "user", "content": [result(id, 60)]}));
    }
    stays_valid_under_every_budget(
        &json!({"model": "claude-opus-4-6", "max_tokens": 100, "messages": messages}),
    );
}

/// Fits a request by every policy into many budgets, and has the checker judge what comes out.
fn stays_valid_under_every_budget(input: &Value) {
    for (policy, _) in trimtab_core::policy::policies() {
        for budget in (200..4000).step_by(200) {
            let settings =
                Settings::new(Policy::find_shipped(policy).expect("a policy")).with_budget(Tokens(budget));
            let settings = settings.with_format(Format::Anthropic).with_cold_cache();
            let bytes = input.to_string().into_bytes();
            let fitted = fit(bytes, &Memory::default(), &settings, Millis(0)).expect("a fit");
            let output: Value = serde_json::from_slice(&fitted.request).expect("JSON");
            let faults = crate::checker::new_faults("anthropic", input, &output);
            assert_eq!(faults, Vec::<String>::new(), "{policy} {budget}");
        }
    }
}
