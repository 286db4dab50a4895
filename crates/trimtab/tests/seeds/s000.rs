//! Retention of tool results: first, last and sampled reads; edits with intent; the ends of long outputs.

use serde_json::json;
use trimtab::{changelog, files};

use crate::talk::{ROOM, Talk, output, source};

fn reads(count: usize) -> Talk {
    (0..count).fold(Talk::new(), |talk, version| talk.reads("config.py", &source(version, 40)))
}

/// The table of reads: one or two whole; three to five the first and the last; six or more also up to three between.
/// The document's code keeps all of up to five, against its table and its own example of six: the table is followed.
#[test]
fn reads_of_one_file_are_kept_as_the_table_says() {
    let kept = |count: usize| reads(count).whole("retention", &[], ROOM);
    assert_eq!(kept(1), [1]);
    assert_eq!(kept(2), [1, 2]);
    assert_eq!(kept(3), [1, 3]);
    assert_eq!(kept(5), [1, 5]);
    assert_eq!(kept(6), [1, 2, 3, 4, 6]);
    assert_eq!(kept(12).len(), 5, "first, last and three samples");
    assert_eq!(reads(12).whole("retention", &[("max_file_reads", 2.0)], ROOM), [1, 12]);
}

/// A pointer stands under the call's own id, says which file it was, and where the content is to be seen.
#[test]
fn a_pointer_names_the_file_and_the_reads_that_are_shown() {
    let note = reads(3).fit("retention", &[], ROOM).shown(2);
    assert!(note.contains("config.py") && note.contains("read often, shown at steps 1 and 3"), "{note}");
    assert!(!note.contains('\n') && note.contains("; trimtab recall "), "{note}");
}

/// The document's pointer says "see earlier read" of any read of the same name; parts of a file are not each other.
#[test]
fn reads_of_other_lines_and_of_other_files_are_not_re_reads() {
    let talk = (0..3).fold(Talk::new(), |talk, part| {
        let arguments = json!({"path": "config.py", "offset": part * 100, "limit": 100});
        talk.calls("read_file", arguments, &source(part, 40))
            .reads(&format!("other_{part}/config.py"), &source(part, 40))
    });
    assert_eq!(talk.whole("retention", &[], ROOM), [1, 2, 3, 4, 5, 6]);
}

