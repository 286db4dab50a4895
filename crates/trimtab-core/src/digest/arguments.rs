//! Shortens a call's arguments. Takes a JSON text and which of its leaves may go; gives JSON of the same shape in which long
//! strings are notes. Never touches a key, a number, a short string or a name, never cuts JSON in the middle, never grows.

use crate::json::{Value, encode, scan};

/// Which arguments of calls may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum InputShortening {
    /// None.
    #[default]
    Off,
    /// Those of calls that change no file: scripts, searches, tasks for other agents.
    Commands,
    /// What an edit replaced, and what was written to a file that a later step shows.
    Safe,
    /// Every long string.
    All,
}

/// Which leaves of one call may go; each holds those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeafSet {
    /// What an edit replaced: it stands in the file no more.
    Replaced,
    /// And what was written.
    Contents,
    /// And everything else that is long, but for what names the call's subject or its purpose.
    All,
}

/// How many bytes the long leaves of a call have, by what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LongLeaves {
    replaced: u32,
    contents: u32,
    others: u32,
}

impl LongLeaves {
    /// Returns how many bytes may go.
    pub(crate) fn bytes_of(self, leaves: LeafSet) -> u32 {
        match leaves {
            LeafSet::Replaced => self.replaced,
            LeafSet::Contents => self.replaced.saturating_add(self.contents),
            LeafSet::All => self.replaced.saturating_add(self.contents).saturating_add(self.others),
        }
    }
}

/// Strings of at most this many characters stay: a note has a hundred, and a third of a screen is worth reading.
pub(crate) const LONGEST: usize = 300;

/// Arguments that hold what stood in a file before.
const REPLACED: &[&str] =
    &["old_string", "old_str", "oldString", "oldText", "old_text", "old_content", "search", "target_content"];

/// Arguments that hold what was written to a file.
const CONTENTS: &[&str] = &[
    "content", "contents", "file_text", "fileText", "new_content", "CodeContent", "code", "new_string",
    "new_str", "newString", "newText", "new_text", "replacement_text", "ReplacementContent", "replace",
    "code_edit", "patch", "patchText", "diff", "insert_text",
];

/// Arguments that say what a call is about or for: without them nobody knows what was done.
const NAMING: &[&str] = &[
    "path", "file_path", "filePath", "filename", "file", "url", "uri", "pattern", "query", "regex", "glob",
    "name", "id", "cwd", "workdir", "title", "intent", "instruction", "explanation", "description",
];

/// What a leaf is, by the key that holds it.
fn leaf_class(key: &str) -> Option<LeafSet> {
    match key {
        key if REPLACED.contains(&key) => Some(LeafSet::Replaced),
        key if CONTENTS.contains(&key) => Some(LeafSet::Contents),
        key if NAMING.contains(&key) => None,
        // A tool without names for its arguments takes one text, as patches are given.
        "" => Some(LeafSet::Contents),
        _ => Some(LeafSet::All),
    }
}

/// Which leaves go, and what stands in their place.
pub(crate) struct LeafRule<'a> {
    /// Which leaves may go at all.
    pub(crate) leaves: LeafSet,
    /// Strings of at most this many characters stay.
    pub(crate) longest: usize,
    /// Writes what stands in the place of a leaf.
    pub(crate) note: &'a dyn Fn(&str, LeafSet) -> String,
}

