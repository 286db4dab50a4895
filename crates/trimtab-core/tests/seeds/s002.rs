//! Results that a later one supersedes: which, and when it is worth it.

use serde_json::json;
use trimtab_core::{
    Format, Memory, Millis, Policy, Settings, Tokens,
    facts::{Outcome, SupersedeRule},
    fit,
    policy::ConfigFile,
};

use crate::talk::{ROOM, Talk, output, source};

fn written(talk: Talk, version: usize) -> Talk {
    let text = source(version, 40);
    talk.calls(
        "write_file",
        json!({"path": "foo.py", "content": text}),
        &format!("File written. Content:\n{text}"),
    )
}

/// The document's scenario: a file is written, other things happen, it is written again.
fn scenario() -> Talk {
    written(written(Talk::new(), 1).runs("make", &output(40)), 2)
}

/// The decision: below pressure nothing is trimmed, since a stable history is cheap to send again. Only above three quarters
/// of the window is the stale result hidden.
#[test]
fn the_older_of_two_writes_is_hidden_above_the_threshold_only() {
    let talk = scenario();
    let tokens = talk.tokens();
    assert!(talk.fit("supersede", &[], tokens * 100 / 74).fitted.plan.keeps_all());
    let sent = talk.fit("supersede", &[], tokens * 100 / 76);
    let note = sent.shown(1);
    assert!(note.contains("superseded by step 3"), "{note}");
    assert_eq!(sent.shown(3), format!("File written. Content:\n{}", source(2, 40)));
    // The call's arguments hold what was written: they stay.
    assert!(sent.says("version=1"));
    let at_half = talk.fit("supersede", &[("deduplication_threshold", 0.5)], tokens * 100 / 60);
    assert!(!at_half.fitted.plan.keeps_all());
}

/// Off by default in every policy but the one that is about it; the switch turns it on anywhere.
#[test]
fn deduplication_is_off_by_default_and_can_be_switched_on() {
    let talk = scenario();
    let budget = talk.tokens() * 100 / 90;
    for policy in ["age", "priority", "recent", "per-tool"] {
        assert_eq!(talk.whole(policy, &[], budget), [1, 2, 3], "{policy}");
        assert_eq!(talk.whole(policy, &[("deduplication", 1.0)], budget), [2, 3], "{policy}");
    }
    assert_eq!(talk.whole("supersede", &[("deduplication", 0.0)], budget), [1, 2, 3]);
    // Retention keeps every write, but not every read.
    let talk =
        Talk::new().reads("a.py", &source(1, 40)).runs("make", &output(4)).reads("a.py", &source(2, 40));
    let budget = talk.tokens() * 100 / 90;
    assert_eq!(talk.whole("retention", &[], budget), [1, 2, 3]);
    assert_eq!(talk.whole("retention", &[("deduplication", 1.0)], budget), [2, 3]);
}

