//! Results that a client wrapped in JSON: `{"output": "…"}`, `[{"query": …, "result": "…"}]`, `{"content": [{"text": "…"}]}`.
//! [`WrappedResult`] holds the text leaves of such a result, one after the other, and where each stands; [`ReadableResult`] is what a result
//! says, wrapped or not. Facts, digests, seen lines and names read that text; rendering puts the leaves back. The text alone
//! decides, so that all of them decide alike. Ordinary JSON data is not wrapped: it has no long text, or too many.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memmem};

use crate::{
    json::{Value, scan},
    notes::{NOTE_MEMBER, holds_note},
};

/// Members that hold what a tool said, in the words of clients and protocols.
const TEXTS: &[&str] = &[
    "output", "result", "results", "content", "contents", "stdout", "stderr", "text", "error", "message",
    "response", "body", "log", "logs", "llmContent", "aggregated_output", "formatted_output",
];

/// Members that say something about the call beside it.
const ASIDES: &[&str] = &[
    "exit_code", "exitCode", "returncode", "return_code", "code", "status", "success", "ok", "is_error",
    "isError", "duration", "duration_ms", "durationMs", "duration_seconds", "elapsed", "time", "wall_time",
    "wall_time_seconds", "metadata", "meta", "_meta", "name", "type", "role", "tool", "tool_name",
    "toolName", "tool_call_id", "tool_use_id", "call_id", "id", "query", "path", "file_path", "command",
    "cmd", "cwd", "truncated", "is_truncated", "signal", "timed_out", "timedOut", "interrupted", "isImage",
    "pid", "title", "annotations", "mime_type", "mimeType", "cache_control", "total_lines", "start_line",
    "end_line",
];

/// The members that hold an exit code. A `code` may be anything, unless a program's output stands beside it.
const EXIT_CODES: &[&str] = &["exit_code", "exitCode", "returncode", "return_code"];
const PRINTED: &[&str] = &["output", "stdout", "stderr"];

/// The longest value beside the text, in bytes of JSON.
const LONGEST_ASIDE: usize = 400;
/// The most leaves of a result whose members are all known, and of any other one.
const MOST_LEAVES: usize = 32;
const MOST_LONG_LEAVES: usize = 8;
/// From how many bytes on a string is a text, with a line end in it and without.
const LONG_LINES: usize = 120;
const LONG_STRING: usize = 500;
/// The share of a JSON text that its long strings make where it only wraps them, in percent.
const MOST_OF_IT: usize = 60;

/// A text leaf: a JSON string that is read as a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextLeaf {
    /// The string in the JSON, quotes included.
    pub(crate) span: Range<usize>,
    /// What it says, in bytes of [`WrappedResult::text`].
    pub(crate) bytes: Range<usize>,
    /// The lines of [`WrappedResult::text`] that it has, counted from 0.
    pub(crate) lines: Range<usize>,
}

/// A result that a client wrapped in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrappedResult {
    /// What the leaves say, one after the other, each beginning on a new line.
    pub(crate) text: String,
    /// The leaves, in order; none is empty.
    pub(crate) leaves: Vec<TextLeaf>,
}

/// What a result says, without the JSON around it.
#[derive(Debug)]
pub(crate) struct ReadableResult<'a> {
    /// The text.
    pub(crate) text: Cow<'a, str>,
    /// The exit code that stands beside it.
    pub(crate) exit_code: Option<i64>,
    /// Whether what stands beside it says that the call failed; nothing where it does not say.
    pub(crate) failed: Option<bool>,
    /// The first line of each leaf, counted from 0, where there are several.
    pub(crate) leaf_starts: Vec<usize>,
}

/// Returns what a text says, without the JSON that a client put around it.
pub(crate) fn readable_text(text: &str) -> Cow<'_, str> {
    ReadableResult::read_result(text).text
}

