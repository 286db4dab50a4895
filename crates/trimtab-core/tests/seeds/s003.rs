//! Priorities: what is kept longest, what a file's note says, and that the same comes out every time.

use serde_json::json;
use trimtab_core::{
    BlockKind,
    facts::Priority,
    files,
    report::{FileQuestion, FileTracker},
};

use crate::talk::{ROOM, Talk, output, source};

/// The order of preservation and its numbers. (The document puts old reads of files between old history and recent reads
/// in its list and among stale outputs in its code: the code is followed, and a table cannot say both.)
#[test]
fn the_classes_and_their_numbers() {
    let numbers = [
        (Priority::System, 100),
        (Priority::AgentInstructions, 90),
        (Priority::CurrentTask, 80),
        (Priority::ModifiedFile, 70),
        (Priority::RecentStep, 60),
        (Priority::RecentFileRead, 50),
        (Priority::OldHistory, 40),
        (Priority::StaleToolOutput, 30),
        (Priority::Summarized, 20),
    ];
    for (class, number) in numbers {
        assert_eq!(class.number(), number, "{}", class.name());
    }
}

/// Messages are put into the classes that the document names.
#[test]
fn blocks_are_classified_as_the_document_says() {
    let mut talk = Talk::new()
        .says(
            "user",
            "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\nAlways run the tests.\n</INSTRUCTIONS>",
        )
        .says("user", "Fix the bug.")
        .reads("old.py", &source(1, 30))
        .runs("ls -la /tmp", &output(5))
        .reads("edited.py", &source(2, 30))
        .calls(
            "edit_file",
            json!({"path": "edited.py", "old_str": "a", "new_str": "b"}),
            "The file was updated.",
        );
    for number in 0..6 {
        talk = talk.runs(&format!("make step{number}"), &output(5));
    }
    let talk = talk.reads("new.py", &source(3, 30));
    let (history, facts) = (talk.history(), talk.facts());
    let of = |text: &str, kind: BlockKind| {
        let ids = (0_u32..).map(trimtab_core::BlockId).zip(history.blocks());
        let mut found =
            ids.filter(|(_, block)| block.kind == kind && history.block_text(block).contains(text));
        facts.priority(found.next().expect(text).0, 5).expect(text)
    };
    assert_eq!(of("helpful assistant", BlockKind::Text), Priority::System);
    assert_eq!(of("Always run the tests", BlockKind::Text), Priority::AgentInstructions);
    assert_eq!(of("Fix the bug", BlockKind::Text), Priority::CurrentTask);
    assert_eq!(of("version=1", BlockKind::Result), Priority::StaleToolOutput);
    assert_eq!(of("version=2", BlockKind::Result), Priority::ModifiedFile);
    assert_eq!(of("version=3", BlockKind::Result), Priority::RecentFileRead);
    assert_eq!(of("make step5", BlockKind::Call), Priority::RecentStep);
}

/// The system message is never removed, nor is the current task, however small the target.
#[test]
fn system_and_task_stay_at_any_target() {
    let talk = Talk::new().says("user", "Hello").calls("search", json!({"q": "a"}), &"a ".repeat(5_000));
    let sent = talk.fit("priority", &[], 100);
    assert!(sent.says("You are a helpful assistant") && sent.says("Hello"));
}

/// A file changed in this session is preserved over one that was only read.
#[test]
fn modified_files_stay_before_old_reads() {
    let talk =
        Talk::new().reads("/app/edited.ts", &source(1, 100)).reads("/app/read.ts", &source(2, 100)).calls(
            "edit_file",
            json!({"path": "/app/edited.ts", "old_str": "a", "new_str": "b"}),
            "The file was updated.",
        );
    let whole = talk.whole("priority", &[], talk.tokens() - 500);
    assert!(whole.contains(&1) && !whole.contains(&2), "{whole:?}");
}

/// Old history goes before recent turns, and how many are recent can be set.
#[test]
fn old_results_go_before_recent_ones() {
    let talk = (0..12).fold(Talk::new(), |talk, number| talk.runs(&format!("make {number}"), &output(60)));
    let whole = talk.whole("priority", &[], talk.tokens() * 3 / 4);
    assert!(!whole.contains(&1) && whole.contains(&12) && whole.contains(&8), "{whole:?}");
    // With every step recent nothing is of a class that is cleared: the closing step decides.
    let note = |set: &[(&str, f64)]| talk.fit("priority", set, talk.tokens() * 3 / 4).shown(1);
    assert_ne!(note(&[("preserve_recent", 100.0)]), note(&[]));
    assert_ne!(note(&[("most_valuable", 20.0)]), note(&[]));
}

/// The note of a hidden file: path, lines, when it was last looked at (a step, not an age that changes with every request), whether
/// it was changed, how it began, and what to do.
#[test]
fn a_files_note_says_what_it_was_and_what_to_do() {
    let talk = (0..7).fold(Talk::new().reads("/app/read.ts", &source(1, 100)), |talk, number| {
        talk.runs(&format!("make {number}"), "ok")
    });
    let note = talk.fit("priority", &[], talk.tokens() - 300).shown(1);
    for part in [
        "Read /app/read.ts again", "100 lines", "last accessed at step 1", "not modified", "it began \"",
        "trimtab recall ",
    ] {
        assert!(note.contains(part), "no {part} in {note}");
    }
}

/// The same input gives the same output, and what fits is left as it is.
#[test]
fn trimming_is_deterministic_and_silent_where_all_fits() {
    let talk =
        (0..9).fold(Talk::new(), |talk, number| talk.reads(&format!("{number}.py"), &source(number, 60)));
    let budget = talk.tokens() / 2;
    for policy in ["age", "priority"] {
        let once = talk.fit(policy, &[], budget);
        assert_eq!(once.fitted.request, talk.fit(policy, &[], budget).fitted.request);
        assert!(once.fitted.plan.after().0 <= budget);
        assert!(talk.fit(policy, &[], ROOM).fitted.plan.keeps_all());
    }
}

