//! One pass over a JSON text. Takes bytes; gives a [`Tape`]: a node for every value and key, in the
//! order of the text, each knowing where it ends and which node follows it.
//! Checks structure, literals and numbers. Never looks inside strings: most bytes of a request are
//! string contents, and `memchr` for the closing quote passes them at memory speed.

use memchr::memchr;

use super::{JsonError, MAX_JSON_BYTES, Span, narrow, value::JsonKind, value::Value, widen};

/// One value or key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapeNode {
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index of the node after this one and everything inside it.
    pub(super) next: u32,
    pub(super) kind: JsonKind,
}

/// Every value of one JSON text, flat. In an object, keys and values alternate.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    pub(super) nodes: Vec<TapeNode>,
}

impl Tape {
    /// Returns the outermost value; `text` must be what the tape was made from.
    pub fn root<'a>(&'a self, text: &'a [u8]) -> Option<Value<'a>> {
        Value::new(text, &self.nodes, 0)
    }

    /// Returns how many nodes begin before `offset`.
    pub(crate) fn nodes_before(&self, offset: usize) -> u32 {
        narrow(self.nodes.partition_point(|node| widen(node.start) < offset))
    }

    /// Returns the node at `index` as a value.
    pub fn value<'a>(&'a self, text: &'a [u8], index: u32) -> Option<Value<'a>> {
        Value::new(text, &self.nodes, index)
    }
}

/// Scans a text that holds exactly one JSON value.
///
/// # Errors
/// Says what was expected where.
pub fn scan(text: &[u8]) -> Result<Tape, JsonError> {
    let (tape, end) = scan_first(text)?;
    let end = skip_space(text, end);
    if end < text.len() {
        return Err(JsonError::from_offset(text, end, "nothing after the value"));
    }
    Ok(tape)
}

/// Scans the first JSON value of a text; also gives the offset after it.
///
/// # Errors
/// Says what was expected where.
pub fn scan_first(text: &[u8]) -> Result<(Tape, usize), JsonError> {
    if text.len() > MAX_JSON_BYTES {
        return Err(JsonError::from_offset(text, MAX_JSON_BYTES, "at most 1 GiB of JSON"));
    }
    // A byte order mark is not JSON, but some editors write one and every reader forgives it.
    let start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut scanner = Scanner {
        text,
        at: start,
        tape: Tape { nodes: Vec::with_capacity(text.len() / 192 + 16) },
        open: Vec::new(),
    };
    scanner.scan_value(Expect::Value)?;
    Ok((scanner.tape, scanner.at))
}

/// Scans a text that equals an earlier one up to the end of an element of an array directly inside the
/// outermost value. Takes the earlier tape, the indices of outermost value and array, the node after the
/// last equal element and that element's end; gives the tape of the whole new text.
pub(crate) fn scan_after(
    text: &[u8],
    earlier: &Tape,
    open: &[u32],
    kept_nodes: u32,
    from: usize,
) -> Result<Tape, JsonError> {
    if text.len() > MAX_JSON_BYTES {
        return Err(JsonError::from_offset(text, MAX_JSON_BYTES, "at most 1 GiB of JSON"));
    }
    let kept = earlier.nodes.get(..widen(kept_nodes)).unwrap_or(&earlier.nodes);
    let mut nodes = Vec::with_capacity(kept.len() + 256);
    nodes.extend_from_slice(kept);
    let mut scanner = Scanner { text, at: from, tape: Tape { nodes }, open: open.to_vec() };
    scanner.scan_value(Expect::CommaOrEnd)?;
    let end = skip_space(text, scanner.at);
    if end < text.len() {
        return Err(JsonError::from_offset(text, end, "nothing after the value"));
    }
    Ok(scanner.tape)
}

/// What the grammar allows next.
#[derive(Clone, Copy)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    tape: Tape,
    /// Indices of the containers that are still open, outermost first.
    open: Vec<u32>,
}