impl<'a> ReadableResult<'a> {
    pub(crate) fn read_result(text: &'a str) -> ReadableResult<'a> {
        let mut readable = ReadableResult {
            text: Cow::Borrowed(text),
            exit_code: None,
            failed: None,
            leaf_starts: Vec::new(),
        };
        // A leaf may be wrapped again; each turn is shorter than the one before.
        while let Some(json) = ScannedText::read(&readable.text) {
            let (exit_code, failed) = (json.exit_code(), json.says_failed());
            let inner = json.wrapped_result();
            readable.exit_code = readable.exit_code.or(exit_code);
            readable.failed = readable.failed.or(failed);
            let Some(inner) = inner else { break };
            let is_one = inner.leaves.len() == 1;
            readable.text = Cow::Owned(inner.text);
            if !is_one {
                readable.leaf_starts = inner.leaves.iter().map(|leaf| leaf.lines.start).collect();
                break;
            }
        }
        readable
    }
}

impl WrappedResult {
    /// Finds the text leaves of a JSON text; nothing where it is no JSON, or data.
    pub(crate) fn find_leaves(text: &str) -> Option<WrappedResult> {
        ScannedText::read(text)?.wrapped_result()
    }
}

/// A JSON text that was scanned.
struct ScannedText<'a> {
    text: &'a str,
    tape: crate::json::Tape,
}

impl<'a> ScannedText<'a> {
    fn read(text: &'a str) -> Option<ScannedText<'a>> {
        let trimmed = text.trim();
        let object = trimmed.starts_with('{') && trimmed.ends_with('}');
        let array = trimmed.starts_with('[') && trimmed.ends_with(']');
        // A whole text may be one string, too.
        let string = trimmed.starts_with('"') && trimmed.ends_with('"') && trimmed.len() >= LONG_LINES;
        (object || array || string).then(|| Some(ScannedText { text, tape: scan(text.as_bytes()).ok()? }))?
    }

    fn root(&self) -> Option<Value<'_>> {
        self.tape.root(self.text.as_bytes())
    }

    fn wrapped_result(&self) -> Option<WrappedResult> {
        // The scanner lets line ends pass inside strings; strict JSON has none, and what is written back must be strict.
        if breaks_strings(self.text) {
            return None;
        }
        let root = self.root()?;
        let known = known_leaves(root).map(|leaves| leaves.into_iter().map(|leaf| leaf.string).collect());
        let noted = || if holds_note(self.text) { noted_leaves(root) } else { None };
        let others = || noted().or_else(|| long_leaves(root)).or_else(|| heaviest_leaf(root));
        let mut leaves: Vec<Value<'_>> = known.or_else(others)?;
        leaves.sort_by_key(|leaf| leaf.span().start());
        let mut wrapped = WrappedResult { text: String::new(), leaves: Vec::new() };
        let last = leaves.len().saturating_sub(1);
        let mut line = 0;
        for (number, leaf) in leaves.into_iter().enumerate() {
            let says = leaf.string()?;
            let start = wrapped.text.len();
            wrapped.text.push_str(&says);
            let ends = says.ends_with('\n');
            let lines = memchr::memchr_iter(b'\n', says.as_bytes()).count() + usize::from(!ends);
            wrapped.leaves.push(TextLeaf {
                span: leaf.span().range(),
                bytes: start..wrapped.text.len(),
                lines: line..line + lines,
            });
            line += lines;
            if !ends && number < last {
                wrapped.text.push('\n');
            }
        }
        Some(wrapped)
    }

    fn exit_code(&self) -> Option<i64> {
        let root = self.root()?;
        let beside =
            root.members().filter(|(_, value)| value.is_object() && value.span().len() <= LONGEST_ASIDE);
        std::iter::once(root).chain(beside.map(|(_, value)| value)).find_map(code_of)
    }

    fn says_failed(&self) -> Option<bool> {
        let root = self.root()?;
        let rows: Vec<Value<'_>> = if root.is_array() { root.items().collect() } else { vec![root] };
        let said: Vec<bool> = rows.into_iter().filter_map(says_failed).collect();
        let by_flag = (!said.is_empty()).then(|| said.iter().all(|failed| *failed));
        // All that it says is an error.
        let is_error = || known_leaves(root)?.iter().all(|leaf| leaf.in_error).then_some(true);
        by_flag.or_else(is_error)
    }
}

fn code_of(object: Value<'_>) -> Option<i64> {
    let code = |key: &&str| std::str::from_utf8(object.get(key)?.raw()).ok()?.parse().ok();
    let is_program = || PRINTED.iter().any(|key| object.get(key).is_some());
    EXIT_CODES.iter().find_map(code).or_else(|| if is_program() { code(&"code") } else { None })
}

