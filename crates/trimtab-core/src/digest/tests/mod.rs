//! What every digest in the list promises, over texts made up by the hundred; the savings of the seed documents; their examples;
//! the reference page.

mod examples;
mod page;
mod relevant;
mod savings;
mod texts;
mod totals;

pub(crate) use page::check_file;

use proptest::{prelude::ProptestConfig, test_runner::TestRunner};

use super::errors::is_error_line;
use super::{DIGESTS, Digest, DigestText, Piece, TextContext, choose_digest, errors};
use crate::{
    count::{Counter, Tokenizer, Vocabulary},
    digest::query_terms,
    facts::{ContentKind, Subject, SubjectLines},
    history::readable_text,
    notes::{holds_note, is_note},
    policy::NoteStyle,
    recall::handle_of,
    render::{NoteContext, RecallHint, ShownFile, USUAL_RECALL, render, shorten},
    verdict::Reason,
};

/// Shortens a text as an edge would; the only test code that calls the stages.
fn shortened(text: &str, about: TextContext<'_>, digest: &Digest) -> Option<String> {
    let pieces = (digest.shorten)(&DigestText::new(&readable_text(text), about))?;
    let handle = handle_of(text.as_bytes());
    shorten(text, &pieces, &context(about.tool, &subject(about), &handle), &tokens)
}

/// Shortens a text by the digest that is chosen for it.
fn chosen(text: &str, about: TextContext<'_>) -> (&'static str, String) {
    let digest = choose_digest(&DigestText::new(&readable_text(text), about));
    (digest.name, shortened(text, about, digest).unwrap_or_else(|| text.to_owned()))
}

fn subject(about: TextContext<'_>) -> Subject {
    match (about.path, about.command) {
        (Some(path), _) => Subject::File { path: path.into(), lines: SubjectLines::All },
        (None, Some(command)) => Subject::Command(command.into()),
        (None, None) => Subject::Nothing,
    }
}

fn context<'a>(tool: Option<&'a str>, subject: &'a Subject, handle: &'a str) -> NoteContext<'a> {
    NoteContext {
        tool,
        subject,
        kind: None,
        file: ShownFile { last_access: 7, ..ShownFile::default() },
        step: 7,
        tokens: None,
        reason: &Reason::TooOld,
        handle,
        style: NoteStyle::Normal,
        recall: &USUAL_RECALL,
    }
}

fn tokens(text: &str) -> u64 {
    Counter::new(Tokenizer::Exact(Vocabulary::O200k)).count_text(text).0
}

/// Holds a digest to its promises for one text.
fn check(digest: &Digest, text: &str, about: TextContext<'_>) {
    let elsewhere = RecallHint::Command("'/opt/my tools/trimtab' recall --store /var/kept.db".into());
    for recall in [&USUAL_RECALL, &elsewhere, &RecallHint::Nothing] {
        check_with(digest, text, about, recall);
    }
}

fn check_with(digest: &Digest, text: &str, about: TextContext<'_>, recall: &RecallHint) {
    let said = readable_text(text);
    let lines = DigestText::new(&said, about);
    let pieces = (digest.shorten)(&lines);
    assert_eq!(pieces, (digest.shorten)(&lines), "{}: not deterministic", digest.name);
    let Some(pieces) = pieces else { return };
    let handle = handle_of(text.as_bytes());
    let context = NoteContext { recall, ..context(None, &Subject::Nothing, &handle) };
    let rendered = render(text, &pieces, &context);
    check_order(&pieces, lines.len());
    let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    // What has to do with no task is shortened by its kind.
    let keeps_json = matches!(digest.name, "json" | "relevant");
    if said != text || (keeps_json && is_json(text)) {
        check_json(text, &rendered);
        if said != text {
            check_errors(digest.name, &lines, &all_strings(&rendered));
        }
    } else {
        check_lines(digest.name, text, &rendered);
        check_errors(digest.name, &lines, &rendered);
    }
    // Bytes stand for tokens here: counting them exactly is the savings' test.
    let count = |text: &str| u64::try_from(text.len()).expect("a length");
    let Some(short) = shorten(text, &pieces, &context, &count) else { return };
    assert_eq!(short, rendered);
    assert!(short.len() < text.len(), "{}: grew", digest.name);
    assert!(holds_note(&short), "{}: no note in {short}", digest.name);
    for again in DIGESTS {
        let pieces = (again.shorten)(&DigestText::new(&readable_text(&short), TextContext::default()))
            .unwrap_or_default();
        assert_eq!(shorten(&short, &pieces, &context, &count), None, "{} after {}", again.name, digest.name);
    }
}

fn check_order(pieces: &[Piece], lines: usize) {
    let mut at = 0;
    for piece in pieces {
        let (start, end) = match piece {
            Piece::Lines(range) => (range.start, range.end),
            Piece::Cut { line, .. } => (*line, line + 1),
            Piece::Elements(_) | Piece::Note(_) => continue,
        };
        assert!(at <= start && start < end && end <= lines, "{pieces:?}");
        at = end;
    }
}

