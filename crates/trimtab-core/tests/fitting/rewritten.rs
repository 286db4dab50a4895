//! What is sent in fewer tokens from its first request on: it says the same, it is sent so again whatever happens in between, and the
//! original comes back by its handle.

use regex::Regex;
use serde_json::{Value, json};
use trimtab_core::{
    BlockKind, Decision, FittedRequest, Format, Handle, Memory, Millis, Policy, Reason, RewriteForm,
    SentVerdict, Settings, Tokens, Verdict, block_handle, memory::UndoWhen, parse, recall, resend,
};

use super::{fitted, shown};

/// What a reader takes from a text, however it is written. Shares nothing with the library.
fn normal_lines(text: &str) -> Vec<String> {
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && (value.is_object() || value.is_array())
    {
        return vec![normal_value(&value).to_string()];
    }
    let [codes, padding, entry] =
        ["\u{1b}\\[[0-?]*[ -/]*[@-~]", "^ *0*([0-9]+)(→|\t|\\| )", "^[0-9]{1,7}([:-])"]
            .map(|pattern| Regex::new(pattern).expect("a pattern"));
    let text = codes.replace_all(text, "");
    let state = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
    let bare = text.split('\n').map(|line| padding.replace(&state(line), "$1$2").into_owned());
    let lines: Vec<String> = bare.filter(|line| !line.is_empty()).collect();
    let (mut normal, mut heading) = (Vec::new(), None::<&String>);
    for (index, line) in lines.iter().enumerate() {
        if let Some(mark) = entry.captures(line) {
            normal.push(heading.map_or_else(|| line.clone(), |path| format!("{path}{}{line}", &mark[1])));
        } else if line.contains(['.', '/']) && lines.get(index + 1).is_some_and(|next| entry.is_match(next)) {
            heading = Some(line);
        } else {
            heading = heading.filter(|_| line == "--");
            normal.push(line.clone());
        }
    }
    normal
}