fn says_failed(row: Value<'_>) -> Option<bool> {
    let flag = |key: &str| match row.get(key)?.raw() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    };
    let bad = ["is_error", "isError"].iter().find_map(|key| flag(key));
    bad.or_else(|| flag("success").map(|success| !success))
}

/// A string whose member is known to hold a text.
struct KnownLeaf<'a> {
    string: Value<'a>,
    in_error: bool,
}

/// Returns the texts of a JSON value of which every member is known; nothing where one is not.
fn known_leaves(root: Value<'_>) -> Option<Vec<KnownLeaf<'_>>> {
    let mut leaves = Vec::new();
    let mut open = vec![(root, false)];
    while let Some((value, in_error)) = open.pop() {
        // A list of strings is data.
        (value.is_object() || value.is_array()).then_some(())?;
        open.extend(value.items().map(|item| (item, in_error)));
        for (name, member) in value.members() {
            let name = name.string()?;
            let in_error = in_error || name == "error";
            if !TEXTS.contains(&&*name) {
                let known = ASIDES.contains(&&*name) && member.span().len() <= LONGEST_ASIDE;
                known.then_some(())?;
            } else if member.is_string() {
                leaves.push(KnownLeaf { string: member, in_error });
            } else if member.is_object() || member.is_array() {
                open.push((member, in_error));
            }
        }
        (leaves.len() <= MOST_LEAVES).then_some(())?;
    }
    // Empty strings are left unchanged.
    leaves.retain(|leaf| leaf.string.span().len() > 2);
    let has_lines = |leaf: &KnownLeaf<'_>| memmem::find(leaf.string.raw(), b"\\n").is_some();
    let is_text = match leaves.len() {
        0 => false,
        1 | 2 => true,
        _ => leaves.iter().any(has_lines),
    };
    is_text.then_some(leaves)
}

/// Returns the strings that end with one of our notes: however little is left of them, they are still the texts. Elements of a
/// list and members that we add are notes about data.
fn noted_leaves(root: Value<'_>) -> Option<Vec<Value<'_>>> {
    let mut leaves: Vec<Value<'_>> = Vec::new();
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        open.extend(value.items().filter(|item| !item.is_string()));
        for (name, member) in value.members() {
            if member.is_string() && !name.is(NOTE_MEMBER) {
                leaves.extend(member.string().filter(|says| holds_note(says)).map(|_| member));
            } else {
                open.push(member);
            }
        }
    }
    (!leaves.is_empty()).then_some(leaves)
}

/// Returns the long strings of a JSON value, where they are few and make most of it.
fn long_leaves(root: Value<'_>) -> Option<Vec<Value<'_>>> {
    let mut leaves: Vec<Value<'_>> = Vec::new();
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        // What is short holds nothing long.
        if value.span().len() < LONG_LINES {
            continue;
        }
        open.extend(value.items());
        open.extend(value.members().map(|(_, member)| member));
        if value.is_string() && is_long(value) {
            leaves.push(value);
            (leaves.len() <= MOST_LONG_LEAVES).then_some(())?;
        }
    }
    let bytes: usize = leaves.iter().map(|leaf| leaf.span().len()).sum();
    (bytes * 100 > root.span().len() * MOST_OF_IT).then_some(leaves)
}

fn is_long(string: Value<'_>) -> bool {
    string.span().len() >= LONG_STRING || memmem::find(string.raw(), b"\\n").is_some()
}

/// Returns the long string that makes most of a value that makes most of the text, and so on down.
fn heaviest_leaf(root: Value<'_>) -> Option<Vec<Value<'_>>> {
    let mut value = root;
    while !value.is_string() {
        let children = value.items().chain(value.members().map(|(_, member)| member));
        let largest = children.max_by_key(|child| child.span().len())?;
        (largest.span().len() * 100 > value.span().len() * MOST_OF_IT).then_some(())?;
        value = largest;
    }
    (value.span().len() > LONG_STRING).then(|| vec![value])
}

/// Tells whether lines end inside strings, which strict JSON forbids and the scanner lets pass.
pub(crate) fn breaks_strings(text: &str) -> bool {
    if memchr(b'\n', text.as_bytes()).is_none() {
        return false;
    }
    let mut inside = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => drop(bytes.next()),
            b'\n' if inside => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LOG: &str = "first line\nsecond \"line\"\nthird\n";

    #[track_caller]
    fn check(value: &Value, expected: &[&str]) {
        let text = value.to_string();
        let wrapped = WrappedResult::find_leaves(&text);
        let leaves = wrapped.iter().flat_map(|wrapped| {
            wrapped.leaves.iter().map(|leaf| {
                let says = &wrapped.text[leaf.bytes.clone()];
                assert_eq!(serde_json::from_str::<String>(&text[leaf.span.clone()]).expect("a string"), says);
                let lines: Vec<&str> = wrapped.text.lines().collect();
                assert_eq!(lines[leaf.lines.clone()], says.lines().collect::<Vec<_>>());
                says
            })
        });
        assert_eq!(leaves.collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn what_clients_wrap_is_read_by_its_text_leaves() {
        check(&json!({"output": LOG}), &[LOG]);
        check(&json!({"result": "short"}), &["short"]);
        check(&json!({"stdout": LOG, "stderr": "", "exit_code": 0}), &[LOG]);
        check(&json!({"stdout": "out", "stderr": LOG, "exit_code": 0}), &[LOG, "out"]);
        check(&json!({"name": "read_file", "content": LOG}), &[LOG]);
        check(&json!([{"query": "a.rs", "result": LOG, "success": true}]), &[LOG]);
        check(
            &json!([{"query": "a", "result": LOG}, {"query": "b", "result": "x"}, {"query": "c", "result": "y"}]),
            &[LOG, "x", "y"],
        );
        check(
            &json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": LOG}]}),
            &["a", LOG],
        );
        check(&json!([{"type": "text", "text": LOG}]), &[LOG]);
        check(&json!({"output": LOG, "metadata": {"exit_code": 1, "duration_seconds": 0.1}}), &[LOG]);
        check(&json!(LOG.repeat(20)), &[&LOG.repeat(20)]);
        check(&json!({"answer": {"page": LOG.repeat(20)}, "other": 1}), &[&LOG.repeat(20)]);
    }

    #[test]
    fn data_is_not_wrapped() {
        check(&json!([{"id": 1, "content": "a"}, {"id": 2, "content": "b"}, {"id": 3, "content": "c"}]), &[]);
        check(&json!({"result": ["src/a.rs", "src/b.rs"]}), &[]);
        check(&json!({"total": 3, "rows": [{"id": 1}]}), &[]);
        check(&json!({"data": LOG}), &[]);
        check(&json!(["a", "b"]), &[]);
        check(&json!({}), &[]);
        let rows: Vec<Value> =
            (0..20).map(|id| json!({"id": id, "labels": [], "notes": LOG.repeat(6)})).collect();
        check(&json!(rows), &[]);
        assert_eq!(WrappedResult::find_leaves("{\"output\": \"broken\nin a string\"}"), None);
        assert_eq!(WrappedResult::find_leaves("[package]\nname = \"x\"]"), None);
    }

    #[test]
    fn a_leaf_that_is_wrapped_again_is_read_too_and_its_ending_is_known() {
        let inner = json!({"stdout": LOG, "exit_code": 2}).to_string();
        let outer = json!([{"type": "text", "text": inner}]).to_string();
        let readable = ReadableResult::read_result(&outer);
        assert_eq!((&*readable.text, readable.exit_code, readable.failed), (LOG, Some(2), None));
    }

    #[test]
    fn what_stands_beside_a_text_says_how_the_call_ended() {
        let ending = |value: Value| {
            let text = value.to_string();
            let readable = ReadableResult::read_result(&text);
            (readable.exit_code, readable.failed)
        };
        assert_eq!(ending(json!({"output": LOG, "metadata": {"exit_code": -1}})), (Some(-1), None));
        assert_eq!(ending(json!({"result": "x", "success": false})), (None, Some(true)));
        assert_eq!(
            ending(
                json!([{"query": "a", "result": "x", "success": true}, {"query": "b", "result": "y", "success": false}])
            ),
            (None, Some(false))
        );
        assert_eq!(
            ending(json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
            (None, Some(true))
        );
        assert_eq!(ending(json!({"error": "no such file"})), (None, Some(true)));
        assert_eq!(ending(json!({"error": {"message": "no such file", "code": 404}})), (None, Some(true)));
        assert_eq!(ending(json!({"output": "fine", "error": ""})), (None, None));
        assert_eq!(ending(json!({"exit_code": 3, "files": ["a"]})), (Some(3), None));
    }
}
