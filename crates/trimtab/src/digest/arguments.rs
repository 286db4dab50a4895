//! Shortens a call's arguments. Takes a JSON text and which of its leaves may go; gives JSON of the same shape in which long
//! strings are notes. Never touches a key, a number or a short string, never cuts JSON in the middle, never grows.

#![cfg_attr(not(test), expect(dead_code, reason = "the planner calls it once it shortens calls"))]

use crate::json::{Value, encode, scan};

/// Which arguments of calls may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inputs {
    /// None.
    #[default]
    Off,
    /// Contents that were written to a file, which a read of the file shows again.
    Safe,
    /// Every long string.
    All,
}

impl Inputs {
    /// Tells whether the leaf under a key may go.
    fn allows(self, key: &str) -> bool {
        match self {
            Inputs::Off => false,
            Inputs::Safe => CONTENTS.contains(&key),
            Inputs::All => true,
        }
    }
}

/// Arguments that hold what was written to a file, or what stood there before.
const CONTENTS: &[&str] = &[
    "content",
    "contents",
    "file_text",
    "fileText",
    "new_content",
    "CodeContent",
    "code",
    "old_string",
    "old_str",
    "oldString",
    "oldText",
    "old_text",
    "new_string",
    "new_str",
    "newString",
    "newText",
    "new_text",
    "replacement_text",
    "code_edit",
    "patch",
    "patchText",
    "diff",
];

/// Which leaves go, and what stands in their place.
pub(crate) struct LeafRule<'a> {
    /// Which arguments may go at all.
    pub(crate) inputs: Inputs,
    /// Strings of at most this many characters stay.
    pub(crate) longest: usize,
    /// Writes the note for a leaf.
    pub(crate) note: &'a dyn Fn(&str) -> String,
}

