//! Fitting what was fitted, where an earlier fit hid what the next one would have to know.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Policy, Settings, Tokens};

use super::{fitted, shown};

/// Fits a request, and what comes out of it, and compares.
fn changes_nothing_twice(bytes: &[u8], format: Format, policy: &str, budget: u64) {
    let policy = Policy::find_shipped(policy).expect("a shipped policy");
    let settings = Settings::new(policy).with_budget(Tokens(budget)).with_format(format).with_cold_cache();
    let once = fitted(bytes, &Memory::default(), &settings, 0);
    let again = fitted(&once.request, &Memory::default(), &settings, 0);
    let [once_text, again_text] =
        [&once, &again].map(|fitted| String::from_utf8_lossy(&fitted.request).into_owned());
    assert_eq!(again_text, once_text, "at {budget} tokens\n{}\nand again\n{}", shown(&once), shown(&again));
}

fn chat(messages: &[Value]) -> Vec<u8> {
    json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes()
}

/// Adds a call of a tool and its result.
fn call(messages: &mut Vec<Value>, name: &str, arguments: &Value, result: &str) {
    let id = format!("call_{}", messages.len());
    let function = json!({"name": name, "arguments": arguments.to_string()});
    messages.push(json!({"role": "assistant", "content": null,
        "tool_calls": [{"id": id, "type": "function", "function": function}]}));
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
}

/// While the file is known, the text that tells the series names its net change and is longer than without. Receipts of every length
/// come by, so that one of them is longer than the second and not than the first.
#[test]
fn a_series_of_edits_that_no_result_could_tell_is_not_told_once_less_is_known() {
    let source: String = (0..80).map(|line| format!("setting_{line} = {line}\n")).collect();
    for words in 0..30 {
        let mut messages = vec![json!({"role": "user", "content": "Raise the settings."})];
        let path = "services/config.py";
        call(&mut messages, "read_file", &json!({"path": path}), &source);
        for number in 0..40 {
            let output = format!("line {number} of a long listing\n").repeat(20);
            call(&mut messages, "run_shell", &json!({"command": format!("make {number}")}), &output);
            if number % 5 == 0 {
                let change = json!({"file_path": path, "old_string": format!("setting_{number} = {number}\n"),
                    "new_string": format!("setting_{number} = 1\nextra_{number} = 2\n")});
                let receipt = format!("The file {path} was updated.{}", " Good.".repeat(words));
                call(&mut messages, "edit_file", &change, &receipt);
            }
        }
        call(&mut messages, "run_shell", &json!({"command": "make"}), "done");
        for budget in [4_000, 6_000] {
            changes_nothing_twice(&chat(&messages), Format::Chat, "retention", budget);
        }
    }
}

/// What an earlier fit dropped may have said in which folder a command ran, so that changes of several files now seem to be of one. A
/// note that made room tells how far it looked: only what came later is a series.
#[test]
fn changes_that_an_earlier_fit_looked_at_are_no_series() {
    let edits = |messages: &mut Vec<Value>| {
        for number in 0..8 {
            let change =
                json!({"file_path": "config.py", "old_string": format!("old {number}"), "new_string": "new"});
            let snippet =
                "The file config.py was updated. ".to_owned() + &"Its lines are shown here. ".repeat(30);
            call(messages, "edit_file", &change, &snippet);
        }
    };
    let note = "[run_shell `make`, step 9, 300 lines, 900 tokens, hidden: to fit the context window; \
                trimtab recall 0123456789ab]";
    let begin = || vec![json!({"role": "user", "content": "Raise the settings."})];
    let (mut before, mut behind) = (begin(), begin());
    edits(&mut before);
    for messages in [&mut before, &mut behind] {
        call(messages, "run_shell", &json!({"command": "make"}), note);
    }
    edits(&mut behind);
    let policy = || Policy::find_shipped("retention").expect("a shipped policy");
    for (mut messages, is_told) in [(before, false), (behind, true)] {
        call(&mut messages, "run_shell", &json!({"command": "make install"}), "done");
        let settings =
            Settings::new(policy()).with_budget(Tokens(2_400)).with_format(Format::Chat).with_cold_cache();
        let sent = fitted(&chat(&messages), &Memory::default(), &settings, 0);
        let text = String::from_utf8_lossy(&sent.request).into_owned();
        assert_eq!(text.contains("[8 changes of config.py between steps "), is_told, "{}", shown(&sent));
    }
}

/// The user speaks beside results: once the turn before is gone, nothing of it precedes these words, and their turn may go.
#[test]
fn a_turn_that_begins_beside_results_goes_with_the_turn_before() {
    let text = |text: String| json!({"type": "text", "text": text});
    let mut messages = vec![
        json!({"role": "user", "content": "Begin."}),
        json!({"role": "assistant", "content": "I begin."}),
        json!({"role": "user", "content": "Look at the first file."}),
    ];
    for number in 0..6 {
        let id = format!("toolu_{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": format!("{number}.rs")}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": format!("line {number}\n").repeat(50)},
            text("[Request interrupted by user for tool use]".to_owned()),
            text(format!("Look at file {number} instead, {}", "and be careful. ".repeat(30)))]}));
        messages.push(
            json!({"role": "assistant", "content": [text(format!("File {number} is fine. ").repeat(20))]}),
        );
        messages.push(json!({"role": "user", "content": format!("Go on with {number}. ").repeat(30)}));
    }
    messages.push(json!({"role": "assistant", "content": [text("Done.".to_owned())]}));
    messages.push(json!({"role": "user", "content": "And now?"}));
    let bytes = json!({"model": "claude-opus-5", "messages": messages}).to_string().into_bytes();
    for policy in ["recent", "ladder"] {
        for budget in [60, 300, 600, 1_200] {
            changes_nothing_twice(&bytes, Format::Anthropic, policy, budget);
        }
    }
}

