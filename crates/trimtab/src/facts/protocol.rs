//! Agents that write their calls into plain text. Takes an assistant's text or a user's message; gives the action
//! written in the one, and tells whether the other is what an action printed. Never takes code that a model merely
//! shows for an action: only text that was answered by an observation is asked.

/// A call written in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// The tool's name.
    pub(crate) name: String,
    /// Its arguments by name.
    pub(crate) arguments: Vec<(String, String)>,
}

/// Tells whether a user's message is what an action printed.
pub(crate) fn is_observation(text: &str) -> bool {
    let begins = text.trim_start();
    let starts = [
        "<returncode>",
        "<exception>",
        "OBSERVATION:",
        "Observation:",
        "EXECUTION RESULT of [",
        "<function_results>",
        "<tool_response>",
        "<tool_result>",
        "<tool_results>",
        "<output>",
        "[Tool Result",
        "<observation>",
    ];
    if starts.iter().any(|start| begins.starts_with(start)) {
        return true;
    }
    let tail = super::text_tail(text, 600);
    let swe_agent = tail.contains("(Current directory: ")
        && (tail.contains("(Open file: ") || tail.trim_end().ends_with("bash-$"));
    swe_agent || is_named_result(begins)
}

/// Cline and Roo name the tool: `[read_file for 'src/a.ts'] Result:`.
fn is_named_result(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else { return false };
    let line = rest.lines().next().unwrap_or_default();
    let name = line.split([' ', ']']).next().unwrap_or_default();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name && line.contains("] Result:")
}

/// Finds the action in an assistant's text.
pub(crate) fn action(text: &str) -> Option<Written> {
    tagged_function(text)
        .or_else(|| between(text, "<execute_bash>", "</execute_bash>").map(shell))
        .or_else(|| {
            between(text, "<execute_ipython>", "</execute_ipython>").map(|code| Written {
                name: "execute_ipython".into(),
                arguments: vec![("code".into(), code.into())],
            })
        })
        .or_else(|| xml_tool(text))
        .or_else(|| between(text, "<command>", "</command>").map(shell))
        .or_else(|| fenced(text).map(shell))
}

fn shell(command: &str) -> Written {
    Written { name: "shell".to_owned(), arguments: vec![("command".to_owned(), command.trim().to_owned())] }
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close).map_or(rest, |(inner, _)| inner))
}

/// Reads `<function=name><parameter=key>value</parameter></function>`.
fn tagged_function(text: &str) -> Option<Written> {
    let (_, rest) = text.split_once("<function=")?;
    let (name, rest) = rest.split_once('>')?;
    let body = rest.split_once("</function>").map_or(rest, |(body, _)| body);
    let mut arguments = Vec::new();
    for piece in body.split("<parameter=").skip(1) {
        let Some((key, value)) = piece.split_once('>') else { continue };
        let value = value.split_once("</parameter>").map_or(value, |(value, _)| value);
        arguments.push((key.to_owned(), value.trim_matches('\n').to_owned()));
    }
    Some(Written { name: name.to_owned(), arguments })
}

/// Reads `<read_file><path>src/a.ts</path></read_file>`.
fn xml_tool(text: &str) -> Option<Written> {
    for (at, _) in text.match_indices('<') {
        let rest = text.get(at + 1..)?;
        let Some((name, behind)) = rest.split_once('>') else { continue };
        let is_name = name.len() < 40
            && name.contains('_')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !is_name || super::names::named(name).is_none() {
            continue;
        }
        let Some((body, _)) = behind.split_once(&format!("</{name}>")) else { continue };
        return Some(Written { name: name.to_owned(), arguments: children(body) });
    }
    None
}

fn children(body: &str) -> Vec<(String, String)> {
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
fn fenced(text: &str) -> Option<&str> {
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
        let found = action(text).expect("an action");
        let given: Vec<(&str, &str)> =
            found.arguments.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!((found.name.as_str(), given.as_slice()), (name, arguments), "{text}");
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
        assert_eq!(action("Just words, and `code`."), None);
        assert_eq!(action("```python\nprint(1)\n```"), None);
    }

    #[test]
    fn observations_are_told_from_a_persons_words() {
        let seen = |text: &str| assert!(is_observation(text), "{text}");
        seen("<returncode>0</returncode>\n<output>\n</output>");
        seen("a.py\n\n(Open file: n/a)\n(Current directory: /repo)\nbash-$");
        seen("[read_file for 'src/a.ts'] Result:\n\nconst a = 1");
        seen("OBSERVATION:\nok");
        assert!(!is_observation("Please fix [this] result: it is wrong"));
        assert!(!is_observation("What does the observation say?"));
    }
}