/// The document's code collects reads and appends them at the end; messages keep their order here.
#[test]
fn the_order_of_messages_stays() {
    let talk = reads(6).runs("make", &output(10)).reads("config.py", &source(9, 40));
    let roles = |request: &serde_json::Value| -> Vec<String> {
        request["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|message| message["role"].to_string() + &message["tool_call_id"].to_string())
            .collect()
    };
    assert_eq!(roles(&talk.request()), roles(&talk.fit("retention", &[], ROOM).request));
}

fn edits(count: usize) -> Talk {
    (0..count).fold(Talk::new(), |talk, number| {
        let arguments = json!({"file_path": "core/agent.py", "old_str": source(number, 20), "new_str": source(number + 1, 20),
            "intent": format!("Increase tool retention number {number}")});
        talk.calls("edit_file", arguments, &format!("Edited core/agent.py:\n{}", source(number, 30)))
    })
}

/// Edits are always kept, with their intent, however old: others go for them.
#[test]
fn edits_stay_whole_with_their_intent_while_others_go() {
    let talk = (0..6).fold(edits(3), |talk, number| talk.runs(&format!("make {number}"), &output(100)));
    let budget = talk.tokens() / 2;
    let sent = talk.fit("retention", &[], budget);
    for number in 1..=3 {
        assert_eq!(sent.shown(number), format!("Edited core/agent.py:\n{}", source(number - 1, 30)));
        assert!(sent.says(&format!("Increase tool retention number {}", number - 1)));
    }
    assert!(sent.fitted.plan.after().0 <= budget);
}

/// "Always keep" is followed to the end: no edit ever goes, however tight the budget. What was changed and why stands in the
/// call, which stays as it is; what the tool said of it is shortened last of all, and then the floor is named. (The document
/// also says that in very long sessions "even diffs could be compressed": of that the long series below is what is done.)
#[test]
fn no_edit_goes_however_tight_the_budget_and_the_floor_says_so() {
    let talk = (0..6).fold(edits(3), |talk, number| talk.runs(&format!("make {number}"), &output(100)));
    let sent = talk.fit("retention", &[], 100);
    let floor = sent.fitted.plan.floor().expect("a floor");
    assert_eq!(floor.tokens, sent.fitted.plan.after());
    for number in 0..3 {
        assert!(sent.says(&format!("Increase tool retention number {number}")));
        assert!(
            sent.says(&json!(source(number, 20)).to_string().replace("\\n", "\\\\n").replace('"', "")),
            "the diff itself"
        );
        assert!(sent.shown(number + 1).contains("trimtab recall "), "what the tool said of it went last");
    }
    assert_eq!(
        (4..9).filter_map(|number| sent.result(number)).count(),
        0,
        "everything else but the latest went"
    );
}

/// The flag that the document's program never reads.
#[test]
fn without_keep_all_edits_edits_are_results_like_others() {
    let talk = edits(8);
    let budget = talk.tokens() / 3;
    assert!(talk.fit("retention", &[], budget).fitted.plan.floor().is_some(), "nothing else can go");
    let sent = talk.fit("retention", &[("keep_all_edits", 0.0)], budget);
    assert!(sent.fitted.plan.floor().is_none() && sent.fitted.plan.after().0 <= budget);
}

/// "[Edits to config.py: 12 changes between turns 10-50]": once the window fills, what the tool said of the changes between
/// the first and the last of a long series becomes a note with the number, the steps and the intent.
#[test]
fn a_long_series_of_edits_is_told_as_changes_between_two_steps_with_intents() {
    let talk = edits(12);
    assert_eq!(talk.whole("retention", &[], ROOM).len(), 12, "while there is room, all are whole");
    let sent = talk.fit("retention", &[], talk.tokens());
    let note = sent.shown(2);
    assert!(note.contains("one of 12 changes between steps 1 and 12"), "{note}");
    assert!(note.contains("intent: \"Increase tool retention number 1\"; "), "{note}");
    let whole = talk.whole("retention", &[], talk.tokens());
    assert!(whole.contains(&1) && whole.contains(&12) && !whole.contains(&2), "{whole:?}");
    let few = edits(5);
    assert_eq!(few.whole("retention", &[], few.tokens()), [1, 2, 3, 4, 5], "a short series is none");
    assert!(!few.whole("retention", &[("max_edits", 3.0)], few.tokens()).contains(&2));
}

/// With arguments allowed to go, the diffs between them go too; the intents stay.
#[test]
fn with_inputs_on_the_diffs_of_a_long_series_go_and_the_intents_stay() {
    let talk = edits(12);
    let sent = talk.fit("retention", &[("inputs", 2.0)], talk.tokens());
    let arguments = |number: usize| {
        let call = &sent.request["messages"][number * 2]["tool_calls"][0]["function"]["arguments"];
        serde_json::from_str::<serde_json::Value>(call.as_str().expect("a text")).expect("JSON")
    };
    let old = arguments(2)["old_str"].as_str().expect("a text").to_owned();
    assert!(old.contains("hidden: one of 12 changes between steps 1 and 12; trimtab recall "), "{old}");
    assert_eq!(arguments(2)["intent"], "Increase tool retention number 1");
    assert_eq!(arguments(12)["old_str"], source(11, 20), "the last is whole");
}

/// Outputs of commands: under 1k whole; up to 10k whole until the budget is exceeded, and then the first to be shortened.
#[test]
fn middling_outputs_are_the_first_to_be_shortened_under_pressure() {
    let small = output(18);
    assert!(small.chars().count() < 1_000);
    let middling = output(100);
    assert!((1_000..10_000).contains(&middling.chars().count()));
    let talk = Talk::new()
        .runs("first", &small)
        .runs("second", &middling)
        .reads("a.py", &source(1, 100))
        .runs("last", "ok");
    assert_eq!(talk.whole("retention", &[], ROOM), [1, 2, 3, 4]);
    assert_eq!(talk.whole("retention", &[], talk.tokens() - 100), [1, 3, 4]);
    assert!(
        !talk.whole("retention", &[("bash_whole", 9_999.0)], talk.tokens() - 100).contains(&3),
        "without it the read goes first"
    );
}

/// Over 10k: the first and last 2k characters and a line with all characters and lines. (The program behind it keeps 5k
/// and 5k and grows an output of 10,001; the document's figures are followed.)
#[test]
fn a_long_output_keeps_two_thousand_characters_at_each_end() {
    let text = output(900);
    let (characters, lines) = (text.chars().count(), text.lines().count());
    let shown = Talk::new().runs("npm test", &text).fit("retention", &[], ROOM).shown(1);
    assert!(shown.chars().count() < 4_600, "{}", shown.chars().count());
    assert!(shown.starts_with(&text[..1_900]));
    let less = Talk::new().runs("npm test", &text).fit("retention", &[("bash_keep", 500.0)], ROOM).shown(1);
    assert!(less.chars().count() < 1_600, "{less}");
    let before_note = shown.rsplit_once("\n[").expect("a note").0;
    assert!(text.trim_end().ends_with(&before_note[before_note.len() - 1_800..]), "{shown}");
    assert!(
        shown.contains(&format!("{lines} lines, {},{:03} chars", characters / 1000, characters % 1000)),
        "{shown}"
    );
}

#[test]
fn the_limit_of_long_outputs_is_ten_thousand_characters_and_can_be_moved() {
    let text = output(1).repeat(400);
    let exact = &text[..10_000];
    assert_eq!(Talk::new().runs("x", exact).whole("retention", &[], ROOM), [1]);
    assert_eq!(Talk::new().runs("x", &text).whole("retention", &[], ROOM), Vec::<usize>::new());
    assert_eq!(Talk::new().runs("x", &text).whole("retention", &[("bash_truncate", 90_000.0)], ROOM), [1]);
}

/// Light tools (ls, focus) are kept while recent: the last five.
#[test]
fn listings_and_focus_keep_their_last_five() {
    let names: String = (0..60).map(|number| format!("src/package/module_{number}.py\n")).collect();
    let talk = (0..8)
        .fold(Talk::new(), |talk, number| talk.calls("ls", json!({"path": format!("dir{number}")}), &names));
    assert_eq!(talk.whole("retention", &[], ROOM), [4, 5, 6, 7, 8]);
    assert_eq!(talk.whole("retention", &[("light_keep_last", 1.0)], ROOM), [8]);
    let talk = (0..7).fold(Talk::new(), |talk, number| {
        talk.calls("focus", json!({"file": format!("{number}.py")}), &source(number, 20))
    });
    assert_eq!(talk.whole("retention", &[], ROOM), [3, 4, 5, 6, 7]);
}

/// The current approach that the document starts from: the last 30 results. Its program keeps all where 0 is asked for.
#[test]
fn the_last_thirty_results_are_kept_and_nought_means_none() {
    let talk =
        (0..35).fold(Talk::new(), |talk, number| talk.reads(&format!("{number}.py"), &source(number, 20)));
    assert_eq!(talk.whole("recent", &[], ROOM), (6..=35).collect::<Vec<_>>());
    assert_eq!(talk.whole("recent", &[("keep_last", 0.0)], ROOM), Vec::<usize>::new());
}

/// Consolidation is wanted from 70 % of the window on.
#[test]
fn a_summary_is_wanted_above_seventy_percent() {
    let talk = reads(2);
    let wanted = |share: f64, set: &[(&str, f64)]| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            clippy::as_conversions,
            reason = "small numbers"
        )]
        let budget = (talk.tokens() as f64 / share) as u64;
        talk.fit("retention", set, budget).fitted.plan.fold_wanted()
    };
    assert!(!wanted(0.69, &[]) && wanted(0.71, &[]));
    assert!(!wanted(0.71, &[("consolidation_budget", 0.8)]));
}

