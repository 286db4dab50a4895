//! Agents that write their calls into plain text. Takes an assistant's text or a user's message; gives the action
//! written in the one, and tells whether the other is what an action printed. Never takes code that a model merely
//! shows for an action: only text that was answered by an observation is asked. Never takes a message in which a
//! person speaks for an observation.

use super::react;

/// A call written in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenCall {
    /// The tool's name.
    pub(crate) name: String,
    /// Its arguments by name.
    pub(crate) arguments: Vec<(String, String)>,
}

/// Tells whether a user's message is what an action printed, and nothing that a person wrote.
pub(crate) fn is_observation(text: &str) -> bool {
    let begins = text.trim_start();
    let starts = [
        "<returncode>", "<exception>", "EXECUTION RESULT of [", "<function_results>", "<tool_response>",
        "<tool_result>", "<tool_results>", "<output>", "[Tool Result", "<observation>",
    ];
    if starts.iter().any(|start| begins.starts_with(start)) {
        return true;
    }
    if is_plain_observation(begins) || is_retry(begins) {
        // smolagents joins a new task to the message before it.
        return memchr::memmem::find(text.as_bytes(), b"\nNew task:\n").is_none();
    }
    if is_named_result(begins) {
        return !holds_answer(begins);
    }
    let tail = super::text_tail(text, 600);
    tail.contains("(Current directory: ")
        && (tail.contains("(Open file: ") || tail.trim_end().ends_with("bash-$"))
}

/// Tells `Observation: …` and `Observation 3: …`.
fn is_plain_observation(text: &str) -> bool {
    let Some(behind) = text.strip_prefix("Observation").or_else(|| text.strip_prefix("OBSERVATION")) else {
        return false;
    };
    behind.trim_start_matches(|letter: char| letter == ' ' || letter.is_ascii_digit()).starts_with(':')
}

/// Tells how smolagents answers an action that failed.
fn is_retry(text: &str) -> bool {
    let error = match text.strip_prefix("Call id: ") {
        Some(behind) => behind.split_once('\n').map_or("", |(_, error)| error),
        None => text,
    };
    error.starts_with("Error:\n") && error.contains("Now let's retry")
}

/// Tells whether a person answers in what Cline and Roo give a tool's name: a question, a plan, or a call to approve.
fn holds_answer(text: &str) -> bool {
    const ASKING: &[&str] = &[
        "[ask_followup_question", "[attempt_completion", "[plan_mode_respond", "[act_mode_respond",
        "[new_task",
    ];
    const MARKS: &[&str] = &[":\n<feedback>", ":\n\n<feedback>", ":\n<user_message>", ":\n\n<user_message>"];
    ASKING.iter().any(|name| text.starts_with(name))
        || MARKS.iter().any(|mark| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some())
}

/// Cline and Roo name the tool: `[read_file for 'src/a.ts'] Result:`.
fn is_named_result(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else { return false };
    let line = rest.lines().next().unwrap_or_default();
    let name = line.split([' ', ']']).next().unwrap_or_default();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name && line.contains("] Result:")
}

/// Tells whether a text only names the tool, and what the tool printed stands in the next text of the message.
pub(crate) fn is_heading(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.ends_with("] Result:") && is_named_result(text)
}

/// Tells whether a text after a heading is what the tool printed: nothing of the harness, and nothing of a person.
pub(crate) fn is_continuation(text: &str) -> bool {
    let begins = text.trim_start();
    let others = [
        "<environment_details>", "<system-reminder>", "<feedback>", "<answer>", "<user_message>", "<task>",
        "The user ",
    ];
    !is_named_result(begins) && !others.iter().any(|other| begins.starts_with(other)) && !holds_answer(begins)
}

/// Finds the actions in an assistant's text, in order.
pub(crate) fn find_actions(text: &str) -> Vec<WrittenCall> {
    if let Some(action) = tagged_action(text) {
        return vec![action];
    }
    let named = react::find_named_actions(text);
    if !named.is_empty() {
        return named;
    }
    let shell =
        text_between(text, "<command>", "</command>").or_else(|| last_fenced_block(text)).map(shell_call);
    shell.or_else(|| react::find_code_action(text)).into_iter().collect()
}

