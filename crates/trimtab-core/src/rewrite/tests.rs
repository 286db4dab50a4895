//! What every form promises, over texts made up by the hundred, and how each reads. Content is compared under a normal form that is
//! defined here and shares no code with the forms.

use proptest::{prelude::*, sample::select};
use regex::Regex;

use super::{RewriteForm, rewrite_as};
use crate::{
    count::{Counter, Tokenizer, Vocabulary},
    digest::is_error_line,
};

fn tokens(text: &str) -> u64 {
    Counter::new(Tokenizer::Exact(Vocabulary::O200k)).count_text(text).0
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// What a reader takes from a text, whatever the form: JSON as its value; lines with bare numbers, without terminal codes, each
/// search hit with its path; no empty lines.
fn normal_lines(text: &str) -> Vec<String> {
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        return vec![value.to_string()];
    }
    let codes =
        regex("\u{1b}\\[[0-?]*[ -/]*[@-~]|\u{1b}\\][^\u{7}\u{1b}]*(\u{7}|\u{1b}\\\\)|\u{1b}[()][A-Z0-9]");
    let overwritten = regex("[^\n]*\r+([^\r\n])");
    let padding = regex("^ *0*([0-9]+)(→|\t|\\| )");
    let entry = regex("^[0-9]{1,7}([:-])");
    let text = codes.replace_all(text, "");
    let text = overwritten.replace_all(&text, "$1");
    let lines: Vec<String> = text
        .lines()
        .map(|line| padding.replace(line.trim_end_matches('\r'), "$1$2").into_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let mut normal = Vec::new();
    let mut heading: Option<&str> = None;
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1);
        if let Some(mark) = entry.captures(line) {
            normal.push(heading.map_or_else(|| line.clone(), |path| format!("{path}{}{line}", &mark[1])));
        } else if line.contains(['.', '/']) && next.is_some_and(|next| entry.is_match(next)) {
            heading = Some(line);
        } else {
            heading = heading.filter(|_| line == "--");
            normal.push(line.clone());
        }
    }
    normal
}

/// Holds a form to what all promise for a text; gives the text in that form.
fn check(text: &str, form: RewriteForm) -> Option<String> {
    let rewritten = rewrite_as(text, form)?;
    assert!(rewritten.len() < text.len(), "{form}: grew");
    assert_eq!(
        normal_lines(&rewritten),
        normal_lines(text),
        "{form}: says something else\n{text:?}\n{rewritten:?}"
    );
    assert_eq!(rewrite_as(&rewritten, form), None, "{form}: not idempotent\n{text:?}\n{rewritten:?}");
    Some(rewritten)
}

fn source_lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ a-z(){};=.:/→|\t-]{0,40}[a-z;]|", 1..40)
}