/// Shortens the arguments of a call; nothing where the text is not JSON or no leaf gets shorter.
pub(crate) fn shorten_arguments(json: &[u8], rule: &LeafRule<'_>) -> Option<Vec<u8>> {
    let mut notes: Vec<(std::ops::Range<usize>, Vec<u8>)> = Vec::new();
    for_each_long(json, rule.longest, |leaf, text, class| {
        if class > rule.leaves {
            return;
        }
        let mut note = Vec::new();
        encode(&(rule.note)(text, class), &mut note);
        if note.len() < leaf.span().len() {
            notes.push((leaf.span().range(), note));
        }
    })?;
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

/// Shortens the one text that a call carries where it carries no JSON; nothing where that stays.
pub(crate) fn shorten_plain(text: &str, rule: &LeafRule<'_>) -> Option<String> {
    if LeafSet::Contents > rule.leaves || text.chars().count() <= rule.longest {
        return None;
    }
    let note = (rule.note)(text, LeafSet::Contents);
    (note.len() < text.len()).then_some(note)
}

/// Measures the long leaves of a call's arguments.
pub(crate) fn long_leaves(json: &[u8]) -> LongLeaves {
    let mut found = LongLeaves::default();
    for_each_long(json, LONGEST, |leaf, _, class| {
        let bytes = crate::json::narrow(leaf.span().len());
        let sum = match class {
            LeafSet::Replaced => &mut found.replaced,
            LeafSet::Contents => &mut found.contents,
            LeafSet::All => &mut found.others,
        };
        *sum = sum.saturating_add(bytes);
    });
    found
}

/// Measures the one text that a call carries where it carries no JSON.
pub(crate) fn long_plain(text: &str) -> LongLeaves {
    let long = text.chars().count() > LONGEST;
    let contents = if long { crate::json::narrow(text.len()) } else { 0 };
    LongLeaves { contents, ..LongLeaves::default() }
}

/// Calls `each` with every long string that may go; nothing where the text is no JSON.
fn for_each_long(json: &[u8], longest: usize, mut each: impl FnMut(Value<'_>, &str, LeafSet)) -> Option<()> {
    let tape = scan(json).ok()?;
    // Depth costs memory, not stack: arguments come from a model.
    let mut open: Vec<(Value<'_>, String)> = vec![(tape.root(json)?, String::new())];
    while let Some((value, key)) = open.pop() {
        // What is short holds nothing long. A string has at least as many bytes as characters: most need no decoding.
        if value.span().len() <= longest {
            continue;
        }
        for (name, member) in value.members() {
            open.push((member, name.string().unwrap_or_default().into_owned()));
        }
        open.extend(value.items().map(|item| (item, key.clone())));
        if let (true, Some(class)) = (value.is_string(), leaf_class(&key))
            && let Some(text) = value.string().filter(|text| text.chars().count() > longest)
        {
            each(value, &text, class);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{
        render::{self, USUAL_RECALL},
        verdict::Reason,
    };

    fn shortened(json: &str, leaves: LeafSet, longest: usize) -> Option<String> {
        let note = |leaf: &str, class: LeafSet| {
            render::argument_note(leaf, class, &Reason::TooOld, "0123456789ab", &USUAL_RECALL)
        };
        let rule = LeafRule { leaves, longest, note: &note };
        shorten_arguments(json.as_bytes(), &rule).map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
    }

    fn write_call() -> String {
        let text = "let value = 1;\n".repeat(100);
        json!({"file_path": "src/a.rs", "content": text, "mode": 1, "command": "x".repeat(900)}).to_string()
    }

    #[test]
    fn contents_become_a_note_and_names_stay() {
        let short = shortened(&write_call(), LeafSet::Contents, 200).expect("shorter");
        let value: Json = serde_json::from_str(&short).expect("JSON");
        assert_eq!(
            value["content"],
            "[1,500 characters, 100 lines of this argument are hidden: too old; trimtab recall 0123456789ab]"
        );
        assert_eq!(value["file_path"], "src/a.rs");
        assert_eq!(value["command"].as_str().map(str::len), Some(900), "no content of a file");
    }

    #[test]
    fn all_means_every_long_string_wherever_it_stands() {
        let json =
            json!({"edits": [{"old": "o".repeat(500), "line": 3}], "why": "w".repeat(500)}).to_string();
        assert_eq!(shortened(&json, LeafSet::Contents, 200), None);
        let value: Json =
            serde_json::from_str(&shortened(&json, LeafSet::All, 200).expect("shorter")).expect("JSON");
        assert_eq!(value["edits"][0]["line"], 3);
        assert!(value["edits"][0]["old"].as_str().is_some_and(|note| note.starts_with("[500 characters")));
        assert!(value["why"].as_str().is_some_and(|note| note.ends_with("trimtab recall 0123456789ab]")));
    }

    #[test]
    fn what_is_not_meant_short_or_no_json_stays() {
        assert_eq!(shortened(&write_call(), LeafSet::Replaced, 200), None);
        assert_eq!(shortened(&write_call(), LeafSet::All, 2000), None);
        assert_eq!(shortened("{\"content\": \"aaaa", LeafSet::All, 1), None);
        assert_eq!(shortened("{\"content\": \"aaaa\"}", LeafSet::All, 1), None, "the note would be longer");
        let bare = format!("\"{}\"", "a".repeat(300));
        assert!(
            shortened(&bare, LeafSet::All, 200).is_some_and(|json| json.starts_with("\"[300 characters"))
        );
    }

    #[test]
    fn what_is_shortened_is_left_alone_afterwards() {
        let once = shortened(&write_call(), LeafSet::All, 200).expect("shorter");
        assert_eq!(shortened(&once, LeafSet::All, 200), None);
    }

    #[test]
    fn what_an_edit_replaced_goes_before_what_it_wrote() {
        let edit =
            json!({"old_string": "o".repeat(900), "new_string": "n".repeat(900), "path": "p".repeat(900)});
        let short = |leaves| -> Vec<bool> {
            let short = shortened(&edit.to_string(), leaves, LONGEST).unwrap_or_else(|| edit.to_string());
            let value: Json = serde_json::from_str(&short).expect("JSON");
            ["old_string", "new_string", "path"].map(|key| value[key] != edit[key]).to_vec()
        };
        assert_eq!(short(LeafSet::Replaced), [true, false, false]);
        assert_eq!(short(LeafSet::Contents), [true, true, false]);
        assert_eq!(short(LeafSet::All), [true, true, false], "names stay however long they are");
    }

    #[test]
    fn what_is_measured_is_what_may_go() {
        let json = write_call();
        let found = long_leaves(json.as_bytes());
        assert_eq!(
            [LeafSet::Replaced, LeafSet::Contents, LeafSet::All].map(|leaves| found.bytes_of(leaves)),
            [0, 1602, 2504]
        );
        assert_eq!(long_plain(&"*** Begin Patch\n".repeat(30)).bytes_of(LeafSet::Contents), 480);
        assert_eq!(long_plain("*** Begin Patch\n").bytes_of(LeafSet::All), 0);
    }

    #[test]
    fn a_command_keeps_its_first_line_and_a_patch_its_files() {
        let script = format!("python - <<EOF\n{}EOF", "print('x')\n".repeat(60));
        let short =
            shortened(&json!({"command": script}).to_string(), LeafSet::All, LONGEST).expect("shorter");
        let value: Json = serde_json::from_str(&short).expect("JSON");
        assert_eq!(
            value["command"],
            "python - <<EOF\n[678 characters, 62 lines of this argument are hidden: too old; trimtab recall 0123456789ab]"
        );
        let note = |leaf: &str, class: LeafSet| {
            render::argument_note(leaf, class, &Reason::TooOld, "0123456789ab", &USUAL_RECALL)
        };
        let rule = |leaves| LeafRule { leaves, longest: LONGEST, note: &note };
        let lines = "+let value = 1;\n".repeat(30);
        let patch = format!(
            "*** Begin Patch\n*** Add File: a.rs\n{lines}*** Update File: b.rs\n@@\n{lines}*** End Patch"
        );
        assert_eq!(
            shorten_plain(&patch, &rule(LeafSet::Contents)).as_deref(),
            Some(
                "*** Begin Patch\n*** Add File: a.rs\n*** Update File: b.rs\n\
                 [1,033 characters, 65 lines of this argument are hidden: too old; trimtab recall 0123456789ab]"
            )
        );
        let page = format!("# Patches\n{lines}");
        let page = shorten_plain(&page, &rule(LeafSet::Contents));
        assert!(page.is_some_and(|note| note.starts_with("[490 characters")), "of a content nothing stays");
        assert_eq!(shorten_plain(&patch, &rule(LeafSet::Replaced)), None);
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
            let leaves = if all { LeafSet::All } else { LeafSet::Contents };
            if let Some(short) = shortened(&json, leaves, longest) {
                assert!(short.len() < json.len(), "{json} -> {short}");
                let after: Json = serde_json::from_str(&short).expect(&short);
                assert!(same_shape(&value, &after, longest), "{json} -> {short}");
            }
        }
    }
}