fn tagged_action(text: &str) -> Option<WrittenCall> {
    tagged_function(text)
        .or_else(|| text_between(text, "<execute_bash>", "</execute_bash>").map(shell_call))
        .or_else(|| {
            text_between(text, "<execute_ipython>", "</execute_ipython>").map(|code| WrittenCall {
                name: "execute_ipython".into(),
                arguments: vec![("code".into(), code.into())],
            })
        })
        .or_else(|| xml_tool(text))
}

fn shell_call(command: &str) -> WrittenCall {
    WrittenCall {
        name: "shell".to_owned(),
        arguments: vec![("command".to_owned(), command.trim().to_owned())],
    }
}

fn text_between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close).map_or(rest, |(inner, _)| inner))
}

/// Reads `<function=name><parameter=key>value</parameter></function>`.
fn tagged_function(text: &str) -> Option<WrittenCall> {
    let (_, rest) = text.split_once("<function=")?;
    let (name, rest) = rest.split_once('>')?;
    let body = rest.split_once("</function>").map_or(rest, |(body, _)| body);
    let mut arguments = Vec::new();
    for piece in body.split("<parameter=").skip(1) {
        let Some((key, value)) = piece.split_once('>') else { continue };
        let value = value.split_once("</parameter>").map_or(value, |(value, _)| value);
        arguments.push((key.to_owned(), value.trim_matches('\n').to_owned()));
    }
    Some(WrittenCall { name: name.to_owned(), arguments })
}

/// Reads `<read_file><path>src/a.ts</path></read_file>`.
fn xml_tool(text: &str) -> Option<WrittenCall> {
    for (at, _) in text.match_indices('<') {
        let rest = text.get(at + 1..)?;
        let Some((name, behind)) = rest.split_once('>') else { continue };
        let is_name = name.len() < 40
            && name.contains('_')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !is_name || super::names::manner_by_name(name).is_none() {
            continue;
        }
        let Some((body, _)) = behind.split_once(&format!("</{name}>")) else { continue };
        return Some(WrittenCall { name: name.to_owned(), arguments: child_elements(body) });
    }
    None
}

fn child_elements(body: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some((_, behind)) = rest.split_once('<') {
        let Some((name, inner)) = behind.split_once('>') else { break };
        match inner.split_once(&format!("</{name}>")) {
            Some((value, after)) if !name.starts_with('/') => {
                found.push((name.to_owned(), value.trim_matches('\n').to_owned()));
                rest = after;
            }
            _ => rest = inner,
        }
    }
    found
}