fn view(lines: &[String], first: usize, write: impl Fn(usize, &str) -> String) -> String {
    let numbered = lines.iter().enumerate().map(|(index, line)| write(first + index, line));
    numbered.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn padding_goes_and_every_line_stays(
        lines in source_lines(), first in select(vec![1, 7, 98, 9_990, 999_990]), form in 0..3, behind in "[ -~\n]{0,80}"
    ) {
        let text = view(&lines, first, |number, line| match form {
            0 => format!("{number:>6}→{line}"),
            1 => format!("{number:>6}\t{line}"),
            _ => format!("{number:05}| {line}"),
        }) + "\n" + &behind;
        let Some(bare) = check(&text, RewriteForm::Padding) else { return Ok(()) };
        prop_assert!(tokens(&bare) <= tokens(&text));
        prop_assert_eq!(bare.lines().count(), text.lines().count(), "a line is the line of its number");
    }

    #[test]
    fn codes_go_and_what_a_terminal_shows_stays(
        words in prop::collection::vec(("[a-z ]{0,12}", select(vec![
            "\u{1b}[31m", "\u{1b}[0m", "\u{1b}[38;5;12m", "\u{1b}]8;;https://a.b/c\u{1b}\\", "\u{1b}]0;title\u{7}", "\u{1b}(B",
            "\r", "\n", "\r\n", "50%\r", "",
        ])), 1..40)
    ) {
        let text: String = words.iter().map(|(word, code)| format!("{word}{code}")).collect();
        let Some(plain) = check(&text, RewriteForm::Ansi) else { return Ok(()) };
        let has_codes = plain.contains('\u{1b}');
        prop_assert!(!has_codes);
        prop_assert_eq!(plain.split('\n').count(), text.split('\n').count());
    }

    #[test]
    fn paths_stand_once_and_every_hit_stays(
        files in prop::collection::vec((
            "[a-z]{1,6}/[a-z-]{1,12}\\.(rs|py)",
            prop::collection::vec((1..5000usize, select(vec![':', '-']), "[ a-z(){}:-]{0,30}"), 1..12),
            select(vec!["", "--\n"]),
        ), 1..6),
        before in select(vec!["", "Found 12 matches\n", "Output:\n\n"]),
    ) {
        let hits = files.iter().map(|(path, lines, end)| {
            let lines = lines.iter().map(|(number, mark, line)| format!("{path}{mark}{number}{mark}{line}\n"));
            lines.collect::<String>() + end
        });
        let text = before.to_owned() + &hits.collect::<String>();
        let Some(grouped) = check(&text, RewriteForm::Paths) else { return Ok(()) };
        let once = files.iter().filter(|(path, ..)| grouped.matches(path.as_str()).count() == 1).count();
        prop_assert!(once > 0 || files.len() > 1);
    }

    #[test]
    fn blanks_of_json_go_and_its_value_stays(value in json_value()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let Some(compact) = check(&pretty, RewriteForm::Json) else { return Ok(()) };
        prop_assert_eq!(compact, value.to_string());
    }

    #[test]
    fn any_text_keeps_what_it_says(text in "([ -~\u{1b}\r→]{0,30}\n){0,12}") {
        for form in RewriteForm::ALL {
            if let Some(rewritten) = rewrite_as(&text, form) {
                prop_assert!(rewritten.len() < text.len());
                prop_assert_eq!(rewrite_as(&rewritten, form), None, "{}", form);
            }
        }
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_999i64..9_999).prop_map(Into::into),
        "[ -~\n\t]{0,12}".prop_map(Into::into),
    ];
    let inner = leaf.prop_recursive(3, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::Array),
            prop::collection::btree_map("[a-z \\\\\"]{1,6}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    inner.prop_filter("an object or an array", |value| value.is_array() || value.is_object())
}

fn rewritten(text: &str, form: RewriteForm) -> String {
    check(text, form).unwrap_or_else(|| panic!("{form} leaves this alone: {text}"))
}

#[test]
fn the_numbers_of_every_agent_that_pads_them_lose_their_padding() {
    for (padded, bare) in [
        ("     9→use std;\n    10→}\n    11→\n", "     9→use std;\n10→}\n11→\n"),
        ("60→trimmed by its client\n    61→}\n", "60→trimmed by its client\n61→}\n"),
        ("The output:\n     9\tuse std;\n    10\t}\n", "The output:\n9\tuse std;\n10\t}\n"),
        ("<file>\n00001| use std;\n00002| \n</file>", "<file>\n1| use std;\n2| \n</file>"),
        (
            "     1→a\n     2→b\n\n<system-reminder>\nRead it.\n</system-reminder>",
            "     1→a\n2→b\n\n<system-reminder>\nRead it.\n</system-reminder>",
        ),
    ] {
        assert_eq!(rewritten(padded, RewriteForm::Padding), bare);
        assert!(tokens(bare) < tokens(padded));
    }
}

#[test]
fn what_could_not_be_padded_again_stays() {
    // Bare numbers beside padded ones, other widths, lines of a file that only look numbered.
    for text in [
        "1→a\n2→b\n     3→c\n", "   1→a\n   2→b\n", "    1\tcolumn\n", "  10: x\n", "     x→a\n",
        "1→a\n2→b\n",
    ] {
        assert_eq!(rewrite_as(text, RewriteForm::Padding), None, "{text}");
    }
}

#[test]
fn a_terminal_shows_the_same_without_codes() {
    for (coded, plain) in [
        ("\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m a v0.1.0\n", "   Compiling a v0.1.0\n"),
        ("Receiving objects:  50%\rReceiving objects: 100%, done.\n", "Receiving objects: 100%, done.\n"),
        ("\u{1b}]8;;file:///a.rs\u{1b}\\a.rs\u{1b}]8;;\u{1b}\\ is fine\n", "a.rs is fine\n"),
        ("one\u{1b}[K  \r\ntwo\n", "one  \r\ntwo\n"),
    ] {
        assert_eq!(rewritten(coded, RewriteForm::Ansi), plain);
        assert!(tokens(plain) < tokens(coded));
    }
    assert_eq!(rewrite_as("one  \r\ntwo\n", RewriteForm::Ansi), None, "ends of lines stay");
}

#[test]
fn an_error_that_was_written_over_stays() {
    let text = "error: it broke\r\u{1b}[KBuilding 3/9\n";
    assert!(is_error_line("error: it broke"));
    assert_eq!(rewrite_as(text, RewriteForm::Ansi).as_deref(), Some("error: it broke\rBuilding 3/9\n"));
}