/// Shortens the arguments of a call; nothing where the text is not JSON or no leaf gets shorter.
pub(crate) fn shorten_arguments(json: &[u8], rule: &LeafRule<'_>) -> Option<Vec<u8>> {
    let tape = scan(json).ok()?;
    let mut notes: Vec<(std::ops::Range<usize>, Vec<u8>)> = Vec::new();
    // Depth costs memory, not stack: arguments come from a model.
    let mut open: Vec<(Value<'_>, String)> = vec![(tape.root(json)?, String::new())];
    while let Some((value, key)) = open.pop() {
        for (name, member) in value.members() {
            open.push((member, name.string().unwrap_or_default().into_owned()));
        }
        open.extend(value.items().map(|item| (item, key.clone())));
        notes.extend(note_for(value, &key, rule).map(|note| (value.span().range(), note)));
    }
    if notes.is_empty() {
        return None;
    }
    notes.sort_by_key(|(span, _)| span.start);
    let mut shorter = Vec::with_capacity(json.len());
    let mut at = 0;
    for (span, note) in notes {
        shorter.extend_from_slice(json.get(at..span.start)?);
        shorter.extend_from_slice(&note);
        at = span.end;
    }
    shorter.extend_from_slice(json.get(at..)?);
    Some(shorter)
}

/// Returns the JSON of the note that replaces a leaf; nothing where the leaf stays.
fn note_for(leaf: Value<'_>, key: &str, rule: &LeafRule<'_>) -> Option<Vec<u8>> {
    // A string has at least as many bytes as characters: most leaves need no decoding.
    if !leaf.is_string() || leaf.span().len() <= rule.longest || !rule.inputs.allows(key) {
        return None;
    }
    let text = leaf.string().filter(|text| text.chars().count() > rule.longest)?;
    let mut note = Vec::new();
    encode(&(rule.note)(&text), &mut note);
    (note.len() < leaf.span().len()).then_some(note)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::render;

    fn shortened(json: &str, inputs: Inputs, longest: usize) -> Option<String> {
        let note = |leaf: &str| render::argument(leaf, "0123456789ab");
        let rule = LeafRule { inputs, longest, note: &note };
        shorten_arguments(json.as_bytes(), &rule).map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
    }

    fn write_call() -> String {
        let text = "let value = 1;\n".repeat(100);
        json!({"file_path": "src/a.rs", "content": text, "mode": 1, "command": "x".repeat(900)}).to_string()
    }

    #[test]
    fn contents_become_a_note_and_names_stay() {
        let short = shortened(&write_call(), Inputs::Safe, 200).expect("shorter");
        let value: Json = serde_json::from_str(&short).expect("JSON");
        assert_eq!(
            value["content"],
            "[1,500 characters, 100 lines of this argument are hidden; trimtab recall 0123456789ab]"
        );
        assert_eq!(value["file_path"], "src/a.rs");
        assert_eq!(value["command"].as_str().map(str::len), Some(900), "no content of a file");
    }

    #[test]
    fn all_means_every_long_string_wherever_it_stands() {
        let json =
            json!({"edits": [{"old": "o".repeat(500), "line": 3}], "why": "w".repeat(500)}).to_string();
        assert_eq!(shortened(&json, Inputs::Safe, 200), None);
        let value: Json =
            serde_json::from_str(&shortened(&json, Inputs::All, 200).expect("shorter")).expect("JSON");
        assert_eq!(value["edits"][0]["line"], 3);
        assert!(value["edits"][0]["old"].as_str().is_some_and(|note| note.starts_with("[500 characters")));
        assert!(value["why"].as_str().is_some_and(|note| note.ends_with("trimtab recall 0123456789ab]")));
    }

    #[test]
    fn what_is_off_short_or_no_json_stays() {
        assert_eq!(shortened(&write_call(), Inputs::Off, 200), None);
        assert_eq!(shortened(&write_call(), Inputs::All, 2000), None);
        assert_eq!(shortened("{\"content\": \"aaaa", Inputs::All, 1), None);
        assert_eq!(shortened("{\"content\": \"aaaa\"}", Inputs::All, 1), None, "the note would be longer");
        let bare = format!("\"{}\"", "a".repeat(300));
        assert!(shortened(&bare, Inputs::All, 200).is_some_and(|json| json.starts_with("\"[300 characters")));
    }

    #[test]
    fn what_is_shortened_is_left_alone_afterwards() {
        let once = shortened(&write_call(), Inputs::All, 200).expect("shorter");
        assert_eq!(shortened(&once, Inputs::All, 200), None);
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let text = || prop_oneof![any::<String>(), "[a-z\\n\"]{0,400}".boxed()];
        let key = prop_oneof![Just("content".to_owned()), "[a-z]{0,6}".boxed(), any::<String>()];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            text().prop_map(Json::from)
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
                prop::collection::vec((key.clone(), inner), 0..5)
                    .prop_map(|members| Json::from(members.into_iter().collect::<serde_json::Map<_, _>>())),
            ]
        })
    }

    /// Tells whether two values have the same keys and types, and differ in long strings only.
    fn same_shape(one: &Json, other: &Json, longest: usize) -> bool {
        match (one, other) {
            (Json::Object(one), Json::Object(other)) => {
                one.len() == other.len()
                    && one.iter().all(|(key, value)| {
                        other.get(key).is_some_and(|other| same_shape(value, other, longest))
                    })
            }
            (Json::Array(one), Json::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| same_shape(one, other, longest))
            }
            (Json::String(one), Json::String(other)) => one == other || one.chars().count() > longest,
            _ => one == other,
        }
    }

    proptest! {
        #[test]
        fn the_shape_stays_and_nothing_grows(value in any_json(), longest in 0usize..300, all in any::<bool>()) {
            let json = value.to_string();
            let inputs = if all { Inputs::All } else { Inputs::Safe };
            if let Some(short) = shortened(&json, inputs, longest) {
                assert!(short.len() < json.len(), "{json} -> {short}");
                let after: Json = serde_json::from_str(&short).expect(&short);
                assert!(same_shape(&value, &after, longest), "{json} -> {short}");
            }
        }
    }
}
