//! Small sessions in which everything that is used later can be counted by hand.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_core::{
    BlockId, BlockKind, Tokens, block_handle,
    count::Counter,
    json::{narrow, widen},
    wire::parse,
};

use super::{Fidelity, HiddenMiss, NeededShare, SegmentUses, measure_fidelity, probe::mask_results};
use crate::{
    recording::{Recording, Segment},
    replay::{ShownBlock, Track, ViewChange, Views},
};

fn person(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[expect(clippy::needless_pass_by_value, reason = "tests write the value where they call")]
fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
}

fn failure(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true}]})
}

fn read(id: &str, path: &str, text: &str) -> [Value; 2] {
    [call(id, "Read", json!({"file_path": path})), result(id, text)]
}

fn run(id: &str, command: &str, text: &str) -> [Value; 2] {
    [call(id, "Bash", json!({"command": command})), result(id, text)]
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> [Value; 2] {
    let input = json!({"file_path": path, "old_string": old, "new_string": new});
    [call(id, "Edit", input), result(id, "The file has been updated.")]
}

fn session(messages: impl IntoIterator<Item = Value>) -> Segment {
    let mut all = vec![person("Go on.")];
    all.extend(messages);
    segment(&json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": all}))
}

fn segment(request: &Value) -> Segment {
    let history = parse(request.to_string().into_bytes()).expect("a request");
    Recording::of_request(history).segments.remove(0)
}

fn track(segment: &Segment) -> Track<'_> {
    Track::new(segment, Counter::for_model("claude-sonnet-4-5"))
}

/// How the result of a call is shown from its first request on.
enum As<'a> {
    Gone(&'a str),
    Text(&'a str, &'a str),
    /// As a note with its handle.
    Handle(&'a str),
    /// The call itself is gone.
    CallGone(&'a str),
}

fn block_of(track: &Track<'_>, id: &str, kind: BlockKind) -> BlockId {
    let blocks = track.history.blocks();
    let at = blocks
        .iter()
        .position(|block| block.kind == kind && track.history.call_id(block).as_deref() == Some(id));
    BlockId(narrow(at.expect("a block of that call")))
}

fn views(track: &Track<'_>, shown: &[As<'_>]) -> Views {
    let mut views = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let text = |text: &str| ShownBlock::Text { text: Arc::from(text), tokens: Tokens(1) };
    for one in shown {
        let (block, shown) = match one {
            As::Gone(id) => (block_of(track, id, BlockKind::Result), ShownBlock::Gone),
            As::CallGone(id) => (block_of(track, id, BlockKind::Call), ShownBlock::Gone),
            As::Text(id, words) => (block_of(track, id, BlockKind::Result), text(words)),
            As::Handle(id) => {
                let block = block_of(track, id, BlockKind::Result);
                let handle = block_handle(track.history, &track.history.blocks()[widen(block.0)]);
                (block, text(&format!("[cleared; trimtab recall {handle}]")))
            }
        };
        let first = track.requests.partition_point(|request| request.blocks <= widen(block.0));
        views.changes[first].push(ViewChange { block, shown });
    }
    views
}

/// Returns the handle under which a text is recalled.
fn handle_of(text: &str) -> String {
    let said = segment(&json!({"messages": [person(text)]})).history;
    block_handle(&said, &said.blocks()[0])
}

fn judged(messages: &[Value], shown: &[As<'_>]) -> Fidelity {
    let segment = session(messages.iter().cloned());
    let track = track(&segment);
    measure_fidelity(&track, &SegmentUses::find_in(&track), &views(&track, shown))
}

fn shares(fidelity: &Fidelity) -> [(&'static str, NeededShare); 8] {
    [
        ("edit_anchors", fidelity.edit_anchors),
        ("all_anchors", fidelity.all_anchors),
        ("anchor_lines", fidelity.anchor_lines),
        ("references", fidelity.references),
        ("strict_references", fidelity.strict_references),
        ("copied_lines", fidelity.copied_lines),
        ("errors", fidelity.errors),
        ("instructions", fidelity.instructions),
    ]
}

/// Checks the shares that are named, each as `name held/of`.
fn check(messages: &[Value], shown: &[As<'_>], expected: &[&str]) -> Fidelity {
    let fidelity = judged(messages, shown);
    for line in expected {
        let name = line.split(' ').next().expect("a name");
        let (_, share) = shares(&fidelity).into_iter().find(|(known, _)| *known == name).expect("a share");
        assert_eq!(format!("{name} {}/{}", share.held, share.of), **line, "{:?}", fidelity.misses);
    }
    fidelity
}

fn kept_and_hidden(messages: &[Value], kept: &[&str], hidden: &[&str]) {
    check(messages, &[], kept);
    check(messages, &[As::Gone("1")], hidden);
}

#[test]
fn an_anchor_is_found_behind_every_form_of_line_numbers() {
    let forms = [
        "     1→fn main() {\n     2→    body_one();\n     3→}",
        "     1->fn main() {\n     2->    body_one();\n     3->}",
        "     1\tfn main() {\n     2\t    body_one();\n     3\t}",
        "1:fn main() {\n2:    body_one();\n3:}",
        "1: fn main() {\n2:     body_one();\n3: }",
        "1|fn main() {\n2|    body_one();\n3|}",
        "1:fn main() {\n2-    body_one();\n3-}",
        "src/a-b.rs:1:fn main() {\nsrc/a-b.rs-2-    body_one();\nsrc/a-b.rs-3-}",
        "fn main() {\n    body_one();  \n}",
        "\u{1b}[32mfn main() {\u{1b}[0m\r\n    body_one();\r\n}\r\n",
    ];
    for form in forms {
        let mut messages = read("1", "/app/a.rs", form).to_vec();
        messages.extend(edit("2", "/app/a.rs", "fn main() {\n    body_one();", "fn main() {"));
        kept_and_hidden(
            &messages,
            &["edit_anchors 1/1", "all_anchors 1/1", "anchor_lines 2/2"],
            &["edit_anchors 0/1", "all_anchors 0/1", "anchor_lines 0/2"],
        );
    }
}

#[test]
fn a_number_that_is_the_files_own_stays() {
    let mut messages =
        read("1", "/app/a.yaml", "     1→codes:\n     2→200: fine then\n     3→404: missing").to_vec();
    messages.extend(edit("2", "/app/a.yaml", "codes:\n200: fine then", "codes:"));
    kept_and_hidden(&messages, &["edit_anchors 1/1"], &["edit_anchors 0/1"]);
}

#[test]
fn carriage_returns_and_a_final_line_break_make_no_other_anchor() {
    let mut messages = run("1", "cat a.rs", "first line\nsecond line").to_vec();
    messages.extend(edit("2", "a.rs", "first line\r\nsecond line\r\n", "x"));
    kept_and_hidden(&messages, &["edit_anchors 1/1"], &["edit_anchors 0/1"]);
}

#[test]
fn an_anchor_that_no_single_block_showed_is_not_counted() {
    let mut messages = run("1", "head -1 a.rs", "first line").to_vec();
    messages.extend(run("2", "tail -1 a.rs", "second line"));
    messages.extend(edit("3", "a.rs", "first line\nsecond line", "x"));
    check(&messages, &[], &["edit_anchors 0/0", "all_anchors 0/0"]);
}

#[test]
fn what_the_agent_wrote_itself_is_an_anchor_of_its_own_words() {
    let text = "say(\"hello\");\n\tsay(\"again\");\n";
    let mut messages =
        vec![call("1", "Write", json!({"file_path": "a.js", "content": text})), result("1", "ok")];
    messages.extend(edit("2", "a.js", "say(\"hello\");\n\tsay(\"again\");", "x"));
    check(&messages, &[], &["edit_anchors 0/0", "all_anchors 1/1"]);
    let lost = check(&messages, &[As::CallGone("1")], &["edit_anchors 0/0", "all_anchors 0/1"]);
    assert_eq!(lost.misses.iter().map(|miss| miss.metric).collect::<Vec<_>>(), ["all_anchors"]);
}

#[test]
fn arguments_and_results_that_are_json_in_a_string_are_read_as_what_they_say() {
    let text = "say(\"hello\");\n\tsay(\"again\");";
    let function = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    let printed = json!({"output": text, "metadata": {"exit_code": 0}}).to_string();
    let request = json!({"model": "gpt-5", "messages": [
        person("Go on."),
        function("1", "write_file", json!({"path": "a.js", "content": text})),
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        function("2", "edit_file", json!({"path": "a.js", "old_string": text, "new_string": "x"})),
        {"role": "tool", "tool_call_id": "2", "content": "ok"},
        function("3", "shell", json!({"command": ["cat", "b.js"]})),
        {"role": "tool", "tool_call_id": "3", "content": printed.replace("again", "once more")},
        function("4", "edit_file", json!({"path": "b.js", "old_string": text.replace("again", "once more"), "new_string": "y"})),
    ]});
    let segment = segment(&request);
    let track = track(&segment);
    let judge =
        |shown: &[As<'_>]| measure_fidelity(&track, &SegmentUses::find_in(&track), &views(&track, shown));
    assert_eq!(judge(&[]).all_anchors, NeededShare { held: 2, of: 2 });
    assert_eq!(judge(&[As::CallGone("1")]).all_anchors, NeededShare { held: 1, of: 2 });
    assert_eq!(judge(&[]).edit_anchors, NeededShare { held: 1, of: 1 });
    assert_eq!(judge(&[As::Gone("3")]).edit_anchors, NeededShare { held: 0, of: 1 });
}

#[test]
fn every_edit_and_every_hunk_is_an_anchor() {
    let shown = "     1→alpha line\n     2→beta line\n     3→gamma line\n     4→short";
    let mut messages = read("1", "a.txt", shown).to_vec();
    let edits = json!([
        {"old_string": "alpha line", "new_string": "a"},
        {"old_string": "gamma line", "new_string": "b"},
        {"old_string": "short", "new_string": "c"},
    ]);
    messages.push(call("2", "MultiEdit", json!({"file_path": "a.txt", "edits": edits})));
    messages.push(result("2", "ok"));
    kept_and_hidden(&messages, &["edit_anchors 2/2"], &["edit_anchors 0/2"]);

    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n alpha line\n-beta line\n+delta line\n@@\n-gamma line\n+c\n*** End Patch";
    for input in [json!({"command": format!("apply_patch <<'EOF'\n{patch}\nEOF")}), json!({"input": patch})] {
        let name = if input.get("input").is_some() { "apply_patch" } else { "Bash" };
        let mut messages = read("1", "a.txt", shown).to_vec();
        messages.extend([call("2", name, input), result("2", "ok")]);
        kept_and_hidden(
            &messages,
            &["edit_anchors 2/2", "anchor_lines 3/3"],
            &["edit_anchors 0/2", "anchor_lines 0/3"],
        );
    }
}

#[test]
fn an_edit_that_fails_needed_its_anchor_too() {
    let mut messages = read("1", "a.txt", "     1→alpha line\n     2→alpha line").to_vec();
    let input = json!({"file_path": "a.txt", "old_string": "alpha line", "new_string": "x"});
    messages.extend([call("2", "Edit", input), failure("2", "Found 2 matches of the string to replace.")]);
    kept_and_hidden(&messages, &["edit_anchors 1/1"], &["edit_anchors 0/1"]);
}

#[test]
fn lines_of_an_anchor_may_be_visible_apart() {
    let mut messages = read("1", "a.txt", "     1→alpha line\n     2→beta line").to_vec();
    messages.extend(run("2", "grep alpha a.txt", "alpha line"));
    messages.extend(edit("3", "a.txt", "alpha line\nbeta line", "x"));
    check(&messages, &[As::Gone("1")], &["edit_anchors 0/1", "anchor_lines 1/2"]);
    check(&messages, &[As::Text("1", "     1→alpha line\n     2→beta line")], &["edit_anchors 1/1"]);
}

#[test]
fn a_name_counts_when_it_is_first_used_and_only_results_had_it() {
    let mut messages = vec![person("See src/known.rs.")];
    messages.extend(run("1", "ls", "src/known.rs\nsrc/found.rs"));
    messages.extend(run("2", "cat src/known.rs src/found.rs src/guessed.rs", "x"));
    messages.extend(run("3", "wc src/found.rs", "x"));
    kept_and_hidden(&messages, &["references 1/1"], &["references 0/1", "strict_references 0/1"]);
    check(&messages, &[As::Text("1", "[names: src/found.rs]")], &["references 1/1", "strict_references 1/1"]);
    check(&messages, &[As::Text("1", "[names: src/found.rs.bak]")], &["references 1/1"]);
    check(&messages, &[As::Text("1", "[names: src/found.rsx]")], &["references 0/1"]);
}

#[test]
fn in_an_edit_a_bare_name_is_not_enough() {
    let mut messages = run("1", "cat lib.rs", "pub fn parse_all(text: &str) -> u8").to_vec();
    messages.extend([
        call("2", "Write", json!({"file_path": "b.rs", "content": "fn b() { parse_all(1); }"})),
        result("2", "ok"),
    ]);
    let named = check(
        &messages,
        &[As::Text("1", "[names: parse_all]")],
        &["references 1/1", "strict_references 0/1"],
    );
    assert!(named.refetches.is_empty());
    check(
        &messages,
        &[As::Text("1", "pub fn parse_all(text: &str) -> u8\n[cut]")],
        &["references 1/1", "strict_references 1/1"],
    );
}

#[test]
fn names_in_an_old_text_repeat_the_anchor() {
    let mut messages = run("1", "cat lib.rs", "let old_name = 1;").to_vec();
    messages.extend(edit("2", "lib.rs", "let old_name = 1;", "let x = 1;"));
    check(&messages, &[], &["references 0/0", "edit_anchors 1/1"]);
}

#[test]
fn a_line_is_copied_once() {
    let mut messages = run("1", "cat a.rs", "    use std::collections::HashMap;\n    let x = 1;").to_vec();
    let content = "use std::collections::HashMap;\nlet x = 1;\nuse std::sync::Arc; // own";
    messages
        .extend([call("2", "Write", json!({"file_path": "b.rs", "content": content})), result("2", "ok")]);
    messages
        .extend([call("3", "Write", json!({"file_path": "c.rs", "content": content})), result("3", "ok")]);
    kept_and_hidden(&messages, &["copied_lines 1/1"], &["copied_lines 0/1"]);
    check(&messages, &[As::Text("1", "12: use std::collections::HashMap;")], &["copied_lines 1/1"]);
}

#[test]
fn an_error_is_live_until_the_same_command_succeeds() {
    let error = "Exit code 101\nerror[E0308]: mismatched types\n --> src/a.rs:3:5";
    let messages = |mended: &str| {
        let mut messages = vec![call("1", "Bash", json!({"command": "cargo build"})), failure("1", error)];
        messages.extend(run("2", "ls", "a"));
        messages.extend(run("3", mended, "Finished"));
        messages.extend(run("4", "ls", "a"));
        messages
    };
    // Requests: before 1, before 2 (carries the error), before 3, before 4, and the open one.
    kept_and_hidden(&messages("cargo build"), &["errors 2/2"], &["errors 0/2"]);
    kept_and_hidden(&messages("cargo test"), &["errors 4/4"], &["errors 0/4"]);
    let digest = "error[E0308]: mismatched types\n --> src/a.rs:3:5\n[cut]";
    check(&messages("cargo build"), &[As::Text("1", digest)], &["errors 2/2"]);
    check(&messages("cargo build"), &[As::Text("1", "error[E0308]: mismatched types")], &["errors 0/2"]);
    let lost = check(&messages("cargo build"), &[As::Gone("1")], &[]);
    assert_eq!((lost.misses.len(), lost.misses[0].request), (1, 1));
}

#[test]
fn what_a_person_said_stays_verbatim_in_every_request() {
    let mut messages = vec![person("Fix it. You must not touch the tests!")];
    messages.extend(run("1", "ls", "a"));
    messages.extend(run("2", "ls", "a"));
    let segment = session(messages);
    let track = track(&segment);
    let uses = SegmentUses::find_in(&track);
    let judge = |text: Option<&str>| {
        let shown =
            text.map_or(ShownBlock::Gone, |text| ShownBlock::Text { text: text.into(), tokens: Tokens(1) });
        let mut views = Views::with_client_markers(vec![Vec::new(); 3]);
        views.changes[1].push(ViewChange { block: BlockId(1), shown });
        measure_fidelity(&track, &uses, &views).instructions
    };
    // Two messages and one constraint in three requests, of which the last two hide the second message.
    assert_eq!(judge(None), NeededShare { held: 5, of: 9 });
    assert_eq!(judge(Some("[You must not touch the tests! …]")), NeededShare { held: 7, of: 9 });
    assert_eq!(
        judge(Some("<quoted>Fix it. You must not touch the tests!</quoted>")),
        NeededShare { held: 9, of: 9 }
    );
}

#[test]
fn an_old_line_is_unmarked_where_its_change_is_hidden() {
    let mut messages = read("1", "a.txt", "     1→alpha line\n     2→beta line\n     3→gamma line").to_vec();
    messages.extend(edit("2", "a.txt", "beta line", "new line\nother line"));
    messages.extend(run("3", "ls", "a"));
    let stale = |shown: &[As<'_>]| judged(&messages, shown).unmarked_stale;
    let one = Counter::for_model("claude-sonnet-4-5").count_text("beta line");
    assert_eq!(stale(&[]), Tokens::ZERO);
    // Before 3 and in the open request; the line that only moved is no old line.
    assert_eq!(stale(&[As::CallGone("2")]), one.times(2));
    assert_eq!(stale(&[As::CallGone("2"), As::Gone("1")]), Tokens::ZERO);
    assert_eq!(stale(&[As::CallGone("2"), As::Text("1", "1→alpha line\n2→beta line")]), one.times(2));
    assert_eq!(stale(&[As::CallGone("2"), As::Text("1", "1→alpha line")]), Tokens::ZERO);
    assert_eq!(stale(&[As::CallGone("2"), As::Handle("1")]), Tokens::ZERO);
    let mut read_again = messages.clone();
    read_again.extend(read(
        "4",
        "a.txt",
        "     1→alpha line\n     2→new line\n     3→other line\n     4→gamma line",
    ));
    // The newer view comes with the last request only.
    assert_eq!(judged(&read_again, &[As::CallGone("2")]).unmarked_stale, one.times(2));
    assert_eq!(judged(&read_again, &[As::CallGone("2"), As::Gone("4")]).unmarked_stale, one.times(3));
}

#[test]
fn a_note_that_points_at_the_lines_that_stand_there_marks_old_ones_only_while_they_are_in_sight() {
    let (old, new) = ("     1→alpha line\n     2→beta line", "     1→alpha line\n     2→new line");
    // Somebody else changes the file, back, and again.
    let views = [("1", old), ("2", new), ("3", old), ("4", new)];
    let messages: Vec<Value> = views.iter().flat_map(|(id, text)| read(id, "a.txt", text)).collect();
    let stale = |shown: &[As<'_>]| judged(&messages, shown).unmarked_stale;
    let one = Counter::for_model("claude-sonnet-4-5").count_text("beta line");
    let handle = handle_of(new);
    let note = format!("[Same as at step 2, shown there: a.txt at step 4, 2 lines; trimtab recall {handle}]");
    let wrong = note.replace(&handle, &handle_of(old));
    assert_eq!(stale(&[]), Tokens::ZERO);
    assert_eq!(stale(&[As::Text("4", &note)]), Tokens::ZERO);
    // The lines of the first and of the third view, in the last request.
    assert_eq!(stale(&[As::Text("4", &wrong)]), one.times(2), "what it points at is another text");
    // Also the line of the first view while the second was the newest.
    assert_eq!(stale(&[As::Text("4", &note), As::Handle("2")]), one.times(3), "what it points at is hidden");
}

#[test]
fn a_view_that_is_only_written_otherwise_shows_what_it_showed() {
    let padded = "     1→alpha line\n     2→\tbeta(line);\n     3→gamma line";
    let hits =
        "src/some/deep-file.rs:7:alpha_hit();\nsrc/some/deep-file.rs-8-\tbeta_hit();\nsrc/b.rs:1:mod b_one;";
    let coloured = "\u{1b}[32malpha_seen();\u{1b}[0m\n10%\r100% of gamma_seen";
    let forms = [
        (padded, padded.replace("     ", ""), "\tbeta(line);\ngamma line", 2),
        (
            hits,
            "src/some/deep-file.rs\n7:alpha_hit();\n8-\tbeta_hit();\n\nsrc/b.rs\n1:mod b_one;".to_owned(),
            "alpha_hit();\n\tbeta_hit();",
            2,
        ),
        (coloured, "alpha_seen();\n100% of gamma_seen".to_owned(), "alpha_seen();\n100% of", 1),
    ];
    for (text, rewritten, anchor, lines) in forms {
        let mut messages = read("1", "/app/a.rs", text).to_vec();
        messages.extend(edit("2", "/app/a.rs", anchor, "other_text();"));
        let expected = ["edit_anchors 1/1".to_owned(), format!("anchor_lines {lines}/{lines}")];
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&messages, &[], &expected);
        check(&messages, &[As::Text("1", &rewritten)], &expected);
        check(
            &messages,
            &[As::Text("1", rewritten.split_once('\n').expect("two lines").0)],
            &["edit_anchors 0/1"],
        );
    }
    // A path that is written once above its hits is in the line of each hit.
    let mut messages = read("1", "/app/a.rs", hits).to_vec();
    messages.push(call("2", "Write", json!({"file_path": "b", "content": "see src/some/deep-file.rs"})));
    messages.push(result("2", "ok"));
    let grouped = "src/some/deep-file.rs\n7:alpha_hit();\n8-\tbeta_hit();\n\nsrc/b.rs\n1:mod b_one;";
    check(&messages, &[As::Text("1", grouped)], &["strict_references 1/1"]);
    check(&messages, &[As::Text("1", "src/some/deep-file.rs")], &["strict_references 0/1"]);
    // A newer view in fewer tokens says as well that an older one is no longer true.
    let (old, new) = ("     1→alpha line\n     2→beta line", "     1→alpha line\n     2→new line");
    let messages: Vec<Value> =
        [("1", old), ("2", new)].iter().flat_map(|(id, text)| read(id, "a.txt", text)).collect();
    let stale = |shown: &[As<'_>]| judged(&messages, shown).unmarked_stale;
    assert_eq!(stale(&[As::Text("2", "1→alpha line\n2→new line")]), Tokens::ZERO);
    assert!(stale(&[As::Text("2", "1→alpha line")]) > Tokens::ZERO);
}

#[test]
fn a_hidden_block_whose_handle_is_shown_is_recoverable_but_not_visible() {
    let mut messages = read("1", "a.txt", "     1→alpha line").to_vec();
    messages.extend(edit("2", "a.txt", "alpha line", "x"));
    for (shown, recoverable) in
        [(As::Handle("1"), true), (As::Gone("1"), false), (As::Text("1", "[cut]"), false)]
    {
        let lost = check(&messages, &[shown], &["edit_anchors 0/1"]);
        let miss = lost.misses.iter().find(|miss| miss.metric == "edit_anchors").expect("a miss");
        let expected = HiddenMiss {
            metric: "edit_anchors",
            request: 1,
            used_in: BlockId(3),
            hidden: BlockId(2),
            what: "alpha line".to_owned(),
            recoverable,
        };
        assert_eq!(*miss, expected);
        assert_eq!(lost.refetches, [(BlockId(2), 1)]);
    }
}

/// A session with something for every metric.
fn full_session() -> Vec<Value> {
    let mut messages = vec![person("Never use unwrap. Fix src/a.rs.")];
    messages.extend(read(
        "1",
        "src/a.rs",
        "     1→fn first_one() {\n     2→    let value = old_call();\n     3→}",
    ));
    messages.extend(run(
        "2",
        "grep -rn old_call .",
        "./src/b.rs:7:pub fn old_call() -> u8 {\n./src/a.rs:2:    let value = old_call();",
    ));
    messages.extend([
        call("3", "Bash", json!({"command": "cargo test"})),
        failure("3", "error: test failed in src/a.rs:2"),
    ]);
    messages.extend(edit("4", "src/a.rs", "    let value = old_call();", "    let value = new_call();"));
    messages.extend(read("5", "src/b.rs", "     7→pub fn old_call() -> u8 {\n     8→    compute_it(7)"));
    messages.extend(edit(
        "6",
        "src/b.rs",
        "pub fn old_call() -> u8 {",
        "pub fn new_call() -> u8 {\n    compute_it(7)",
    ));
    messages.extend(run("7", "cargo test", "test result: ok. 1 passed; 0 failed"));
    messages
}

#[test]
fn untrimmed_views_keep_everything_and_hiding_more_never_raises_a_share() {
    let segment = session(full_session());
    let track = track(&segment);
    let uses = SegmentUses::find_in(&track);
    let ids = ["1", "2", "3", "5", "7"];
    let judge = |set: u32| {
        let hidden: Vec<As<'_>> = ids
            .iter()
            .enumerate()
            .filter(|(at, _)| set & (1 << at) != 0)
            .map(|(_, id)| As::Gone(id))
            .collect();
        measure_fidelity(&track, &uses, &views(&track, &hidden))
    };
    let all: Vec<Fidelity> = (0..1 << ids.len()).map(judge).collect();
    for (name, share) in shares(&all[0]) {
        assert!(share.of > 0 && share.held == share.of, "{name} {share:?}");
    }
    assert!(all[0].misses.is_empty() && all[0].refetches.is_empty());
    for (set, fewer) in all.iter().enumerate() {
        for (more, other) in all.iter().enumerate().filter(|(more, _)| more & set == set) {
            for ((name, before), (_, after)) in shares(fewer).into_iter().zip(shares(other)) {
                assert!(after.held <= before.held && after.of == before.of, "{name}: {set:b} and {more:b}");
            }
        }
    }
}

#[test]
fn a_mask_hides_all_but_the_last_results_of_every_request() {
    let segment = session(full_session());
    let track = track(&segment);
    let hidden: Vec<usize> = mask_results(&track, 2).changes.iter().map(Vec::len).collect();
    assert_eq!(hidden, [0, 0, 0, 1, 1, 1, 1, 1]);
}