/// The tracker: a file that was read and then edited is modified, another is not; creating is modifying.
#[test]
fn the_tracker_knows_what_was_modified() {
    let talk = Talk::new()
        .reads("/app/file.ts", &source(1, 5))
        .calls(
            "edit_file",
            json!({"path": "/app/file.ts", "old_str": "a", "new_str": "b"}),
            "The file was updated.",
        )
        .calls("create_file", json!({"path": "/app/new.ts", "content": "x"}), "Created.")
        .reads("/app/existing.ts", &source(2, 5));
    let (history, facts) = (talk.history(), talk.facts());
    assert!(facts.is_modified("/app/file.ts") && facts.is_modified("/app/new.ts"));
    assert!(!facts.is_modified("/app/other.ts") && !facts.is_modified("/app/existing.ts"));
    let files = files(&history, &facts);
    assert!(files.is_stale("/app/file.ts", 20, 5) && !files.is_stale("/app/existing.ts", 5, 5));
    assert_eq!(files.recent_files(4, 1).len(), 2, "{:?}", files.recent_files(4, 1));
}

/// The tracker's whole record of a file, and its questions: what was modified, what is recent, what is stale.
#[test]
fn the_tracker_keeps_the_whole_record_and_answers_questions() {
    let talk = Talk::new()
        .calls(
            "write_file",
            json!({"path": "/app/new.ts", "content": "let a = 1;\nlet b = 2;\n"}),
            "Created.",
        )
        .reads("/app/old.ts", &source(1, 5))
        .calls(
            "edit_file",
            json!({"path": "/app/new.ts", "old_str": "let b = 2;", "new_str": "let b = 3;\nlet c = 4;"}),
            "The file was updated.",
        )
        .runs("make", "ok")
        .runs("make test", "ok")
        .reads("/app/last.ts", "x\u{1b}[31m\n");
    let (history, facts) = (talk.history(), talk.facts());
    let counts = trimtab_core::Counter::for_model("gpt-5")
        .count_request(&history, &mut trimtab_core::CountMemo::default());
    let at = |messages, at| trimtab_core::Point {
        messages,
        at: Some(trimtab_core::Millis(at)),
        model: None,
        usage: None,
    };
    // The request of step n carries the two first messages and two for each step before.
    let points: Vec<trimtab_core::Point> =
        (0..6).map(|step| at(2 + 2 * step, 1_000 * i64::try_from(step).expect("small"))).collect();
    let tracker =
        FileTracker::from_conversation(&history, &facts, &files(&history, &facts), &counts, &points);
    let find = |question: FileQuestion| -> Vec<String> {
        tracker
            .find(question)
            .iter()
            .map(|file| file.path.rsplit('/').next().expect("a name").to_owned())
            .collect()
    };
    let any = FileQuestion::default();
    assert_eq!(find(any), ["last.ts", "new.ts", "old.ts"], "the latest first");
    assert_eq!(find(FileQuestion { modified: true, ..any }), ["new.ts"]);
    assert_eq!(find(FileQuestion { recent: Some(3), ..any }), ["last.ts", "new.ts"]);
    assert_eq!(find(FileQuestion { stale: Some(3), ..any }), ["old.ts"]);
    assert_eq!(find(FileQuestion { stale: Some(2), modified: true, ..any }), ["new.ts"]);
    let new = tracker.find(FileQuestion { modified: true, ..any })[0];
    assert_eq!((new.last_access_step, new.last_access_time, new.operation), (3, Some(2_000), "edit"));
    assert_eq!((new.line_count, new.exists, new.reads, new.changes), (Some(3), Some(true), 0, 2));
    assert_eq!(new.preview.as_deref(), Some("let a = 1;\nlet b = 3;\nlet c = 4;\n"));
    assert!(new.tokens.0 > 20, "{:?}", new.tokens);
    assert!(tracker.is_stale(&new.path, 6, 2) && !tracker.is_stale(&new.path, 6, 3));
    assert!(tracker.is_stale("/app/never.ts", 6, 100));
    let last = tracker.find(any)[0];
    assert!(!last.preview.as_deref().expect("a preview").contains('\u{1b}'));
    let long = Talk::new().reads("a.ts", &source(1, 50));
    let (history, facts) = (long.history(), long.facts());
    let tracker = FileTracker::from_conversation(&history, &facts, &files(&history, &facts), &counts, &[]);
    let preview = tracker.files[0].preview.as_deref().expect("a preview");
    assert_eq!(preview.chars().count(), 200);
    assert_eq!(tracker.files[0].last_access_time, None, "a request has no times");
}

/// By age: results older than five steps go first; errors and small ones stay.
#[test]
fn by_age_old_results_go_and_errors_stay() {
    let failed = format!("{}\nerror: it broke\nexit code: 1", source(5, 60));
    let talk = Talk::new()
        .runs("make one", &output(60))
        .calls("bash", json!({"command": "make two"}), &failed)
        .runs("make three", "ok");
    let talk = (0..6).fold(talk, |talk, number| talk.runs(&format!("make {number}"), &output(60)));
    let whole = talk.whole("age", &[], talk.tokens() - 200);
    assert!(!whole.contains(&1) && whole.contains(&3) && whole.contains(&9), "{whole:?}");
    let note = |set: &[(&str, f64)]| talk.fit("age", set, talk.tokens() - 200).shown(1);
    assert_ne!(note(&[("max_age", 100.0)]), note(&[]));
    assert_ne!(note(&[("small_tokens", 90_000.0)]), note(&[]));
}
