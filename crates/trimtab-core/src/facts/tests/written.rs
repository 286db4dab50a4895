//! Agents that write their calls into text: what answers them is a result, what a person writes is not.

use super::*;

fn parts(role: &str, texts: &[&str]) -> String {
    let parts: Vec<serde_json::Value> =
        texts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
    serde_json::json!({"role": role, "content": parts}).to_string()
}

#[test]
fn observations_of_code_agents_are_results() {
    let called = "Thought: read it\n<code>\nprint(open('a.py').read())\n</code>\nCalling tools:\n[{'id': 'call_1', 'type': 'function', 'function': {'name': 'python_interpreter', 'arguments': \"print(open('a.py').read())\"}}]";
    let messages = [
        parts("user", &["New task:\nFix the bug."]),
        parts("assistant", &[called]),
        parts("user", &["Observation:\nExecution logs:\nx = 1\nLast output from code snippet:\nNone"]),
        text("assistant", "Thought: again\nCode:\n```py\nprint(2)\n```<end_code>"),
        text(
            "user",
            "Call id: call_2\nError:\nNo.\nNow let's retry: take care not to repeat previous errors!",
        ),
        text("assistant", "Thought: done\n<code>\nfinal_answer(2)\n</code>"),
        text("user", "Observation:\nExecution logs:\n2\nNew task:\nNow add a test."),
    ];
    let facts = told(&messages);
    let acts_as: Vec<BlockKind> = facts.rows().iter().map(|row| row.acts_as).collect();
    let (text, call, result) = (BlockKind::Text, BlockKind::Call, BlockKind::Result);
    assert_eq!(acts_as, [text, call, result, call, result, text, text]);
    assert_eq!(facts.rows()[6].voice, Some(Voice::Person));
    assert_eq!(facts.current_task(), Some(facts.rows()[6].entry));
    assert_eq!(facts.rows()[2].tool(), Some(ToolKind::Run));
}

#[test]
fn actions_with_an_input_are_calls() {
    let mut messages = vec![
        text("user", "Fix it"),
        text("assistant", "Thought: read\nAction: read_file\nAction Input: a.py"),
        text("user", "Observation: x = 1"),
        text("assistant", "Action:\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}"),
        parts("user", &["Observation:\nx = 2"]),
    ];
    check_superseded(&messages, &["2 read again 4"]);
    messages.extend([
        text("assistant", "Action: read_file\nAction Input: b.py\nAction: read_file\nAction Input: a.py"),
        text("user", "Observation: 1\nObservation: 2"),
    ]);
    let facts = told(&messages);
    assert_eq!(facts.rows()[6].acts_as, BlockKind::Result);
    assert_eq!(facts.rows()[6].actions.len(), 2);
    // A newer read shows it, but the message that holds it holds another file too.
    assert_eq!(facts.rows()[4].superseded_by.map(|(block, _)| block), Some(BlockId(6)));
}

#[test]
fn a_person_who_observes_is_a_person() {
    let messages = [
        text("user", "Fix it"),
        text("assistant", "I would write:\n```python\nprint(1)\n```\nShall I?"),
        text("user", "Observation: it prints nothing. Look again."),
        text("assistant", "Action: nothing more to do"),
        text("user", "Observation: you gave up."),
    ];
    let facts = told(&messages);
    assert!(facts.rows().iter().all(|row| row.acts_as == BlockKind::Text));
    assert_eq!(facts.rows()[4].voice, Some(Voice::Person));
}

#[test]
fn what_stands_behind_a_heading_is_the_result() {
    let read = "I read it.\n<read_file>\n<path>src/a.ts</path>\n</read_file>";
    let messages = [
        parts("user", &["<task>\nFix it\n</task>", "<environment_details>\n# Files\n</environment_details>"]),
        text("assistant", read),
        parts(
            "user",
            &[
                "[read_file for 'src/a.ts'] Result:",
                "const a = 1",
                "<environment_details>\n# Files\n</environment_details>",
            ],
        ),
        text("assistant", read),
        parts("user", &["[read_file for 'src/a.ts'] Result:", "const a = 2"]),
        text("assistant", "<ask_followup_question>\n<question>Which?</question>\n</ask_followup_question>"),
        parts("user", &["[ask_followup_question for 'Which?'] Result:", "<answer>\nThe second.\n</answer>"]),
        text("assistant", "<write_to_file>\n<path>src/a.ts</path>\n<content>x</content>\n</write_to_file>"),
        parts(
            "user",
            &[
                "[write_to_file for 'src/a.ts'] Result:",
                "The user denied this operation and said:\n<feedback>\nNo.\n</feedback>",
            ],
        ),
    ];
    let facts = told(&messages);
    let acts_as = |row: usize| facts.rows()[row].acts_as;
    // The task and its environment, a call, the heading, the text, the environment; a call, the heading, the text.
    assert_eq!([acts_as(3), acts_as(4), acts_as(5)], [BlockKind::Result, BlockKind::Result, BlockKind::Text]);
    assert_eq!(facts.rows()[5].voice, Some(Voice::Environment));
    assert_eq!(facts.rows()[4].partner, Some(BlockId(2)));
    assert_eq!(facts.rows()[2].partner, Some(BlockId(4)));
    assert_eq!(facts.rows()[3].superseded_by, None);
    assert_eq!(facts.rows()[4].superseded_by, Some((BlockId(8), SupersedeRule::ReadAgain)));
    let persons = |row: usize| {
        facts.rows()[row].acts_as == BlockKind::Text && facts.rows()[row].voice == Some(Voice::Person)
    };
    assert!(persons(11) && persons(14), "{:#?}", facts.rows());
}

#[test]
fn a_message_that_grows_is_told_as_at_once() {
    let read = "<read_file>\n<path>src/a.ts</path>\n</read_file>";
    let heading = "[read_file for 'src/a.ts'] Result:";
    let answers = [
        vec![heading],
        vec![heading, "const a = 1"],
        vec![heading, "const a = 1", "<environment_details>\nx\n</environment_details>"],
        vec![heading],
        vec![heading, "The user denied this."],
        vec![heading, "const a = 1"],
        vec![],
    ];
    let talk = |answer: &[&str]| {
        let mut messages = vec![text("user", "Fix it"), text("assistant", read)];
        messages.extend((!answer.is_empty()).then(|| parts("user", answer)));
        history(&messages)
    };
    let mut before = talk(&[]);
    let mut so_far = facts(&before);
    for answer in answers {
        let after = parse_after(&before, talk(&answer).into_bytes()).expect("a request");
        so_far.extend(&after);
        assert_eq!(so_far.rows(), facts(&after).rows(), "{answer:?}");
        before = after;
    }
}
