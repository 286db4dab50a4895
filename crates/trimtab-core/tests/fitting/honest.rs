//! Whether a shortened text is honest about its original. Takes both; gives the first line or value that is neither of
//! the original, in its order, nor a note.

use serde_json::Value;

/// The shortest line that may be cut, in characters.
const LONG: usize = 500;

pub(super) fn check(original: &str, shortened: &str) -> Result<(), String> {
    let lines = lines(original, shortened);
    let (Ok(before), Ok(after)) = (serde_json::from_str(original), serde_json::from_str(shortened)) else {
        return lines;
    };
    lines.or_else(|_| json(&before, &after))
}

fn lines(original: &str, shortened: &str) -> Result<(), String> {
    let mut rest = original.lines();
    // A note about several results may quote lines of theirs, each after a sign that no note begins with.
    let mut quotes = false;
    for line in shortened.lines() {
        quotes = is_diff_note(line) || quotes && line.starts_with("| ");
        if quotes || is_note(line) || rest.clone().next().is_none() && line.is_empty() {
            continue;
        }
        if !rest.any(|known| known == line || is_cut(known, line)) {
            return Err(line.to_owned());
        }
    }
    Ok(())
}

/// A bracketed sentence: where something is missing, or the closing one.
fn is_note(line: &str) -> bool {
    let gap = line.starts_with("[… ") && line.ends_with(" …]");
    gap || (line.starts_with('[') && line.ends_with(']') && line.contains("trimtab recall "))
}

/// What precedes the net diff of a series of edits.
fn is_diff_note(line: &str) -> bool {
    line.starts_with("[… net diff of ") && line.ends_with(" …]")
}

/// A long line without its middle, marked at the cut.
fn is_cut(known: &str, line: &str) -> bool {
    let Some((head, rest)) = line.split_once("[… ") else { return false };
    let Some((_, tail)) = rest.split_once(" …]") else { return false };
    known.chars().count() > LONG && known.starts_with(head) && known.ends_with(tail)
}

/// Tells whether two values have the same keys and types and differ in strings only, each shortened honestly.
pub(super) fn same_shape(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same_shape(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_shape(one, other))
        }
        (Value::String(one), Value::String(other)) => one == other || check(one, other).is_ok(),
        _ => before == after,
    }
}

fn json(before: &Value, after: &Value) -> Result<(), String> {
    match (before, after) {
        (before, after) if before == after => Ok(()),
        (Value::Array(before), Value::Array(after)) => {
            let mut rest = before.iter();
            for element in after {
                let note = element.as_str().is_some_and(is_note);
                if !note && !rest.any(|known| json(known, element).is_ok()) {
                    return Err(element.to_string());
                }
            }
            Ok(())
        }
        (Value::Object(before), Value::Object(after)) => {
            for (key, member) in after {
                match before.get(key) {
                    Some(known) => json(known, member)?,
                    None if member.as_str().is_some_and(is_note) => {}
                    None => return Err(key.clone()),
                }
            }
            Ok(())
        }
        (Value::String(before), Value::String(after)) => check(before, after),
        (_, after) => Err(after.to_string()),
    }
}