/// Which of two operations on one file supersedes the other: what shows all of it does, a piece does not. A partial update
/// without the content returned supersedes nothing.
#[test]
fn whole_contents_supersede_and_pieces_do_not() {
    let read = |talk: Talk| talk.reads("foo.py", &source(1, 30));
    let piece = |talk: Talk| {
        talk.calls(
            "edit_file",
            json!({"path": "foo.py", "old_str": "a", "new_str": "b"}),
            "The file was updated.",
        )
    };
    let part = |talk: Talk| {
        talk.calls("read_file", json!({"path": "foo.py", "offset": 5, "limit": 5}), &source(1, 5))
    };
    let write = |talk: Talk| written(talk, 3);
    type Step<'a> = (&'a str, &'a dyn Fn(Talk) -> Talk);
    let steps: [Step<'_>; 4] = [("read", &read), ("piece", &piece), ("part", &part), ("write", &write)];
    let whole = ["read", "write"];
    for (older, first) in steps {
        for (newer, second) in steps {
            let talk = second(first(Talk::new()));
            let facts = talk.facts();
            let superseded = facts.rows().iter().any(|row| row.superseded_by.is_some());
            let expected = match (older, newer) {
                ("piece", _) | (_, "piece") => false,
                ("part", "part") => true,
                (_, newer) => whole.contains(&newer),
            };
            assert_eq!(superseded, expected, "{newer} after {older}");
        }
    }
}

/// The same file under another spelling is the same file; another file is not.
#[test]
fn paths_are_compared_by_what_they_mean() {
    let twice = |second: &str| {
        let talk = Talk::new().reads("src/foo.py", &source(1, 30)).reads(second, &source(2, 30));
        talk.facts().rows().iter().any(|row| row.superseded_by.is_some())
    };
    assert!(twice("./src/foo.py") && twice("src/foo.py") && !twice("src/bar.py"));
}

/// A newer call that failed supersedes nothing, nor does an append.
#[test]
fn failures_and_appends_supersede_nothing() {
    let talk = Talk::new().reads("foo.py", &source(1, 30)).reads("foo.py", "Error: file not found: foo.py");
    let facts = talk.facts();
    let failed = facts.rows().iter().any(|row| row.outcome == Outcome::Failed);
    assert!(failed && facts.rows().iter().all(|row| row.superseded_by.is_none()));
    let append = Talk::new().reads("foo.py", &source(1, 30)).runs("echo more >> foo.py", "");
    assert!(append.facts().rows().iter().all(|row| row.superseded_by.is_none()));
}

/// Listings: the more inclusive one supersedes, of the same place.
#[test]
fn a_wider_listing_supersedes_a_narrower_one() {
    let listed = |first: &str, second: &str| {
        let names: String = (0..30).map(|number| format!("src/m{number}.py\n")).collect();
        let talk = Talk::new().runs(first, &names).runs(second, &names);
        talk.facts()
            .rows()
            .iter()
            .any(|row| row.superseded_by.is_some_and(|(_, rule)| rule == SupersedeRule::ListedAgain))
    };
    assert!(listed("ls src", "ls src") && listed("ls src", "ls -R src"));
    assert!(!listed("ls -R src", "ls src") && !listed("ls src", "ls docs"));
}

/// Results carry what they supersede.
#[test]
fn a_result_knows_what_it_supersedes() {
    let facts = scenario().facts();
    let row = facts.rows().iter().find(|row| !row.supersedes.is_empty()).expect("one that supersedes");
    assert_eq!(row.supersedes[0].1, SupersedeRule::WrittenAnew);
}

/// Parallel calls: hiding one result leaves its call answered.
#[test]
fn a_superseded_result_of_parallel_calls_leaves_a_note() {
    let both = |talk: Talk, version| {
        talk.calls_together(&[
            ("read_file", json!({"path": "foo.py"}), &source(version, 30)),
            ("read_file", json!({"path": format!("other{version}.py")}), &source(version + 7, 30)),
        ])
    };
    let talk = both(both(Talk::new(), 1), 2);
    let sent = talk.fit("supersede", &[], talk.tokens() * 100 / 90);
    assert!(sent.shown(1).contains("superseded by step 2") && sent.shown(2) == source(8, 30));
}

/// What a person pins stays.
#[test]
fn a_pinned_file_is_not_hidden() {
    let talk = scenario();
    let config = ConfigFile::parse("t", "[[rule]]\npath = 'foo.py'\ndo = 'pin'\n").expect("a rule");
    let policy = Policy::find_shipped("supersede").expect("a policy").with_config(&config);
    assert!(talk.fit_by(policy, talk.tokens() * 100 / 90).fitted.plan.keeps_all());
    assert!(!talk.fit("supersede", &[], talk.tokens() * 100 / 90).fitted.plan.keeps_all());
    assert!(talk.fit("none", &[], ROOM).fitted.plan.keeps_all());
}

/// A file that is brought back to what it was: the newer view points at the older one, which then goes for an edit between them.
#[test]
fn a_newer_view_is_never_called_stale_by_an_edit_before_it() {
    let text: String =
        (1..120).map(|line| format!("{line:>6}\u{2192}let value_{line} = compute({line});\n")).collect();
    let edit = json!({"path": "a.rs", "old_string": "compute(3)", "new_string": "compute(4)"});
    let mut talk = Talk::new().reads("a.rs", &text).calls("edit_file", edit, "ok");
    talk = talk.runs("git checkout a.rs", "Updated 1 path from the index").reads("a.rs", &text);
    for number in 0..40 {
        talk = talk
            .runs("make", &format!("step {number}: {}", "compiled another part of it, fine\n".repeat(12)));
    }
    let sent = talk.fit("steady", &[("file_need", 1.0)], 1_000_000);
    assert!(sent.shown(1).contains("stale since the edit at step 2"), "{}", sent.shown(1));
    assert!(!sent.shown(4).contains("stale since"), "{}", sent.shown(4));
    assert!(sent.shown(4).contains("trimtab recall "), "{}", sent.shown(4));
}

/// Three commands at once: what the first two printed is no older than what the third did, and the model has seen none of it.
#[test]
fn results_that_came_together_are_seen_together() {
    let printed = |number: usize| output(60).replace("record of many", &format!("record of part {number}"));
    let texts = [printed(1), printed(2), printed(3)];
    let calls: Vec<(&str, serde_json::Value, &str)> = (1..)
        .zip(&texts)
        .map(|(number, text)| ("bash", json!({"command": format!("./part {number}")}), text.as_str()))
        .collect();
    let talk = Talk::new().calls_together(&calls);
    assert!(talk.fit("steady", &[], ROOM).fitted.plan.keeps_all());
    let talk = talk.runs("./last", &printed(4));
    assert_eq!(talk.whole("steady", &[], ROOM), [4]);
    // Where there is no room, what was seen goes first.
    let talk = Talk::new().runs("./first", &printed(4)).calls_together(&calls);
    let uncapped = [("largest_output", 0.0)];
    assert_eq!(talk.whole("steady", &uncapped, talk.tokens() * 100 / 110), [2, 3, 4]);
}

/// A report that repeats lines of a visible file is sent without them, and is no younger for that.
#[test]
fn what_is_left_of_a_trimmed_result_goes_when_the_whole_would() {
    let file = source(1, 60);
    let repeated: String = file.lines().skip(10).take(30).map(|line| format!("{line}\n")).collect();
    let report = repeated + &output(60).replace("imported", "left out");
    // A request that a cache takes however much of it is hidden.
    let talk = Talk::new().says("user", &"Look at all of it. ".repeat(800));
    let talk = talk.reads("a.py", &file).runs("./report", &report);
    let lines = [("birth_lines", 1.0)];
    let sent = talk.fit("steady", &lines, ROOM);
    assert_eq!(sent.shown(2).matches("left out").count(), 60, "{}", sent.shown(2));
    assert!(!sent.shown(2).contains("value_15"), "{}", sent.shown(2));
    let sent = talk.runs("./more", &output(60)).fit("steady", &lines, ROOM);
    assert_eq!(sent.shown(1), file);
    assert!(sent.shown(2).matches("left out").count() < 3, "its last line at most: {}", sent.shown(2));
}

/// A file is as young as the report that repeats its lines, so that report is not hidden from under it.
#[test]
fn a_trimmed_result_stays_where_it_keeps_a_file_young_and_fitting_twice_changes_nothing() {
    let file = source(1, 60);
    let repeated: String = file.lines().skip(10).take(30).map(|line| format!("{line}\n")).collect();
    let report = repeated + &output(60).replace("imported", "left out");
    let runs = |mut talk: Talk, numbers: std::ops::Range<usize>| {
        for number in numbers {
            let text = output(20).replace("imported", &format!("{number} times imported"));
            talk = talk.runs(&format!("./more {number}"), &text);
        }
        talk
    };
    let talk = Talk::new().says("user", &"Look at all of it. ".repeat(800)).reads("a.py", &file);
    let talk = runs(runs(talk, 0..8).runs("./report", &report), 8..16);
    let steps = r#"about = "A test."
[[step]]
when = "birth"
do = "seen"

[[step]]
when = "pays"
select = { shows = ["other"], results_after = 1 }
do = "names"

[[step]]
when = "pays"
select = { shows = ["file"], results_after = 15 }
do = "names"
"#;
    let policy = || Policy::from_toml("test", steps, &[]).expect("a policy");
    let sent = talk.fit_by(policy(), ROOM);
    assert_eq!(sent.shown(1), file, "old by itself, but pointed at eight results ago");
    assert_eq!(sent.shown(10).matches("left out").count(), 60, "{}", sent.shown(10));
    let settings =
        Settings::new(policy()).with_budget(Tokens(ROOM)).with_format(Format::Chat).with_cold_cache();
    let again = fit(sent.fitted.request.clone(), &Memory::default(), &settings, Millis(0)).expect("a fit");
    assert!(again.plan.keeps_all(), "fitting twice");
}

/// A report that the model has not seen repeats lines of an older one, which is old enough to go.
#[test]
fn what_a_result_sent_in_part_points_at_stays_in_sight() {
    let first = output(60);
    let repeated: String = first.lines().take(30).map(|line| format!("{line}\n")).collect();
    let report = repeated + &output(60).replace("imported", "left out");
    let other = output(60).replace("imported", "counted");
    let talk = Talk::new().says("user", &"Look at all of it. ".repeat(800)).runs("./all", &first);
    let calls = [
        ("bash", json!({"command": "./report"}), report.as_str()),
        ("bash", json!({"command": "./count"}), other.as_str()),
    ];
    let sent = talk.calls_together(&calls).fit("steady", &[("birth_lines", 1.0)], ROOM);
    assert_eq!(sent.shown(1), first);
    assert!(sent.shown(2).len() < report.len() && sent.shown(2).matches("left out").count() == 60);
}
