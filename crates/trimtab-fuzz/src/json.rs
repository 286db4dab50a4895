//! The JSON scanner against serde_json: both accept the same texts, as far as the scanner looks; spans are nested and in
//! order; strings are decoded and encoded alike.

use serde::de::IgnoredAny;
use serde_json::Value;
use trimtab_core::{
    fuzzing::{decode_string, encode_string, scan_spans},
    json::Span,
};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Checks what the scanner says about a text.
pub fn check_json(data: &[u8]) {
    let plain = data.strip_prefix(MARK).unwrap_or(data);
    let is_json = serde_json::from_slice::<IgnoredAny>(plain).is_ok();
    let spans = match scan_spans(data) {
        Ok(spans) => spans,
        Err(fault) => {
            assert!(!is_json, "refused: {fault}");
            assert!(fault.offset <= data.len() && fault.line >= 1 && fault.column >= 1, "{fault:?}");
            return;
        }
    };
    check_order(&spans, data);
    let strings: Vec<&Span> = spans.iter().filter(|span| data[span.start()] == b'"').collect();
    for string in &strings {
        check_string(string.bytes_in(data));
    }
    assert!(is_accepted_without_strings(data, &strings), "accepted, though it is not JSON");
}

/// Every value lies inside the value that holds it, after the one before it.
fn check_order(spans: &[Span], data: &[u8]) {
    let mut open = vec![data.len()];
    let mut at = 0;
    for span in spans {
        while open.last().is_some_and(|end| *end <= span.start()) {
            open.pop();
        }
        let end = *open.last().expect("a value that holds it");
        assert!(at <= span.start() && !span.is_empty() && span.end() <= end, "{span:?}");
        let is_container = matches!(data[span.start()], b'{' | b'[');
        at = if is_container { span.start() + 1 } else { span.end() };
        if is_container {
            open.push(span.end());
        }
    }
}

/// A string is decoded as serde_json does it, and comes back whole after encoding.
fn check_string(quoted: &[u8]) {
    assert!(quoted.len() >= 2 && quoted.starts_with(b"\"") && quoted.ends_with(b"\""));
    let decoded = decode_string(&quoted[1..quoted.len() - 1]);
    if let Ok(expected) = serde_json::from_slice::<String>(quoted) {
        assert_eq!(decoded, expected);
    }
    let encoded = encode_string(&decoded);
    assert_eq!(serde_json::from_slice::<Value>(&encoded).expect("a string"), Value::String(decoded));
}

/// The scanner does not look inside strings: without their contents the text must be JSON.
fn is_accepted_without_strings(data: &[u8], strings: &[&Span]) -> bool {
    let mut bare = Vec::with_capacity(data.len());
    let mut from = if data.starts_with(MARK) { MARK.len() } else { 0 };
    for string in strings {
        bare.extend_from_slice(&data[from..string.start()]);
        bare.extend_from_slice(b"\"\"");
        from = string.end();
    }
    bare.extend_from_slice(&data[from..]);
    serde_json::from_slice::<IgnoredAny>(&bare).is_ok()
}