fn normal_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(normal_lines(text).join("\n")),
        Value::Array(values) => values.iter().map(normal_value).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), normal_value(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

pub(super) fn check(original: &str, rewritten: &str) -> Result<(), String> {
    let (was, is) = (normal_lines(original), normal_lines(rewritten));
    let differs = was.iter().zip(&is).find(|(was, is)| was != is);
    match differs {
        Some((was, is)) => Err(format!("{is:?} instead of {was:?}")),
        None if was.len() == is.len() => Ok(()),
        None => Err(format!("{} lines instead of {}", is.len(), was.len())),
    }
}

/// A view of a source file as Claude Code shows it.
fn view(file: &str, lines: usize) -> String {
    (1..=lines).map(|number| format!("{number:>6}→    let {file}_{number} = {};\n", number * 31)).collect()
}

fn hits(lines: usize) -> String {
    (1..=lines)
        .map(|number| format!("crates/some/where/deep/file.rs:{number}:    let hit = {number};\n"))
        .collect()
}

fn coloured(lines: usize) -> String {
    (1..=lines).map(|number| format!("\u{1b}[1m\u{1b}[32m  Downloaded\u{1b}[0m part {number}\n")).collect()
}

fn pretty(rows: usize) -> String {
    let rows: Vec<Value> = (0..rows).map(|row| json!({"id": row, "tags": ["one", "two"]})).collect();
    serde_json::to_string_pretty(&rows).expect("JSON")
}

/// A call and what came of it.
type Exchange = (&'static str, Value, String);

fn read_file(file: &str) -> Exchange {
    ("Read", json!({"file_path": format!("/app/{file}.rs")}), view(file, 60))
}

fn conversation(exchanges: &[Exchange]) -> Vec<u8> {
    // A request that a cache takes: of a smaller one nothing is changed.
    let mut messages = vec![json!({"role": "user", "content": "Mend it. ".repeat(2000)})];
    for (number, (tool, input, text)) in exchanges.iter().enumerate() {
        let id = format!("t{number}");
        let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        messages.push(json!({"role": "assistant", "content": [call]}));
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    // The messages come last, so that a longer conversation begins with the bytes of a shorter one.
    let messages = Value::Array(messages);
    format!(r#"{{"model":"claude-opus-4-5","max_tokens":9,"messages":{messages}}}"#).into_bytes()
}

fn settings(changed: &[(&str, f64)]) -> Settings {
    let all = ["birth_padding", "birth_ansi", "birth_paths", "birth_json"].map(|name| (name.to_owned(), 1.0));
    // Nothing is hidden for being old.
    let never = ["file_need", "other_need", "inputs"].map(|name| (name.to_owned(), 0.0));
    let mut values: Vec<(String, f64)> = all.into_iter().chain(never).collect();
    for (name, value) in changed {
        values.retain(|(known, _)| known != name);
        values.push(((*name).to_owned(), *value));
    }
    let policy = Policy::shipped_with("steady", &values).expect("a shipped policy");
    Settings::new(policy).with_budget(Tokens(100_000)).with_format(Format::Anthropic)
}

fn fit_first(exchanges: &[Exchange], changed: &[(&str, f64)]) -> FittedRequest {
    fitted(&conversation(exchanges), &Memory::default(), &settings(changed).with_cold_cache(), 0)
}

fn results(fitted: &FittedRequest) -> Vec<&Decision> {
    let is_result = |decision: &&Decision| {
        fitted.history.block(decision.block).expect("a block").kind == BlockKind::Result
    };
    fitted.plan.decisions().iter().filter(is_result).collect()
}

fn words(fitted: &FittedRequest) -> Vec<&'static str> {
    results(fitted).iter().map(|decision| decision.verdict.word()).collect()
}

fn rg(text: String) -> Exchange {
    ("Grep", json!({"pattern": "hit"}), text)
}

fn run(command: &str, text: String) -> Exchange {
    ("Bash", json!({"command": command}), text)
}

#[test]
fn every_form_has_a_switch() {
    let exchanges =
        [read_file("a"), run("fetch-parts", coloured(40)), rg(hits(40)), run("list-rows", pretty(20))];
    let fitted = fit_first(&exchanges, &[]);
    assert_eq!(words(&fitted), ["rewrite"; 4], "{}", shown(&fitted));
    for (number, form) in RewriteForm::ALL.into_iter().enumerate() {
        let reason = results(&fitted)[number].reason();
        assert_eq!(reason, Some(Reason::Rewritten { forms: vec![form] }));
        let off = fit_first(&exchanges, &[(&format!("birth_{form}"), 0.0)]);
        let expected: Vec<&str> = (0..4).map(|at| if at == number { "keep" } else { "rewrite" }).collect();
        assert_eq!(words(&off), expected, "{form}\n{}", shown(&off));
    }
}

#[test]
fn what_is_content_of_a_file_stays() {
    let exchanges = [
        run("cat package.json", pretty(40)),
        run("cat colours.txt", coloured(40)),
        ("Read", json!({"file_path": "/app/rows.json"}), pretty(41)),
    ];
    assert_eq!(words(&fit_first(&exchanges, &[])), ["keep"; 3]);
}

#[test]
fn a_text_can_be_rewritten_in_two_ways() {
    let text = hits(40).replace("let", "\u{1b}[1;31mlet\u{1b}[0m");
    let fitted = fit_first(&[rg(text)], &[]);
    let forms = vec![RewriteForm::Ansi, RewriteForm::Paths];
    assert_eq!(results(&fitted)[0].reason(), Some(Reason::Rewritten { forms }));
    assert!(
        String::from_utf8_lossy(&fitted.request).contains("file.rs\\n1:    let hit"),
        "{}",
        shown(&fitted)
    );
}

/// Sends a conversation that grows by one exchange at a time, and holds each request to the bytes of the one before.
fn sent_in_turn(
    exchanges: &[Exchange],
    settings: &Settings,
    mut between: impl FnMut(&mut Memory),
) -> Vec<FittedRequest> {
    let mut memory = Memory::default();
    let mut sent: Vec<FittedRequest> = Vec::new();
    for count in 1..=exchanges.len() {
        let now = i64::try_from(count).expect("few") * 1000;
        let next = fitted(&conversation(&exchanges[..count]), &memory, settings, now);
        if let Some(before) = sent.last() {
            let head = before.request.strip_suffix(b"]}").expect("messages at the end");
            assert!(next.request.starts_with(head), "{}\nthen\n{}", shown(before), shown(&next));
        }
        memory.remember_sent(&next.plan, Millis(now));
        between(&mut memory);
        sent.push(next);
    }
    sent
}

#[test]
fn what_was_sent_rewritten_is_sent_rewritten() {
    let exchanges = ["a", "b", "c", "d"].map(read_file);
    let sent = sent_in_turn(&exchanges, &settings(&[]), |_| {});
    assert_eq!(words(&sent[3]), ["rewrite"; 4]);
    // A program that starts again knows what a store tells it.
    let started_again = |memory: &mut Memory| {
        let mut stored = Memory::default();
        memory.verdicts().for_each(|(hash, sent)| stored.remember(hash, sent.clone()));
        stored.resume(Millis(1000), 1, memory.total_cost());
        *memory = stored;
    };
    sent_in_turn(&exchanges, &settings(&[]), started_again);
}

#[test]
fn a_request_in_haste_repeats_what_was_rewritten_and_sends_the_rest_whole_for_good() {
    let exchanges = ["a", "b", "c"].map(read_file);
    let mut memory = Memory::default();
    let first = fitted(&conversation(&exchanges[..1]), &memory, &settings(&[]), 0);
    memory.remember_sent(&first.plan, Millis(0));
    let history = std::sync::Arc::new(parse(conversation(&exchanges[..2])).expect("a request"));
    let late = resend(history, &memory);
    assert!(late.request.starts_with(first.request.strip_suffix(b"]}").expect("the end")));
    memory.remember_resent(&late, Millis(1));
    let later = fitted(&conversation(&exchanges), &memory, &settings(&[]), 2);
    assert!(
        later.request.starts_with(late.request.strip_suffix(b"]}").expect("the end")),
        "{}",
        shown(&later)
    );
    assert_eq!(words(&later), ["rewrite", "keep", "rewrite"]);
}

#[test]
fn a_rewritten_view_is_pointed_at_like_any_other() {
    let exchanges = [read_file("a"), read_file("a")];
    assert_eq!(words(&fit_first(&exchanges, &[])), ["rewrite", "point"]);
    // Of a text whose lines moved no note names lines; where one does already, they stay where they are.
    let lines = ("birth_lines", 1.0);
    let more = hits(40) + "crates/other.rs:1:let it = 1;\n";
    let grouped = sent_in_turn(&[rg(hits(40)), rg(more.clone())], &settings(&[lines]), |_| {});
    assert_eq!(words(&grouped[1]), ["rewrite", "rewrite"], "{}", shown(&grouped[1]));
    assert_eq!(words(&fit_first(&[rg(hits(40)), rg(more)], &[lines])), ["keep", "trim"]);
}

#[test]
fn a_rewritten_view_is_hidden_later_from_its_original() {
    let exchanges: Vec<Exchange> = ["a", "b", "c", "d", "e", "f"].map(read_file).into();
    let sent = sent_in_turn(&exchanges, &settings(&[]), |_| {});
    let mut memory = Memory::default();
    memory.remember_sent(&sent[5].plan, Millis(0));
    let small = settings(&[]).with_budget(Tokens(13_000));
    let pressed = fitted(&conversation(&exchanges), &memory, &small, 1000);
    let hidden: Vec<&Decision> = results(&pressed).into_iter().filter(|is| !is.verdict.shows_all()).collect();
    assert!(!hidden.is_empty() && words(&pressed).contains(&"rewrite"), "{}", shown(&pressed));
    for decision in hidden {
        let Some(text) = decision.verdict.own_text() else { continue };
        let original = fitted_text(&pressed, decision);
        super::honest::check(&original, text).unwrap_or_else(|lie| panic!("{lie:?} in\n{text}"));
    }
}

fn fitted_text(fitted: &FittedRequest, decision: &Decision) -> String {
    fitted.history.block_text(fitted.history.block(decision.block).expect("a block")).into_owned()
}

#[test]
fn a_pin_keeps_a_block_as_it_was_sent_and_an_undo_gives_the_original_back() {
    let exchanges = ["a", "b"].map(read_file);
    let first = fit_first(&exchanges, &[]);
    let block = first.history.block(results(&first)[0].block).expect("a block");
    let handle = Handle::parse(&block_handle(&first.history, block)).expect("a handle");
    let mut from_the_start = Memory::default();
    from_the_start.pin(handle);
    let pinned = fitted(&conversation(&exchanges), &from_the_start, &settings(&[]), 0);
    assert_eq!(words(&pinned), ["keep", "rewrite"]);
    let mut memory = Memory::default();
    memory.remember_sent(&first.plan, Millis(0));
    memory.pin(handle);
    let later = fitted(&conversation(&exchanges), &memory, &settings(&[]), 1000);
    assert_eq!(later.request, first.request, "nothing of it is hidden");
    let mut memory = Memory::default();
    memory.remember_sent(&first.plan, Millis(0));
    memory.undo(handle, 9, UndoWhen::Now);
    let undone = fitted(&conversation(&exchanges), &memory, &settings(&[]), 1000);
    assert_eq!(words(&undone), ["keep", "rewrite"], "{}", shown(&undone));
    assert!(matches!(SentVerdict::of_plan(&undone.plan)[3], SentVerdict::WholeAgain | SentVerdict::As(_)));
    memory.remember_sent(&undone.plan, Millis(1000));
    let again = fitted(&conversation(&exchanges), &memory, &settings(&[]), 2000);
    assert_eq!(again.request, undone.request, "and it stays so");
}

#[test]
fn what_a_policy_does_not_rewrite_is_not_touched() {
    for policy in ["none", "ladder", "recent"] {
        let policy = Policy::find_shipped(policy).expect("a shipped policy");
        let settings = Settings::new(policy).with_budget(Tokens(100_000));
        let request = conversation(&[read_file("a")]);
        assert_eq!(fitted(&request, &Memory::default(), &settings, 0).request, request);
    }
}