impl Scanner<'_> {
    fn scan_value(&mut self, mut expect: Expect) -> Result<(), JsonError> {
        loop {
            self.at = skip_space(self.text, self.at);
            let byte = self.text.get(self.at).copied();
            expect = match (expect, byte) {
                (Expect::Value | Expect::ValueOrEnd, Some(b'{')) => self.open_container(JsonKind::Object),
                (Expect::Value | Expect::ValueOrEnd, Some(b'[')) => self.open_container(JsonKind::Array),
                (Expect::ValueOrEnd | Expect::CommaOrEnd, Some(b']')) => {
                    self.close_container(JsonKind::Array)?
                }
                (Expect::KeyOrEnd | Expect::CommaOrEnd, Some(b'}')) => {
                    self.close_container(JsonKind::Object)?
                }
                (Expect::Value | Expect::ValueOrEnd, Some(byte)) => self.scan_scalar(byte)?,
                (Expect::Key | Expect::KeyOrEnd, Some(b'"')) => self.scan_key()?,
                (Expect::CommaOrEnd, Some(b',')) => self.scan_comma(),
                (Expect::Value, None) => return Err(self.expected_error("a value")),
                (Expect::ValueOrEnd, None) => return Err(self.expected_error("a value or `]`")),
                (Expect::Key, _) => return Err(self.expected_error("a key in quotes")),
                (Expect::KeyOrEnd, _) => return Err(self.expected_error("a key in quotes or `}`")),
                (Expect::CommaOrEnd, _) => return Err(self.expected_error(self.comma_or_end())),
            };
            if self.open.is_empty() {
                return Ok(());
            }
        }
    }

    fn expected_error(&self, expected: &'static str) -> JsonError {
        JsonError::from_offset(self.text, self.at, expected)
    }

    fn comma_or_end(&self) -> &'static str {
        match self.innermost() {
            Some(JsonKind::Object) => "`,` or `}`",
            _ => "`,` or `]`",
        }
    }

    fn innermost(&self) -> Option<JsonKind> {
        let index = self.open.last()?;
        self.tape.nodes.get(widen(*index)).map(|node| node.kind)
    }

    fn push_node(&mut self, kind: JsonKind, start: usize, end: usize) {
        let next = narrow(self.tape.nodes.len() + 1);
        self.tape.nodes.push(TapeNode { start: narrow(start), end: narrow(end), next, kind });
    }

    fn open_container(&mut self, kind: JsonKind) -> Expect {
        self.open.push(narrow(self.tape.nodes.len()));
        self.push_node(kind, self.at, self.at);
        self.at += 1;
        if kind == JsonKind::Object { Expect::KeyOrEnd } else { Expect::ValueOrEnd }
    }

    fn close_container(&mut self, kind: JsonKind) -> Result<Expect, JsonError> {
        if self.innermost() != Some(kind) {
            return Err(self.expected_error(self.comma_or_end()));
        }
        self.at += 1;
        let next = narrow(self.tape.nodes.len());
        let closed = self.open.pop().and_then(|index| self.tape.nodes.get_mut(widen(index)));
        if let Some(node) = closed {
            node.end = narrow(self.at);
            node.next = next;
        }
        Ok(Expect::CommaOrEnd)
    }

    fn scan_comma(&mut self) -> Expect {
        self.at += 1;
        if self.innermost() == Some(JsonKind::Object) { Expect::Key } else { Expect::Value }
    }

    fn scan_key(&mut self) -> Result<Expect, JsonError> {
        self.scan_string()?;
        self.at = skip_space(self.text, self.at);
        if self.text.get(self.at) != Some(&b':') {
            return Err(self.expected_error("`:` after the key"));
        }
        self.at += 1;
        Ok(Expect::Value)
    }

    fn scan_scalar(&mut self, first: u8) -> Result<Expect, JsonError> {
        match first {
            b'"' => self.scan_string()?,
            b'-' | b'0'..=b'9' => self.scan_number()?,
            b't' => self.scan_literal(b"true", JsonKind::True)?,
            b'f' => self.scan_literal(b"false", JsonKind::False)?,
            b'n' => self.scan_literal(b"null", JsonKind::Null)?,
            _ => return Err(self.expected_error("a value")),
        }
        Ok(Expect::CommaOrEnd)
    }

    fn scan_string(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let Some(end) = string_end(self.text, start + 1) else {
            self.at = self.text.len();
            return Err(self.expected_error("a closing quote"));
        };
        self.push_node(JsonKind::String, start, end);
        self.at = end;
        Ok(())
    }

    fn scan_literal(&mut self, word: &'static [u8], kind: JsonKind) -> Result<(), JsonError> {
        let end = self.at + word.len();
        if self.text.get(self.at..end) != Some(word) {
            return Err(self.expected_error("true, false or null"));
        }
        self.push_node(kind, self.at, end);
        self.at = end;
        Ok(())
    }

    fn scan_number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.skip_if(|byte| byte == b'-');
        if !self.skip_if(|byte| byte == b'0') {
            self.scan_digits()?;
        }
        if self.skip_if(|byte| byte == b'.') {
            self.scan_digits()?;
        }
        if self.skip_if(|byte| byte == b'e' || byte == b'E') {
            self.skip_if(|byte| byte == b'+' || byte == b'-');
            self.scan_digits()?;
        }
        self.push_node(JsonKind::Number, start, self.at);
        Ok(())
    }

    fn scan_digits(&mut self) -> Result<(), JsonError> {
        let before = self.at;
        while self.skip_if(|byte| byte.is_ascii_digit()) {}
        if self.at == before { Err(self.expected_error("a digit")) } else { Ok(()) }
    }

    fn skip_if(&mut self, fits: impl Fn(u8) -> bool) -> bool {
        let skip = self.text.get(self.at).is_some_and(|byte| fits(*byte));
        self.at += usize::from(skip);
        skip
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// Returns the offset after the closing quote of a string whose contents start at `from`.
///
/// Only quotes are searched for: agents' texts are dense in `\n` but rarely contain `\"`, so looking at the
/// backslashes before a quote is much cheaper than stopping at each of them.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let quote = at + memchr(b'"', text.get(at..)?)?;
        let run = text.get(at..quote)?.iter().rev().take_while(|byte| **byte == b'\\').count();
        if run % 2 == 0 {
            return Some(quote + 1);
        }
        at = quote + 1;
    }
}

