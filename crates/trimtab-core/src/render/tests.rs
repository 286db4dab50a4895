//! Every sentence, in one file to read through; and what is taken for a note.

use std::fmt::Write;

use super::*;
use crate::{
    digest::{EditSeries, LeafSet, LineCount, RunTotals},
    facts::{Outcome, Subject, SubjectLines},
    notes::{file_in_note, is_note},
    policy::NoteStyle,
    recall::handle_of,
    verdict::Reason,
};

fn file(path: &str) -> Subject {
    Subject::File { path: path.into(), lines: SubjectLines::All }
}

const SAME: ShownCopy = ShownCopy { same_at: Some(20), changed_at: None };

fn context<'a>(subject: &'a Subject, reason: &'a Reason) -> NoteContext<'a> {
    NoteContext {
        tool: Some("run_shell"),
        subject,
        kind: None,
        file: ShownFile { last_access: 14, modified: false, copy: SAME },
        step: 12,
        tokens: Some(3811),
        reason,
        handle: "0123456789ab",
        style: NoteStyle::Normal,
        recall: &USUAL_RECALL,
    }
}

/// Writes one closing note of a text of 400 lines.
fn closing(pieces: &[Piece], context: &NoteContext<'_>) -> String {
    let text = "import argparse\n".to_owned() + &"some line of it\n".repeat(399);
    let rendered = render(&text, pieces, context);
    rendered.lines().last().unwrap_or_default().to_owned()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn every_sentence_reads_well() {
    let mut page =
        "Every sentence a model may see, written by a test; TRIMTAB_BLESS=1 renews it.\n\n# Reasons\n"
            .to_owned();
    let command = &Subject::Command("pytest tests/".into());
    let agent = &file("src/agent.py");
    for reason in &reasons() {
        let _ = writeln!(page, "{}", closing(&[], &context(command, reason)));
    }
    page += "\n# A file, hidden\n";
    for reason in &reasons() {
        let _ = writeln!(page, "{}", closing(&[], &context(agent, reason)));
    }
    page += "\n# A file, shortened\n";
    let lines = SubjectLines::Range { first: 100, last: Some(499) };
    let part = Subject::File { path: "src/agent.py".into(), lines };
    for reason in &[Reason::TooOld, Reason::Stale { edit: 15 }] {
        let file = ShownFile { last_access: 15, modified: true, copy: SAME };
        let modified = NoteContext { file, ..context(&part, reason) };
        let _ = writeln!(page, "{}", closing(&[Piece::Lines(0..10)], &modified));
    }
    page += "\n# A file that other steps show\n";
    let shown = Reason::Shown { at: 5, handle: "ba9876543210".to_owned() };
    for reason in [Reason::Identical { to: 5 }, shown, Reason::ReadOften { first: 3, last: 20 }] {
        for (same_at, changed_at) in [(Some(20), None), (Some(20), Some(9)), (None, Some(9)), (None, None)] {
            let copy = ShownCopy { same_at, changed_at };
            let (subject, file) = (file("a.py"), ShownFile { last_access: 14, modified: false, copy });
            let context = NoteContext { file, ..context(&subject, &reason) };
            let _ = writeln!(page, "{}", closing(&[], &context));
        }
    }
    page += "\n# A series of edits\n";
    for lines in [
        Some(LineCount::Net(14, 6)),
        Some(LineCount::NetOfKnown(14, 6)),
        Some(LineCount::NetSince(10, 14, 6)),
        Some(LineCount::Sum(34, 20)),
        None,
    ] {
        let reason = Reason::EditedOften { changes: 12, first: 10, last: 50, told: None };
        let told = Piece::Note(Note::Series(Box::new(series(lines))));
        let _ = writeln!(page, "{}", render("x", &[told], &context(agent, &reason)));
    }
    let text = "cargo test --workspace\n".repeat(40);
    let _ = writeln!(page, "{}", argument_of_series(&text, &series(None), "0123456789ab", &USUAL_RECALL));
    page += "\n# What was counted\n";
    for note in facts() {
        let _ = writeln!(page, "{}", closing(&[Piece::Note(note)], &context(command, &Reason::TooOld)));
    }
    page += "\n# Subjects\n";
    let long = "very/".repeat(80) + "long.py";
    let newline = "cat <<'E'\ntwo lines\nE";
    for subject in [
        Subject::Nothing,
        Subject::Command(newline.into()),
        Subject::query("fn main", None),
        Subject::Url("https://example.org/a".into()),
        Subject::Command(long.into()),
    ] {
        let _ = writeln!(page, "{}", closing(&[], &context(&subject, &Reason::TooOld)));
    }
    let nothing = NoteContext { tool: None, tokens: None, ..context(&Subject::Nothing, &Reason::TooLong) };
    let _ = writeln!(page, "{}", closing(&[], &nothing));
    page += "\n# Plain\n";
    let _ = writeln!(
        page,
        "{}",
        closing(&[], &NoteContext { style: NoteStyle::Plain, ..context(command, &Reason::TooOld) })
    );
    page += "\n# Arguments of calls\n";
    for class in [LeafSet::Contents, LeafSet::All] {
        let text = "cargo test --workspace\n".repeat(40);
        let _ = writeln!(
            page,
            "{}",
            argument_note(&text, class, &Reason::Superseded { by: 14 }, "0123456789ab", &USUAL_RECALL)
        );
    }
    page += "\n# With another command, and without a recall\n";
    let elsewhere = RecallHint::Command("/opt/bin/trimtab recall --store /var/kept.db".into());
    for recall in [&elsewhere, &RecallHint::Nothing] {
        for reason in [Reason::TooOld, Reason::Identical { to: 14 }] {
            let normal = NoteContext { recall, ..context(command, &reason) };
            let plain = NoteContext { style: NoteStyle::Plain, ..normal };
            let file = NoteContext { subject: agent, ..normal };
            for context in [normal, plain, file] {
                let _ = writeln!(page, "{}", closing(&[], &context));
            }
        }
        let text = "x".repeat(900);
        let _ =
            writeln!(page, "{}", argument_note(&text, LeafSet::All, &Reason::TooOld, "0123456789ab", recall));
    }
    page += "\n# Where something is missing\n";
    for (note, gaps) in gaps() {
        let _ = writeln!(page, "{}", note::inline_note(&note, gaps).expect("an inline note"));
    }
    let _ = writeln!(page, "{}", note::cut_mark(1234));
    for line in page.lines().filter(|line| line.starts_with('[')) {
        assert!(is_note(line), "{line}");
        assert!(line.chars().count() <= 700, "{line}");
    }
    crate::digest::check_file("crates/trimtab-core/src/render/sentences.txt", &page);
}

fn reasons() -> [Reason; 10] {
    [
        Reason::TooOld,
        Reason::Superseded { by: 14 },
        Reason::Identical { to: 5 },
        Reason::OverBudget,
        Reason::TooLong,
        Reason::Stale { edit: 15 },
        Reason::ReadOften { first: 3, last: 20 },
        Reason::EditedOften { changes: 12, first: 10, last: 50, told: None },
        Reason::EditedOften { changes: 12, first: 10, last: 50, told: Some(11) },
        Reason::Rule("no-logs".to_owned()),
    ]
}

fn series(lines: Option<LineCount>) -> EditSeries {
    let diff = match lines {
        Some(LineCount::Net(..)) => names(&["@@ -3,1 +3,1 @@", "-timeout = 1", "+timeout = 2"]),
        _ => Vec::new(),
    };
    EditSeries {
        path: "config.py".to_owned(),
        changes: 12,
        first: 10,
        last: 50,
        intents: vec![("Add AGENT_CONFIG".to_owned(), 1), ("Modify the system prompt".to_owned(), 3)],
        more_intents: 4,
        lines,
        more_diff: diff.len() * 10,
        diff,
    }
}

fn facts() -> Vec<Note> {
    let changes = |staged, modified, untracked, conflicted| Note::Changes {
        branch: Some("main".to_owned()),
        staged,
        modified,
        untracked,
        conflicted,
    };
    vec![
        Note::Intent("Increase tool retention".to_owned()),
        Note::Listing { files: 127, directories: 14, samples: names(&["a.py", "b.py", "c.py"]) },
        Note::Listing { files: 1, directories: 0, samples: names(&["a.py"]) },
        Note::RepoMap { files: 36, samples: names(&["a.py", "b.py", "c.py"]) },
        changes(2, 3, 1, 0),
        changes(0, 0, 0, 1),
        changes(0, 0, 0, 0),
        Note::Diff { files: 3, added: 120, removed: 30, samples: names(&["a.py", "b.py", "c.py"]) },
        Note::Commits { total: 40 },
        Note::Matches {
            total: 50,
            files: 2,
            shown: 3,
            most: vec![("a.py".to_owned(), 30), ("b.py".to_owned(), 20)],
        },
        Note::Matches { total: 2, files: 1, shown: 2, most: vec![("a.py".to_owned(), 2)] },
        Note::Status(Outcome::Succeeded),
        Note::Status(Outcome::Failed),
        Note::Status(Outcome::Succeeded),
        Note::Totals(RunTotals {
            passed: Some(45),
            failed: Some(0),
            skipped: Some(2),
            ..RunTotals::default()
        }),
        Note::Frames { total: 40, shown: 6 },
        Note::Definitions { total: 31, shown: 10 },
        Note::Media { kind: "image/png".to_owned(), bytes: 120_345 },
        Note::Shape { container: Container::Array, elements: 100, shown: 3, keys: names(&["id", "name"]) },
        Note::Shape { container: Container::Object, elements: 20, shown: 0, keys: names(&["id", "name"]) },
    ]
}

fn gaps() -> Vec<(Note, usize)> {
    vec![
        (Note::Omitted { first: 11, last: 190, of: 210 }, 1),
        (Note::Omitted { first: 11, last: 11, of: 210 }, 1),
        (Note::Omitted { first: 11, last: 190, of: 210 }, 9),
        (Note::Passing { lines: 37 }, 1),
        (Note::Repeated { times: 12, lines: 1 }, 1),
        (Note::Repeated { times: 12, lines: 3 }, 1),
        (Note::ElementsOmitted { first: 4, last: 17, of: 100 }, 1),
    ]
}

#[test]
fn endless_fields_make_no_endless_note() {
    let endless = "endless name\n".repeat(1000);
    let piece = Piece::Note(Note::Listing { files: 1, directories: 1, samples: vec![endless.clone(); 3] });
    for subject in [
        Subject::Command(endless.as_str().into()),
        Subject::query(&endless, None),
        Subject::Url(endless.as_str().into()),
        file(&endless),
    ] {
        let note = render(
            &endless,
            std::slice::from_ref(&piece),
            &NoteContext { tool: Some(&endless), ..context(&subject, &Reason::TooOld) },
        );
        assert!(is_note(&note) && note.chars().count() < 900, "{note}");
    }
}

#[test]
fn a_file_note_says_first_what_to_do() {
    let note = closing(&[], &context(&file("src/agent.py"), &Reason::TooOld));
    assert!(note.starts_with("[Read src/agent.py again"), "{note}");
    for fact in [
        "400 lines", "last accessed at step 14", "not modified", "import argparse",
        "trimtab recall 0123456789ab]",
    ] {
        assert!(note.contains(fact), "no {fact} in {note}");
    }
}

#[test]
fn a_handle_is_twelve_digits_of_blake3() {
    assert_eq!(handle_of("".as_bytes()).len(), 12);
    assert_eq!(handle_of("".as_bytes()), "af1349b9f5f9", "BLAKE3 of nothing");
    assert_ne!(handle_of("a".as_bytes()), handle_of("b".as_bytes()));
}

#[test]
fn lines_are_never_joined() {
    let text = "first\nsecond\nthird";
    let pieces =
        [Piece::Lines(0..1), Piece::Note(Note::Omitted { first: 2, last: 2, of: 3 }), Piece::Lines(2..3)];
    let rendered = render(text, &pieces, &context(&Subject::Nothing, &Reason::TooOld));
    assert_eq!(rendered.lines().take(3).collect::<Vec<_>>(), ["first", "[… line 2 of 3 omitted …]", "third"]);
    assert_eq!(rendered.lines().count(), 4);
}

#[test]
fn placeholders_of_other_tools_are_known() {
    for text in [
        "[Old tool result content cleared]",
        "[output pruned - context limit]",
        "[Tool output pruned - 12,345 chars]",
        "[Tool output pruned - was 12,345 chars]",
        "[Re-read of config.py - see first read above for content]",
        "[Re-read of config.py - see earlier read for content]",
        "[Pruned list_files: 127 files, e.g., a.py, b.py, c.py...]",
        "[Pruned grep_code: 15 matches, first 3:\na.py:1: x\n... +12 more]",
        "[Content truncated - file: a.py - 7 steps ago - 1234 tokens]",
        "[File: a.py\n  Lines: 12\n  Last accessed: 3 steps ago\n  Use read_file to retrieve current content]",
        "Old environment output: (12 lines omitted)",
        "<persisted-output>\nOutput too large (36.8KB). Full output saved to: /x.txt\n</persisted-output>",
        "[Output removed to save context - information superseded or no longer needed]",
        "[input removed due to failed tool call]",
        "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to date version of this file.]",
        "[{\"id\": 1}]\n[1000 items compressed to 20. Retrieve more: hash=abc123]",
        "[Previous 12 lines omitted for brevity]",
    ] {
        assert!(is_foreign_placeholder(text), "{text}");
        let count = |text: &str| u64::try_from(text.len()).expect("a length");
        assert_eq!(shorten(text, &[], &context(&Subject::Nothing, &Reason::TooOld), &count), None);
    }
}

#[test]
fn content_is_neither_a_note_nor_a_placeholder() {
    for text in [
        "",
        "[]",
        "[1, 2]",
        "[section]\nkey = 1",
        "[… and so on",
        "[File: a.txt] was read\nand more",
        "Previous work",
        "fn main() {}",
        "[build] 3 files hidden",
        "{\"a\": \"[was hidden: too old]\"}",
        "[note at step 3: moved, hidden: nobody knows why]",
        "[2026-01-01; recall of the parts 0123456789abc]",
    ] {
        assert!(!is_note(text) && !is_foreign_placeholder(text) && !holds_note(text), "{text}");
    }
    let quoted = "See: [x at step 1: 3 lines, hidden: too old]\nfor how it reads.";
    assert!(!holds_note(quoted));
    let quoted = "See the note\n[x; trimtab recall 0123456789ab]\nfor how it reads.";
    assert!(!holds_note(quoted), "a quotation in the middle of a text is content");
}

#[test]
fn a_note_that_stands_for_a_file_names_it() {
    let of = |file: &str| format!("[Read {file} again if you need it: 9 lines, at step 6, hidden: too old]");
    assert_eq!(file_in_note(&of("/a/b c.rs")), Some("/a/b c.rs"));
    assert_eq!(file_in_note(&of("src/lines 9/a.rs lines 10-20")), Some("src/lines 9/a.rs"));
    assert_eq!(file_in_note(&of("/a/very/long/path…")), None, "what is cut names nothing");
    assert_eq!(file_in_note("[Read a.rs again if you need it: it is short]"), None, "no note of ours");
}