/// Intents make a changelog; a long series is told as a number of changes between two steps, with its reasons.
#[test]
fn intents_become_a_changelog_and_a_series_is_told_as_one() {
    let talk = edits(2);
    let told = changelog(&talk.history(), &talk.facts());
    let rows: Vec<String> = told[0].changes.iter().map(ToString::to_string).collect();
    assert_eq!(told[0].path, "core/agent.py");
    assert_eq!(
        rows,
        ["step 1: Increase tool retention number 0", "step 2: Increase tool retention number 1"]
    );
    let talk = edits(14);
    let told = changelog(&talk.history(), &talk.facts());
    let row = told[0].changes[0].to_string();
    assert!(
        row.starts_with("14 changes between steps 1 and 14: Increase tool retention number 0; "),
        "{row}"
    );
}

/// The state of a file at any step can be asked for.
#[test]
fn a_file_is_known_as_it_was_at_a_step() {
    let talk = Talk::new()
        .calls("write_file", json!({"path": "config.py", "content": "one\n"}), "File written.")
        .calls("write_file", json!({"path": "config.py", "content": "two\n"}), "File written.");
    let history = talk.history();
    let files = files(&history, &talk.facts());
    let text = |step| files.file_state_at("config.py", step).and_then(|state| state.text());
    assert_eq!([text(1).as_deref(), text(2).as_deref()], [Some("one\n"), Some("two\n")]);
}

/// Media: the newest two stay.
#[test]
fn the_newest_two_pictures_stay() {
    let picture = |number: usize| {
        json!({"role": "user", "content": [{"type": "text", "text": format!("See {number}")},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,iVBORw0KGgo{}", "A".repeat(400 + number))}}]})
    };
    let mut request = Talk::new().request();
    let messages = request["messages"].as_array_mut().expect("messages");
    messages.extend(
        (1..=4).flat_map(|number| [picture(number), json!({"role": "assistant", "content": "Seen."})]),
    );
    messages.push(json!({"role": "user", "content": "Go on."}));
    let sent = |keep: f64| {
        let policy = trimtab::Policy::shipped_with("retention", &[("media_keep_last".to_owned(), keep)])
            .expect("a policy");
        let settings = trimtab::Settings::new(policy).with_budget(trimtab::Tokens(ROOM));
        let fitted = trimtab::fit(
            request.to_string().into_bytes(),
            &trimtab::Memory::default(),
            &settings,
            trimtab::Millis(0),
        )
        .expect("a fit");
        String::from_utf8(fitted.request).expect("UTF-8")
    };
    assert_eq!(sent(3.0).matches("image_url\":{").count(), 3);
    let sent = sent(2.0);
    assert_eq!(sent.matches("image_url\":{").count(), 2, "{sent}");
    assert!(sent.contains("See 1") && sent.contains("See 4"), "words stay");
}