/// Every line shown is a note, or a line of the original after the one shown before.
fn check_lines(name: &str, text: &str, rendered: &str) {
    if let Some(line) = stranger(text, rendered) {
        panic!("{name}: {line:?} is no line of {text:?} in its place\n{rendered}");
    }
}

/// Returns the first line shown that is neither a note nor a line of the original in its place.
fn stranger<'a>(text: &str, rendered: &'a str) -> Option<&'a str> {
    let mut originals = text.lines();
    rendered.lines().filter(|line| !is_note(line)).find(|line| {
        let same = |original: &str| match line.split_once("[… ").filter(|_| original != *line) {
            None => original == *line,
            Some((head, rest)) => {
                let tail = rest.split_once(" cut …]").map_or("?", |(_, tail)| tail);
                original.chars().count() > 500 && original.starts_with(head) && original.ends_with(tail)
            }
        };
        !originals.any(same)
    })
}

fn check_errors(name: &str, text: &DigestText<'_>, rendered: &str) {
    if name == "clear" {
        return;
    }
    for error in errors::surviving_errors(text) {
        let line = text.line(error);
        let shown = if line.chars().count() > 500 { &line[..line.floor_char_boundary(200)] } else { line };
        let progress = line.rsplit('\r').next().unwrap_or_default();
        assert!(
            rendered.contains(shown) || (line.len() > 500 && rendered.contains(progress)),
            "{name}: lost {line:?} in\n{rendered}"
        );
    }
}

/// Returns what the strings of a JSON text say, one after the other.
fn all_strings(json: &str) -> String {
    fn collect(value: &serde_json::Value, into: &mut String) {
        match value {
            serde_json::Value::String(text) => *into += &format!("{text}\n"),
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            serde_json::Value::Object(members) => members.values().for_each(|member| collect(member, into)),
            _ => {}
        }
    }
    let mut all = String::new();
    collect(&serde_json::from_str(json).expect("JSON"), &mut all);
    all
}

/// The shortened value is JSON, and all of it that is no note stands in the original.
fn check_json(text: &str, rendered: &str) {
    use serde_json::Value;
    fn part_of(short: &Value, long: &Value) -> bool {
        match (short, long) {
            (Value::Array(short), Value::Array(long)) => {
                let of_same_length = short.len() == long.len();
                let in_place =
                    of_same_length && short.iter().zip(long).all(|(short, long)| part_of(short, long));
                let mut long = long.iter();
                let mut shown = short.iter().filter(|item| !is_a_note(item));
                in_place || shown.all(|item| long.any(|other| part_of(item, other)))
            }
            (Value::Object(short), Value::Object(long)) => short
                .iter()
                .filter(|(key, _)| *key != "[trimtab]")
                .all(|(key, value)| long.get(key).is_some_and(|other| part_of(value, other))),
            (Value::String(short), Value::String(long)) => short == long || stranger(long, short).is_none(),
            (short, long) => short == long,
        }
    }
    fn is_a_note(value: &Value) -> bool {
        value.as_str().is_some_and(is_note)
    }
    let short: Value = serde_json::from_str(rendered).unwrap_or_else(|error| panic!("{error} in {rendered}"));
    let long: Value = serde_json::from_str(text).expect("JSON");
    assert!(part_of(&short, &long), "{rendered}\nof {text}");
}