/// Draws numbers, the same for the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A session about few files under several spellings, with changes of folder, long commands, views by shell and by tool, and edits.
fn session_of_spellings(seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed);
    let mut messages = vec![json!({"role": "user", "content": "Raise the settings in the services."})];
    for step in 0..20 + draw.below(25) {
        let file = draw.one_of(&["config.py", "main.py", "util/io.py"]);
        let spelled = draw.one_of(&["/app/services/", ""]).to_owned() + file;
        let lines = |line: &str, count: usize| -> String {
            (0..count).map(|number| line.replace('#', &number.to_string()) + "\n").collect()
        };
        let view = lines(&format!("setting_{file}_# = 7"), 20 + draw.below(110));
        let more = draw.below(60);
        match draw.below(20) {
            0..2 => {
                let command = draw.one_of(&["cd services", "cd /app", "cd /app/services && pwd"]);
                call(&mut messages, "run_shell", &json!({"command": command}), "/app/services\n");
            }
            2..6 => call(&mut messages, "run_shell", &json!({"command": format!("cat {file}")}), &view),
            6..10 => call(&mut messages, "read_file", &json!({"path": spelled}), &view),
            10..14 => {
                let old = lines(&format!("setting_{step}_#"), 1 + more / 8);
                let change = json!({"file_path": spelled, "old_string": old, "new_string": "extra\n".repeat(1 + more / 8)});
                let receipt = format!("The file {file} was updated.{}", " Good.".repeat(more));
                call(&mut messages, "edit_file", &change, &receipt);
            }
            14..16 => {
                let command =
                    format!("sed -i 's/setting_{step}/x/' {file} # {}", "a long comment ".repeat(more));
                call(&mut messages, "run_shell", &json!({"command": command}), "");
            }
            16..18 => {
                let hits = lines(&format!("services/{file}:#:setting = 1"), 5 + more);
                call(&mut messages, "run_shell", &json!({"command": "rg -n setting"}), &hits);
            }
            _ => {
                let output = lines(&format!("compiling part # of {step}"), 5 + more);
                call(&mut messages, "run_shell", &json!({"command": format!("make {step}")}), &output);
            }
        }
        if draw.below(10) == 0 {
            let words = format!("Go on. {}", "And mind the rest. ".repeat(draw.below(20)));
            messages.push(json!({"role": "user", "content": words}));
        }
    }
    call(&mut messages, "run_shell", &json!({"command": "make"}), "done");
    chat(&messages)
}

/// What an earlier fit hid may have said in which folder a command ran, which file was changed, or what a call did. Without it, what
/// that fit left whole may seem to be needed less than it is.
#[test]
fn what_an_earlier_fit_left_whole_stays_whole_whatever_is_no_longer_known() {
    for seed in 0..100 {
        let bytes = session_of_spellings(seed);
        let tokens = u64::try_from(bytes.len()).expect("few bytes") / 4;
        for policy in ["steady", "steady.bold", "steady.safe"] {
            for budget in [tokens * 50, tokens * 3 / 4, tokens / 2, tokens / 4] {
                changes_nothing_twice(&bytes, Format::Chat, policy, budget);
            }
        }
    }
}

/// A copy that points at a text keeps it as it is, also when the pointer came with the request; and a result whose command became a note
/// no longer says whether it shows a file.
#[test]
fn what_was_not_written_otherwise_is_not_the_next_time() {
    let rows: Vec<Value> = (0..40).map(|row| json!({"id": row, "tags": ["one", "two"]})).collect();
    let pretty = serde_json::to_string_pretty(&rows).expect("JSON");
    let coloured: String =
        (0..60).map(|line| format!("\u{1b}[32mline {line} of the file\u{1b}[0m\n")).collect();
    for seed in 0..6 {
        let mut messages = vec![json!({"role": "user", "content": "Mend it. ".repeat(2_000)})];
        call(&mut messages, "fetch_rows", &json!({"table": "users"}), &pretty);
        let command = format!("cat {}colours.txt", "/a/long/way/down/to/".repeat(20));
        call(&mut messages, "run_shell", &json!({"command": command}), &coloured);
        for step in 0..12 + seed {
            let output = format!("line of step {step}\n").repeat(120);
            call(&mut messages, "run_shell", &json!({"command": format!("make {step}")}), &output);
        }
        call(&mut messages, "fetch_rows", &json!({"table": "users"}), &pretty);
        call(&mut messages, "run_shell", &json!({"command": "make"}), "done");
        for budget in [100_000, 9_000, 7_000, 6_000] {
            changes_nothing_twice(&chat(&messages), Format::Chat, "steady", budget);
        }
    }
}
