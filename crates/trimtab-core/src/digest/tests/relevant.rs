//! The digest that keeps what has to do with the task.

use std::fmt::Write;

use super::{TextContext, shortened};
use crate::digest::{find_digest, query_terms};
use crate::facts::ContentKind;

/// A page of forty parts, each about something different.
pub(super) fn manual() -> String {
    (0..40).fold("The manual\n\n".to_owned(), |mut text, part| {
        let _ = write!(
            text,
            "Part {part} tells of gadget_{part}.\nIt has a lever and a wheel.\nTurn the wheel slowly.\n\n"
        );
        text
    })
}

#[track_caller]
fn check(text: &str, about: TextContext<'_>, task: &str) -> String {
    let terms = query_terms(task);
    let digest = find_digest("relevant").expect("a digest");
    let short = shortened(text, TextContext { terms: &terms, ..about }, digest).expect("shorter");
    assert_eq!(
        short,
        shortened(text, TextContext { terms: &terms, ..about }, digest).expect("shorter"),
        "not the same again"
    );
    short
}

#[test]
fn the_passages_that_speak_of_the_task_stay_whole_and_in_order() {
    let short =
        check(&manual(), TextContext::default(), "How do I repair gadget_31, and is gadget_7 like it?");
    let (seven, thirty_one) =
        (short.find("gadget_7.\nIt has a lever"), short.find("gadget_31.\nIt has a lever"));
    assert!(seven.is_some() && seven < thirty_one, "{short}");
    assert!(!short.contains("gadget_12"), "{short}");
    assert!(short.starts_with("The manual\n"), "{short}");
    assert_eq!(short.matches("[… lines ").count(), 3, "{short}");
}

#[test]
fn error_lines_stay_whatever_the_task_is() {
    let text = manual() + "error: the lever broke\n" + &manual();
    let short = check(&text, TextContext::default(), "gadget_3");
    assert!(short.contains("error: the lever broke"), "{short}");
}

#[test]
fn at_most_a_quarter_stays_of_what_is_all_about_the_task() {
    let text: String = (0..400).map(|n| format!("gadget number {n} is a gadget like others\n")).collect();
    let short = check(&text, TextContext::default(), "tell me of every gadget");
    assert!(short.len() * 100 < text.len() * 30, "{} of {}", short.len(), text.len());
}

#[test]
fn what_shares_no_word_with_the_task_is_shortened_by_its_kind() {
    let log: String = (0..200).map(|n| format!("test module::case_{n} ... ok\n")).collect();
    let log = log + "test result: ok. 200 passed; 0 failed; 0 ignored\n";
    let about = TextContext { content: ContentKind::BuildLog, ..TextContext::default() };
    for task in ["paint the house", ""] {
        let short = check(&log, about, task);
        assert_eq!(short, shortened(&log, about, find_digest("log").expect("a digest")).expect("shorter"));
    }
}