#[test]
fn every_digest_keeps_its_promises_over_made_up_texts() {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let terms = query_terms("Why does the worker lose items? See main.rs, compute and `found`.");
    TestRunner::new(config)
        .run(&texts::text(), |text| {
            DIGESTS.iter().for_each(|digest| check(digest, &text, TextContext::default()));
            let relevant = super::find_digest("relevant").expect("a digest");
            check(relevant, &text, TextContext { terms: &terms, ..TextContext::default() });
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    println!("digests: {cases} cases for each of {}", DIGESTS.len());
}

#[test]
fn names_are_unique_and_every_digest_can_be_chosen_by_rules() {
    let mut names: Vec<&str> = DIGESTS.iter().map(|digest| digest.name).collect();
    assert!(
        DIGESTS.iter().all(|digest| super::find_digest(digest.name).is_some() && digest.about.ends_with('.'))
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), DIGESTS.len());
}

#[test]
fn a_log_of_ten_thousand_errors_still_shrinks() {
    let text: String = (0..10_000).map(|n| format!("error: number {n} is wrong\n")).collect();
    for digest in DIGESTS.iter().filter(|digest| digest.name != "repeats" && digest.name != "middle-out") {
        let short =
            shortened(&text, TextContext::default(), digest).unwrap_or_else(|| panic!("{}", digest.name));
        assert!(short.len() < text.len() / 20, "{}: {} bytes", digest.name, short.len());
        let errors = short.lines().filter(|line| is_error_line(line)).count();
        assert!(errors >= 25 || digest.name == "clear", "{}: {errors}", digest.name);
    }
}

#[test]
fn what_is_said_once_in_a_long_line_stays_where_repetitions_are_folded() {
    let digest = super::find_digest("repeats").expect("a digest");
    let long = format!("{{\"description\": \"{}\"}}\n", "see the part of definePromptTemplate; ".repeat(30));
    let waiting = "waiting for the server to come up\n".repeat(20);
    let given = |text: &str| shortened(text, TextContext::default(), digest);
    assert!(given(&long).is_none(), "nothing repeats");
    let folded = given(&format!("{long}{waiting}")).expect("it repeats");
    assert!(folded.contains(long.trim_end()), "{folded}");
    let progress = format!("{}100%\n", "10%\r".repeat(300));
    assert!(given(&progress).is_some_and(|last| last.contains("100%") && last.len() < 200));
}

#[test]
fn repeated_lines_and_blocks_fold_to_one() {
    let digest = super::find_digest("repeats").expect("a digest");
    let text = "start\n".to_owned()
        + &"waiting for the server to come up\n".repeat(40)
        + &"ping the host\npong from host\n".repeat(20)
        + "end\n";
    let short = shortened(&text, TextContext::default(), digest).expect("shorter");
    let shown: Vec<&str> = short.lines().collect();
    assert_eq!(
        shown[..6],
        [
            "start",
            "waiting for the server to come up",
            "[… the line above 40 times …]",
            "ping the host",
            "pong from host",
            "[… the 2 lines above 20 times …]",
        ]
    );
    assert_eq!(shown[6], "end");
}

#[test]
fn three_repetitions_are_left_alone() {
    let digest = super::find_digest("repeats").expect("a digest");
    let text = "a line that is long enough to be worth a note of its own\n".repeat(3);
    assert_eq!((digest.shorten)(&DigestText::new(&text, TextContext::default())), None);
}

#[test]
fn progress_and_colours_are_no_content() {
    let digest = super::find_digest("repeats").expect("a digest");
    let progress: String =
        (0..=100).map(|n| format!("downloading {n}%\r")).collect::<String>() + "downloaded 12 MB\n";
    let text = format!(
        "{progress}{}",
        "\u{1b}[32mok\u{1b}[0m this went well, next\nok this went well, next\n".repeat(6)
    );
    let short = shortened(&text, TextContext::default(), digest).expect("shorter");
    assert!(short.starts_with("[… 1,607 characters cut …]downloaded 12 MB\n"), "{short}");
    assert!(short.contains("the line above 12 times"), "{short}");
}

#[test]
fn content_is_told_by_names_and_by_its_look() {
    let by = |content, tool, command, path, text: &str| {
        let about = TextContext { content, tool, command, path, ..TextContext::default() };
        choose_digest(&DigestText::new(text, about)).name
    };
    let unknown = ContentKind::Empty;
    assert_eq!(by(ContentKind::Hits, None, None, None, ""), "search");
    assert_eq!(by(unknown, Some("list_files"), None, None, ""), "listing");
    assert_eq!(by(unknown, Some("get_repo_map"), None, None, ""), "repo-map");
    assert_eq!(by(unknown, Some("grep_code"), None, None, ""), "search");
    assert_eq!(by(unknown, Some("run_shell"), Some("cd /x && git status"), None, ""), "git-status");
    assert_eq!(by(unknown, Some("bash"), Some("cargo test -p x"), None, ""), "log");
    assert_eq!(by(unknown, Some("bash"), Some("./do-it"), None, "1\n2\n3\n"), "shell");
    assert_eq!(by(ContentKind::Log, None, Some("FOO=1 rg -n x src"), None, ""), "search");
    assert_eq!(by(unknown, None, None, Some("a.rs"), "fn main() {}\n"), "file");
    assert_eq!(by(unknown, None, None, None, "[{\"a\": 1}, {\"a\": 2}]"), "json");
    assert_eq!(by(unknown, None, None, None, "diff --git a/x b/x\n--- a/x\n+++ b/x\n"), "diff");
    assert_eq!(by(unknown, None, None, None, "src\n├── a.rs\n└── b.rs\n"), "tree");
    assert_eq!(by(unknown, None, None, None, "a.rs:1:x\na.rs:2:x\nb.rs:3:x\nb.rs:9:x\n"), "search");
    assert_eq!(by(unknown, None, None, None, "src/a.rs\nsrc/b.rs\nsrc/c.rs\nREADME.md\n"), "listing");
    assert_eq!(
        by(unknown, None, None, None, "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"),
        "trace"
    );
    assert_eq!(by(unknown, None, None, None, "data:image/png;base64,iVBORw0KGgo"), "media");
    assert_eq!(by(unknown, None, None, None, "Some words about something.\n"), "other");
}
