//! Changes JSON, so that most inputs get past the scanner: values are replaced, removed, doubled, moved and wrapped.
//! One change in four is libFuzzer's own, to bytes.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// A sequence of numbers that depends on its first alone.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// Changes a JSON text in place; returns its new length.
pub fn mutate_json(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut numbers = Numbers(u64::from(seed));
    let parsed = serde_json::from_slice::<Value>(&data[..size]);
    let (Ok(mut value), 1..) = (parsed, numbers.next(4)) else { return fuzzer_mutate(data, size, most) };
    for _ in 0..=numbers.next(3) {
        change(&mut value, &mut numbers);
    }
    put(data, &value.to_string().into_bytes(), most)
}

/// Changes one line of JSON lines, or the order of lines.
pub fn mutate_lines(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut numbers = Numbers(u64::from(seed));
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() < 2 || serde_json::from_str::<Value>(&lines[0]).is_err() {
        return mutate_json(data, size, most, seed);
    }
    let at = numbers.next(lines.len());
    let other = numbers.next(lines.len());
    match numbers.next(8) {
        0 => return fuzzer_mutate(data, size, most),
        1 => drop(lines.remove(at)),
        2 => lines.insert(other, lines[at].clone()),
        3 => lines.swap(at, other),
        _ => {
            let Ok(mut value) = serde_json::from_str::<Value>(&lines[at]) else {
                return fuzzer_mutate(data, size, most);
            };
            change(&mut value, &mut numbers);
            lines[at] = value.to_string();
        }
    }
    put(data, lines.join("\n").as_bytes(), most)
}

fn put(data: &mut [u8], bytes: &[u8], most: usize) -> usize {
    let length = bytes.len().min(most).min(data.len());
    data[..length].copy_from_slice(&bytes[..length]);
    length
}

/// Changes one value, chosen by going down some steps.
fn change(value: &mut Value, numbers: &mut Numbers) {
    let inside = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    if inside > 0 && numbers.next(6) > 0 {
        let at = numbers.next(inside);
        let member = match value {
            Value::Array(items) => items.get_mut(at),
            Value::Object(members) => members.values_mut().nth(at),
            _ => None,
        };
        return member.into_iter().for_each(|member| change(member, numbers));
    }
    match value {
        Value::Array(items) if !items.is_empty() => change_items(items, numbers),
        Value::Object(members) if !members.is_empty() => change_members(members, numbers),
        Value::String(text) if numbers.next(2) == 0 => change_text(text, numbers),
        other => *other = odd_value(numbers, other),
    }
}

fn change_items(items: &mut Vec<Value>, numbers: &mut Numbers) {
    let (at, other) = (numbers.next(items.len()), numbers.next(items.len()));
    match numbers.next(5) {
        0 => drop(items.remove(at)),
        1 => items.insert(other, items[at].clone()),
        2 => items.swap(at, other),
        3 => items.truncate(at),
        _ => items[at] = odd_value(numbers, &items[at]),
    }
}

fn change_members(members: &mut Map<String, Value>, numbers: &mut Numbers) {
    let keys: Vec<String> = members.keys().cloned().collect();
    let (key, other) = (&keys[numbers.next(keys.len())], &keys[numbers.next(keys.len())]);
    match numbers.next(4) {
        0 => drop(members.remove(key)),
        1 => drop(members.insert(other.clone(), members[key].clone())),
        2 => drop(members.insert(KEYS[numbers.next(KEYS.len())].to_owned(), members[key].clone())),
        _ => drop(members.insert(key.clone(), odd_value(numbers, &members[key]))),
    }
}

fn change_text(text: &mut String, numbers: &mut Numbers) {
    let at = text.floor_char_boundary(numbers.next(text.len() + 1));
    match numbers.next(5) {
        0 => text.truncate(at),
        1 => text.insert_str(at, TEXTS[numbers.next(TEXTS.len())]),
        2 => *text = text.repeat(2 + numbers.next(6)),
        3 => *text = text.split_off(at),
        _ => *text = TEXTS[numbers.next(TEXTS.len())].to_owned(),
    }
}

/// Returns a value that does not belong there.
fn odd_value(numbers: &mut Numbers, was: &Value) -> Value {
    match numbers.next(12) {
        0 => Value::Null,
        1 => json!([was]),
        2 => json!({"type": "text", "text": was}),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1e300),
        6 => json!([]),
        7 => json!({}),
        8 => json!(true),
        9 => Value::String(was.to_string()),
        _ => Value::String(TEXTS[numbers.next(TEXTS.len())].to_owned()),
    }
}

/// Keys that formats and recordings look for.
const KEYS: [&str; 24] = [
    "content", "role", "type", "text", "id", "call_id", "tool_use_id", "tool_call_id", "tool_calls",
    "function", "name", "arguments", "input", "output", "parts", "functionCall", "functionResponse",
    "messages", "system", "tools", "model", "cache_control", "timestamp", "usage",
];

/// Texts that mean something to some reader.
const TEXTS: [&str; 24] = [
    "",
    "user",
    "assistant",
    "tool",
    "system",
    "developer",
    "model",
    "tool_use",
    "tool_result",
    "function_call",
    "function_call_output",
    "thinking",
    "reasoning",
    "image",
    "\u{1b}[31m\u{9b}",
    "é\u{202e}𝄞\u{fffd}",
    "[… 12 lines …]",
    "[Shown at step 3 (0123456789ab)]",
    "cd /tmp && cat a.txt | sed -n '1,20p' <<'E'\nx\nE",
    "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch",
    "@@ -1,2 +1,0 @@\n-a\n+b\n",
    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -9999999999999999999,1 +1 @@\n",
    "    1\tline\n    2\tline\n",
    "C:\\a\\..\\b:10:2: error: 3 passed, 18446744073709551616 failed",
];