#[test]
fn hits_are_grouped_as_rg_prints_them_under_headings() {
    let hits = "crates/core/src/lib.rs:12:pub mod a;\ncrates/core/src/lib.rs-13-\ncrates/core/src/lib.rs:14:pub mod b;\ncrates/core/src/a.rs:1:use b;\n";
    let grouped =
        "crates/core/src/lib.rs\n12:pub mod a;\n13-\n14:pub mod b;\n\ncrates/core/src/a.rs\n1:use b;\n";
    assert_eq!(rewritten(hits, RewriteForm::Paths), grouped);
    assert!(tokens(grouped) < tokens(hits));
    let in_groups = "a/b.rs:1:x\na/b.rs-2-y\n--\na/b.rs:9:z\n--\na/c.rs:4:w\n";
    assert_eq!(rewritten(in_groups, RewriteForm::Paths), "a/b.rs\n1:x\n2-y\n--\n9:z\n--\na/c.rs\n4:w\n");
    let headed = "Found 2 matches\na/b/c/d.rs:1:x\na/b/c/d.rs:2:y";
    assert_eq!(rewritten(headed, RewriteForm::Paths), "Found 2 matches\n\na/b/c/d.rs\n1:x\n2:y");
    let on_windows = "C:\\a\\b.rs:1:x\nC:\\a\\b.rs:2:y\n";
    assert_eq!(rewritten(on_windows, RewriteForm::Paths), "C:\\a\\b.rs\n1:x\n2:y\n");
}

#[test]
fn hits_stay_where_the_form_would_not_say_how_to_undo_it() {
    // A blank line of the output's own before a path, hits of one file each, what is no hit at all.
    for text in [
        "a/b.rs:1:x\na/b.rs:2:y\n\na/c.rs:1:z\na/c.rs:2:z\n",
        "a.rs:1:x\n",
        "12:34:56 a.b started\n",
        "no hits\n",
    ] {
        assert_eq!(rewrite_as(text, RewriteForm::Paths), None, "{text}");
    }
}

#[test]
fn an_anchor_of_an_edit_stands_in_every_form_as_it_stands_in_the_file() {
    let file = "fn main() {\n\tlet path = \"a:1:b\";\n    // 12→ of it\n}";
    let anchor = "\tlet path = \"a:1:b\";\n    // 12→ of it\n";
    let lines: Vec<String> = file.lines().map(str::to_owned).collect();
    let bare = regex("(?m)^ *[0-9]+(→|\t)");
    for padded in [
        view(&lines, 8, |n, line| format!("{n:>6}→{line}")),
        view(&lines, 8, |n, line| format!("{n:>6}\t{line}")),
    ] {
        assert!(bare.replace_all(&rewritten(&padded, RewriteForm::Padding), "").contains(anchor));
    }
    let coloured = file.replace("path", "\u{1b}[1;31mpath\u{1b}[0m");
    assert!(!coloured.contains(anchor) && rewritten(&coloured, RewriteForm::Ansi).contains(anchor));
    let hits = view(&lines, 8, |number, line| format!("src/main.rs:{number}:{line}"));
    let grouped = regex("(?m)^[0-9]+:").replace_all(&rewritten(&hits, RewriteForm::Paths), "").into_owned();
    assert!(grouped.contains(anchor));
    let json = serde_json::to_string_pretty(&serde_json::json!({"source": anchor, "lines": [1, 2]})).unwrap();
    let said: serde_json::Value = serde_json::from_str(&rewritten(&json, RewriteForm::Json)).unwrap();
    assert_eq!(said["source"], anchor);
}

#[test]
fn what_a_client_wrapped_is_rewritten_inside_its_json() {
    let text = "     1\tone\n     2\ttwo\n";
    let wrapped = serde_json::json!({"output": text, "metadata": {"exit_code": 0}}).to_string();
    let bare = rewrite_as(&wrapped, RewriteForm::Padding).unwrap();
    let value: serde_json::Value = serde_json::from_str(&bare).unwrap();
    assert_eq!(value["output"], "     1\tone\n2\ttwo\n");
    assert_eq!(value["metadata"]["exit_code"], 0);
}

#[test]
fn what_was_shortened_before_is_left_alone() {
    let text = "     1→a\n     2→b\n[Read a.rs again; 40 lines; trimtab recall 0123456789ab]";
    assert_eq!(rewrite_as(text, RewriteForm::Padding), None);
}
