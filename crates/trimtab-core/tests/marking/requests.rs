//! Requests of every format, with and without markers, and what is inserted into them.

use trimtab_core::{
    Format, Memory, Millis, Policy, Settings, Tokens, Verdict,
    account::ReturnCounts,
    chain, find_model, fit,
    markers::{CacheFields, MarkerField, MarkerTerms, choose_fields, place_of_next_edit},
    parse_as,
};

use crate::read;

/// Digits of the hash in a key.
const DIGITS: usize = 32;

const CONTROL: CacheFields = CacheFields { marker: Some(MarkerField::CacheControl), key: false };
const OPENAI: CacheFields = CacheFields { marker: Some(MarkerField::Breakpoint), key: true };
const SEEN: ReturnCounts = ReturnCounts { in_time: 0, late: 0 };

const MARKED: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn add(request: &str, format: Format, accepts: CacheFields, model: &str, returns: ReturnCounts) -> String {
    let history = read(request, format);
    let model = find_model(model).expect("a model");
    let terms = MarkerTerms {
        accepts,
        model: Some(&model),
        tokens: Tokens(50_000),
        returns,
        blocks_after_edit: None,
    };
    let added = choose_fields(&history, &history, &terms);
    String::from_utf8(added.write_into(request.as_bytes())).expect("UTF-8")
}

/// A text that is long enough for any cache.
fn long(word: &str) -> String {
    format!("{word} ").repeat(3000)
}

/// Checks what a request of Anthropic's becomes. `#` in the expected text is where a marker is inserted.
#[track_caller]
fn check(request: &str, expected: &str) {
    assert_eq!(
        add(request, Format::Anthropic, CONTROL, "claude-opus-5", SEEN),
        expected.replace('#', MARKED)
    );
}