/// Reads the last fenced block.
fn last_fenced_block(text: &str) -> Option<&str> {
    let end = text.rfind("```")?;
    let before = text.get(..end)?;
    let start = if text.get(end + 3..)?.trim().is_empty() || before.contains("```") {
        before.rfind("```")?
    } else {
        return None;
    };
    let inner = before.get(start + 3..)?;
    let (language, body) = inner.split_once('\n')?;
    let is_shell =
        matches!(language.trim(), "" | "bash" | "sh" | "shell" | "console" | "zsh" | "mswea_bash_command");
    is_shell.then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, arguments: &[(&str, &str)]) {
        check_all(text, &[(name, arguments)]);
    }

    fn check_all(text: &str, expected: &[(&str, &[(&str, &str)])]) {
        let found = find_actions(text);
        let found: Vec<(&str, Vec<(&str, &str)>)> = found
            .iter()
            .map(|written| {
                let given = written.arguments.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                (written.name.as_str(), given.collect())
            })
            .collect();
        let expected: Vec<(&str, Vec<(&str, &str)>)> =
            expected.iter().map(|(name, arguments)| (*name, arguments.to_vec())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn actions_are_found_in_the_texts_of_each_agent() {
        check("THOUGHT: look\n\n```bash\nls -la\n```", "shell", &[("command", "ls -la")]);
        check("Let's open it.\n```\nopen setup.py\n```", "shell", &[("command", "open setup.py")]);
        check("Run\n<execute_bash>\npytest -x\n</execute_bash>", "shell", &[("command", "pytest -x")]);
        check("Look\n<command>\ncreate a.py\n</command>", "shell", &[("command", "create a.py")]);
        check(
            "<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>/a.py</parameter>\n</function>",
            "str_replace_editor",
            &[("command", "view"), ("path", "/a.py")],
        );
        check(
            "I will read.\n<read_file>\n<path>src/a.ts</path>\n</read_file>",
            "read_file",
            &[("path", "src/a.ts")],
        );
        check_all("Just words, and `code`.", &[]);
        check_all("```python\nprint(1)\n```", &[]);
        check_all("Use <code>x</code> for that. It works.", &[]);
        check_all("Next Action: none is needed, I think.", &[]);
        check("THOUGHT: look\nAction: list\n```bash\nls\n```", "shell", &[("command", "ls")]);
    }

    #[test]
    fn actions_of_agents_that_reason_in_text_are_found() {
        let code = &[("code", "print(search(q='a'))")][..];
        check("Thought: look it up\n<code>\nprint(search(q='a'))\n</code>", "python_interpreter", code);
        check("Thought: look\nCode:\n```py\nprint(search(q='a'))\n```<end_code>", "python_interpreter", code);
        check("Thought: look\n```python\nprint(search(q='a'))\n```", "python_interpreter", code);
        check(
            "Thought: look\n<code>\nprint(search(q='a'))\n</code>\nCalling tools:\n[{'id': 'call_2', 'type': 'function', 'function': {'name': 'python_interpreter', 'arguments': \"print(search(q='a'))\"}}]",
            "python_interpreter",
            code,
        );
        check_all(
            "Calling tools:\n[{'id': '1', 'type': 'function', 'function': {'name': 'web_search', 'arguments': {'query': 'it\\'s'}}}, {'id': '2', 'type': 'function', 'function': {'name': 'read_file', 'arguments': {'path': 'a.py', 'limit': 5}}}]",
            &[("web_search", &[("query", "it's")]), ("read_file", &[("path", "a.py"), ("limit", "5")])],
        );
        check(
            "Action:\n{\n  \"name\": \"read_file\",\n  \"arguments\": {\"path\": \"a.py\"}\n}",
            "read_file",
            &[("path", "a.py")],
        );
        check(
            "Thought: x\nAction:\n```json\n{\"action\": \"search\", \"action_input\": \"rust\"}\n```",
            "search",
            &[("query", "rust")],
        );
        check(
            "Thought: x\nAction: search\nAction Input: rust traits\n",
            "search",
            &[("query", "rust traits")],
        );
        check("Action: read_file\nAction Input: {\"path\": \"a.py\"}", "read_file", &[("path", "a.py")]);
        check("Thought 1: x\nAction 1: Search[Rust]", "Search", &[("query", "Rust")]);
        check_all(
            "Action: bash\nAction Input: ls\nAction: bash\nAction Input: cat a.py\nwc a.py",
            &[("bash", &[("command", "ls")]), ("bash", &[("command", "cat a.py\nwc a.py")])],
        );
    }

    #[test]
    fn observations_are_told_from_a_persons_words() {
        let seen = |text: &str| assert!(is_observation(text), "{text}");
        seen("<returncode>0</returncode>\n<output>\n</output>");
        seen("a.py\n\n(Open file: n/a)\n(Current directory: /repo)\nbash-$");
        seen("[read_file for 'src/a.ts'] Result:\n\nconst a = 1");
        seen("OBSERVATION:\nok");
        seen("Observation:\nExecution logs:\nok");
        seen("Observation 2: ok");
        seen(
            "Call id: call_3\nError:\nno such name\nNow let's retry: take care not to repeat previous errors!",
        );
        assert!(!is_observation("Please fix [this] result: it is wrong"));
        assert!(!is_observation("What does the observation say?"));
        assert!(!is_observation("Observation:\nok\nNew task:\nNow write the tests."));
        assert!(!is_observation(
            "[write_to_file for 'a.ts'] Result:\n\nThe user said:\n<feedback>\nNot like this.\n</feedback>"
        ));
        assert!(
            is_heading("[read_file for 'a.ts'] Result:") && !is_heading("[read_file for 'a.ts'] Result:\nx")
        );
        assert!(is_continuation("const a = 1") && !is_continuation("<environment_details>\nx"));
        assert!(!is_continuation("The user denied this operation."));
    }
}