impl TapeNode {
    pub(super) fn span(self) -> Span {
        Span::new(self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

    use super::*;
    use crate::json::value::JsonKind;

    /// Scans, and compares with `serde_json`: what it accepts, we accept, with the same structure.
    fn check(text: &str) {
        let ours = scan(text.as_bytes());
        let Ok(theirs) = serde_json::from_str::<serde_json::Value>(text) else { return };
        let tape = ours.expect(text);
        let root = tape.root(text.as_bytes()).expect("a root");
        same(root, &theirs, text);
    }

    fn same(ours: Value<'_>, theirs: &serde_json::Value, text: &str) {
        let reparsed: serde_json::Value = serde_json::from_slice(ours.raw()).expect("a value on its own");
        assert_eq!(&reparsed, theirs, "{text}");
        match theirs {
            serde_json::Value::Array(items) => {
                assert_eq!(ours.items().count(), items.len(), "{text}");
                ours.items().zip(items).for_each(|(ours, theirs)| same(ours, theirs, text));
            }
            serde_json::Value::Object(members) => {
                members.iter().for_each(|(key, theirs)| same(ours.get(key).expect(key), theirs, text));
            }
            serde_json::Value::String(string) => assert_eq!(ours.string().as_deref(), Some(string.as_str())),
            _ => {}
        }
    }

    fn error(text: &str) -> String {
        scan(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn structure_is_the_same_as_serde_json_sees() {
        for text in [
            "{}",
            "[]",
            "null",
            " [ 1 , -0.5e+7 , true ] ",
            r#"{"a":{"b":[{},[],"\\"]},"a":2}"#,
            r#"["\"","\\\"","\\\\","\\\\\"x"]"#,
            "{\"k\" :\r\n\t\"v\"}",
            r#""\ud83d\ude00 é""#,
            "[1e999,123456789012345678901234567890]",
            "[[[[[[[[]]]]]]]]",
        ] {
            check(text);
        }
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        assert_eq!(error("{\"a\": 1,\n \"b\" 2}"), "line 2, column 6: expected `:` after the key, found `2`");
        assert_eq!(error("[1 2]"), "line 1, column 4: expected `,` or `]`, found `2`");
        assert_eq!(error("{\"a\":1]"), "line 1, column 7: expected `,` or `}`, found `]`");
        assert_eq!(error("\"abc"), "line 1, column 5: it breaks off where a closing quote was expected");
        assert_eq!(error(""), "line 1, column 1: it breaks off where a value was expected");
        assert_eq!(error("{} x"), "line 1, column 4: expected nothing after the value, found `x`");
        assert_eq!(error("[01]"), "line 1, column 3: expected `,` or `]`, found `1`");
        assert_eq!(error("[nul]"), "line 1, column 2: expected true, false or null, found `n`");
    }

    #[test]
    fn depth_costs_no_stack() {
        let text = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(scan(text.as_bytes()).expect("deep").nodes.len(), 200_000);
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null"),
            Just("true"),
            Just("false"),
            Just("0"),
            Just("-1.5e-3"),
            Just("\"\\\\\""),
            Just("\"\\\"\"")
        ]
        .prop_map(str::to_owned)
        .boxed();
        let text = any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string"));
        prop_oneof![leaf, text].prop_recursive(5, 64, 6, |inner| {
            let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
            prop_oneof![
                (prop::collection::vec(inner.clone(), 0..6), space.clone()).prop_map(
                    |(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space},{space}")))
                ),
                (prop::collection::vec((any::<String>(), inner), 0..6), space).prop_map(
                    |(members, space)| {
                        let members: Vec<String> = members
                            .iter()
                            .map(|(key, value)| {
                                format!(
                                    "{}{space}:{space}{value}",
                                    serde_json::to_string(key).expect("a key")
                                )
                            })
                            .collect();
                        format!("{{{space}{}{space}}}", members.join(","))
                    }
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_read_as_serde_json_reads_it(text in json()) {
            check(&text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(prop_oneof![
            Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b','), Just(b':'), Just(b'1'), any::<u8>()
        ], 0..64)) {
            let accepted = scan(&bytes).is_ok();
            let valid = serde_json::from_slice::<&serde_json::value::RawValue>(&bytes).is_ok();
            assert!(accepted || !valid, "refused what serde_json accepts: {bytes:?}");
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        let text = br#"[{},[],"",0,true,false,null]"#;
        let tape = scan(text).expect("valid");
        let kinds: Vec<JsonKind> = tape.root(text).expect("a root").items().map(Value::kind).collect();
        assert_eq!(
            kinds,
            [
                JsonKind::Object,
                JsonKind::Array,
                JsonKind::String,
                JsonKind::Number,
                JsonKind::True,
                JsonKind::False,
                JsonKind::Null
            ]
        );
    }
}