/// A conversation with steps of so many calls each, without any marker.
fn steps(calls: &[usize]) -> String {
    let mut messages = vec![r#"{"role":"user","content":"Go."}"#.to_owned()];
    let mut number = 0;
    for count in calls {
        let ids: Vec<usize> = (number..number + count).collect();
        number += count;
        let uses =
            ids.iter().map(|id| format!(r#"{{"type":"tool_use","id":"c{id}","name":"ls","input":{{}}}}"#));
        let uses: Vec<String> = uses.collect();
        messages.push(format!(r#"{{"role":"assistant","content":[{}]}}"#, uses.join(",")));
        let results = ids.iter().map(|id| {
            format!(
                r#"{{"type":"tool_result","tool_use_id":"c{id}","content":"result {id} {}"}}"#,
                "x".repeat(600)
            )
        });
        let results: Vec<String> = results.collect();
        messages.push(format!(r#"{{"role":"user","content":[{}]}}"#, results.join(",")));
    }
    let tools = format!(r#"[{{"name":"ls","description":"{}","input_schema":{{}}}}]"#, long("tool"));
    format!(
        r#"{{"max_tokens":9,"tools":{tools},"system":"{}","messages":[{}]}}"#,
        long("system"),
        messages.join(",")
    )
}

/// Returns the numbers of the blocks that are marked.
fn marked_blocks(request: &str, blocks_after_edit: Option<usize>) -> Vec<usize> {
    let history = read(request, Format::Anthropic);
    let model = find_model("claude-opus-5").expect("a model");
    let terms = MarkerTerms {
        accepts: CONTROL,
        model: Some(&model),
        tokens: Tokens(50_000),
        returns: SEEN,
        blocks_after_edit,
    };
    let added = choose_fields(&history, &history, &terms);
    let sent = added.write_into(history.bytes());
    let again = parse_as(sent, Format::Anthropic).expect("a request");
    assert_eq!(again.blocks().len(), history.blocks().len());
    assert_eq!(chain(&again), chain(&history), "markers change nothing that is said");
    again.blocks().iter().enumerate().filter(|(_, block)| block.marked).map(|(number, _)| number).collect()
}

#[test]
fn tools_system_and_the_end_are_marked() {
    let (tool, system) = (long("tool"), long("system"));
    check(
        &format!(
            r#"{{"max_tokens":9,"tools":[{{"name":"ls","description":"{tool}"}}],"system":"{system}","messages":[{{"role":"user","content":"Hi"}}]}}"#
        ),
        &format!(
            r##"{{"max_tokens":9,"tools":[{{"name":"ls","description":"{tool}"#}}],"system":[{{"type":"text","text":"{system}"#}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"Hi"#}}]}}]}}"##
        ),
    );
}

#[test]
fn blocks_in_lists_are_marked_where_they_end() {
    let system = long("system");
    check(
        &format!(
            r#"{{"max_tokens":9,"tools":[{{"name":"ls"}}],"system":[{{"type":"text","text":"{system}"}} ],"messages":[{{"role":"user","content":[{{"type":"text","text":"Hi"}},{{"type":"image","source":{{}} }}]}}]}}"#
        ),
        &format!(
            r##"{{"max_tokens":9,"tools":[{{"name":"ls"}}],"system":[{{"type":"text","text":"{system}"#}} ],"messages":[{{"role":"user","content":[{{"type":"text","text":"Hi"}},{{"type":"image","source":{{}} #}}]}}]}}"##
        ),
    );
}

#[test]
fn what_cannot_carry_a_marker_carries_none() {
    let tool = long("tool");
    // A deferred tool, a blank text, thinking: the marker goes to what precedes them.
    check(
        &format!(
            r#"{{"max_tokens":9,"tools":[{{"name":"ls","description":"{tool}"}},{{"name":"rm","defer_loading":true}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"Hi"}},{{"type":"text","text":" \n"}}]}}]}}"#
        ),
        &format!(
            r##"{{"max_tokens":9,"tools":[{{"name":"ls","description":"{tool}"#}},{{"name":"rm","defer_loading":true}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"Hi"#}},{{"type":"text","text":" \n"}}]}}]}}"##
        ),
    );
}

#[test]
fn clients_that_mark_anything_keep_exactly_theirs() {
    let system = long("system");
    for own in [
        r#""cache_control":{"type":"ephemeral"},"system":"s","#.to_owned(),
        format!(
            r#""system":[{{"type":"text","text":"{system}","cache_control":{{"type":"ephemeral","ttl":"1h"}}}}],"#
        ),
    ] {
        let request = format!(
            r#"{{"max_tokens":9,{own}"tools":[{{"name":"ls"}}],"messages":[{{"role":"user","content":"{system}"}}]}}"#
        );
        check(&request, &request);
    }
    // A marker inside a result counts too; the words in a text, or in what a tool is called with, do not.
    let inside = format!(
        r#"{{"max_tokens":9,"tools":[{{"name":"ls"}}],"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":[{{"type":"text","text":"{system}","cache_control":{{"type":"ephemeral"}}}}]}}]}}]}}"#
    );
    check(&inside, &inside);
    let words = format!(
        r##"{{"max_tokens":9,"tools":[{{"name":"ls"}}],"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"ls","input":{{"cache_control":1}}}}]}},{{"role":"user","content":[{{"type":"text","text":"\"cache_control\" {system}"#}}]}}]}}"##
    );
    check(&words.replace('#', ""), &words);
    // A marker that is null marks nothing, and its block takes no other.
    let null = format!(
        r##"{{"max_tokens":9,"tools":[{{"name":"ls"}}],"system":[{{"type":"text","text":"{system}","cache_control":null}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"{system}"#}}]}}]}}"##
    );
    check(&null.replace('#', ""), &null);
}

#[test]
fn the_end_of_the_request_before_is_marked_where_the_end_is_too_far_from_it() {
    // Tool, system and the user's words are the first three blocks.
    let ends = |calls: &[usize]| marked_blocks(&steps(calls), None);
    assert_eq!(ends(&[1]), [0, 1, 4]);
    assert_eq!(ends(&[1, 1]), [0, 1, 6]);
    assert_eq!(ends(&[1, 9]), [0, 1, 22], "18 blocks after the end before");
    assert_eq!(ends(&[1, 10]), [0, 1, 4, 24], "20 blocks after it");
    assert_eq!(ends(&[1, 10, 1]), [0, 1, 26], "and not again");
}

#[test]
fn the_place_before_the_next_edit_takes_the_place_of_the_least() {
    assert_eq!(marked_blocks(&steps(&[1, 1, 1, 1]), Some(6)), [0, 1, 4, 10]);
    assert_eq!(marked_blocks(&steps(&[1, 1, 10]), Some(20)), [0, 1, 6, 26], "that is the end before");
    assert_eq!(marked_blocks(&steps(&[1, 1, 1, 10]), Some(24)), [1, 4, 8, 28], "four at most");
    assert_eq!(marked_blocks(&steps(&[1]), Some(99)), [0, 1, 4]);
}

#[test]
fn a_request_that_goes_on_is_marked_where_the_one_before_was_but_at_its_end() {
    for calls in [&[1, 1, 1][..], &[2, 3, 4], &[9, 9]] {
        let before = marked_blocks(&steps(calls.split_last().expect("a step").1), None);
        let now = marked_blocks(&steps(calls), None);
        let (last, head) = now.split_last().expect("a marker");
        assert!(before.starts_with(head) && last > before.last().expect("a marker"), "{before:?}, {now:?}");
    }
}

#[test]
fn a_single_question_is_not_marked_and_a_conversation_that_goes_on_is() {
    let marks = |fields: &str, answered: bool, returns: ReturnCounts| {
        let said = if answered {
            r#",{"role":"assistant","content":"a"},{"role":"user","content":"b"}"#
        } else {
            ""
        };
        let request = format!(
            r#"{{"max_tokens":9,{fields}"messages":[{{"role":"user","content":"{}"}}{said}]}}"#,
            long("a")
        );
        add(&request, Format::Anthropic, CONTROL, "claude-opus-5", returns) != request
    };
    let (tools, forced) = (
        r#""tools":[{"name":"ls"}],"#,
        r#""tools":[{"name":"ls"}],"tool_choice":{"type":"tool","name":"ls"},"#,
    );
    assert_eq!([marks("", false, SEEN), marks("", true, SEEN)], [false, true]);
    assert_eq!(
        [marks(tools, false, SEEN), marks(forced, false, SEEN), marks(forced, true, SEEN)],
        [true, false, true]
    );
    // A write costs .25 more, a read .9 less: 28 % must come in time.
    let late = |late: u64, in_time: u64| ReturnCounts { in_time, late };
    let of_agents: Vec<bool> = (0..5).map(|count| marks(tools, true, late(count, 0))).collect();
    assert_eq!(of_agents, [true, true, true, false, false]);
    let of_chats: Vec<bool> = (0..4).map(|count| marks("", true, late(count, 0))).collect();
    assert_eq!(of_chats, [true, true, false, false]);
    assert!(marks("", true, late(5, 3)) && !marks("", true, late(9, 1)));
}

#[test]
fn what_is_shorter_than_a_cache_takes_is_left_alone() {
    let request = r#"{"max_tokens":9,"tools":[{"name":"ls"}],"messages":[{"role":"user","content":"Hi"}]}"#;
    check(request, request);
    let history = read(&steps(&[1]), Format::Anthropic);
    let model = find_model("claude-opus-4-6").expect("a model");
    for (tokens, markers) in [(4095, 0), (4096, 3)] {
        let terms = MarkerTerms {
            accepts: CONTROL,
            model: Some(&model),
            tokens: Tokens(tokens),
            returns: SEEN,
            blocks_after_edit: None,
        };
        assert_eq!(choose_fields(&history, &history, &terms).markers(), markers, "{tokens} tokens");
    }
}

#[test]
fn a_chat_with_a_claude_is_marked_at_instructions_and_results() {
    let system = long("system");
    let result = "r".repeat(3000);
    let chat = |text: &str, one: &str, list: &str| {
        format!(
            r#"{{"tools":[{{"type":"function","function":{{"name":"ls"}}}}],"messages":[{{"role":"system","content":{text}}},{{"role":"user","content":"Go."}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"ls","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":{one}}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"d","type":"function","function":{{"name":"ls","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"d","content":{list}}}]}}"#
        )
    };
    let (quoted, one) = (format!("\"{system}\""), format!("\"{result}\""));
    let list = |mark: &str| format!(r#"[{{"type":"text","text":"{result}"{mark}}}]"#);
    let marked = format!(r#"[{{"type":"text","text":"{system}"{MARKED}}}]"#);
    let sent = add(&chat(&quoted, &one, &list("")), Format::Chat, CONTROL, "claude-opus-5", SEEN);
    assert_eq!(sent, chat(&marked, &one, &list(MARKED)));
    let sent = add(&chat(&quoted, &one, &one), Format::Chat, CONTROL, "claude-opus-5", SEEN);
    assert_eq!(sent, chat(&marked, &one, &list(MARKED)));
}

#[test]
fn openai_gets_a_breakpoint_after_its_instructions_and_a_key() {
    let system = long("system");
    let breakpoint = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;
    for (format, list, kind) in
        [(Format::Chat, "messages", "text"), (Format::Responses, "input", "input_text")]
    {
        let request = format!(
            r#"{{"model":"m","{list}":[{{"role":"developer","content":"{system}"}},{{"role":"user","content":"Go."}}]}}"#
        );
        let sent = add(&request, format, OPENAI, "gpt-5.6-sol", SEEN);
        let expected = format!(
            r#"{{"model":"m","{list}":[{{"role":"developer","content":[{{"type":"{kind}","text":"{system}"{breakpoint}}}]}},{{"role":"user","content":"Go."}}],"prompt_cache_key":"trimtab-"#
        );
        assert!(sent.starts_with(&expected) && sent.len() == expected.len() + DIGITS + 2, "{sent}");
        // Models before charge nothing for a write, and keep any prefix.
        let older = add(&request, format, OPENAI, "gpt-5", SEEN);
        assert!(!older.contains("breakpoint") && older.contains("prompt_cache_key"), "{older}");
        let own = request.replacen(
            '{',
            r#"{"prompt_cache_key":"k","prompt_cache_options":{"mode":"implicit"},"#,
            1,
        );
        assert_eq!(add(&own, format, OPENAI, "gpt-5.6-sol", SEEN), own);
    }
}

#[test]
fn the_key_is_the_same_for_a_session_and_another_for_another() {
    let key = |question: &str, more: &str| {
        let request = format!(
            r#"{{"messages":[{{"role":"system","content":"s"}},{{"role":"user","content":"{question}"}}{more}]}}"#
        );
        let sent = add(&request, Format::Chat, CacheFields { marker: None, key: true }, "gpt-5", SEEN);
        sent.split_once("prompt_cache_key").expect("a key").1.to_owned()
    };
    let more = r#",{"role":"assistant","content":"a"},{"role":"user","content":"b"}"#;
    assert_eq!(key("q", ""), key("q", more));
    assert_ne!(key("q", ""), key("p", ""));
}

#[test]
fn servers_that_take_none_get_none() {
    let request = steps(&[1]);
    assert_eq!(add(&request, Format::Anthropic, CacheFields::default(), "claude-opus-5", SEEN), request);
    // A model whose cache needs none, and one that is charged otherwise.
    assert_eq!(add(&request, Format::Anthropic, CONTROL, "deepseek-v4-pro", SEEN), request);
}

#[test]
fn the_next_edit_is_expected_after_the_last_one() {
    let request = steps(&[1, 1, 1, 1, 1, 1]);
    let knobs = [("keep_last".to_owned(), 3.0), ("batch".to_owned(), 1.0)];
    let policy = Policy::shipped_with("recent", &knobs).expect("a policy");
    let settings = Settings::new(policy).with_model("claude-opus-5").with_cold_cache();
    let fitted = fit(request.into_bytes(), &Memory::default(), &settings, Millis(0)).expect("a fit");
    let sent = parse_as(fitted.request.clone(), Format::Anthropic).expect("a request");
    let hidden = fitted.plan.decisions().iter().rposition(|decision| decision.verdict != Verdict::Keep);
    let after = place_of_next_edit(&fitted.history, &fitted.plan);
    let (hidden, after) = (hidden.expect("something hidden"), after.expect("a place"));
    assert_eq!(sent.blocks().len(), fitted.history.blocks().len(), "the policy only shortens");
    // The last hidden result ends a request, and the next result follows it.
    assert_eq!(sent.blocks().len() - after, hidden + 1);
    let nothing = read(r#"{"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#, Format::Anthropic);
    let kept = fit(nothing.bytes().to_vec(), &Memory::default(), &settings, Millis(0)).expect("a fit");
    assert_eq!(place_of_next_edit(&kept.history, &kept.plan), None);
}
