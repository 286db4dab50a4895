//! Retention of tool results: first, last and sampled reads; edits with intent; the ends of long outputs.

use serde_json::json;
use trimtab_core::{files, files::changelog};

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

/// A file that is read ten times, by several spellings of its path, and changed at some steps between. Returns the
/// conversation with what each step did: the text that it showed, or nothing where it changed the file.
fn reads_of_a_changing_file() -> (Talk, Vec<Option<String>>) {
    let mut talk = Talk::new();
    let mut steps: Vec<Option<String>> = Vec::new();
    let mut version = 0;
    for read in 0..10 {
        let path = if read % 3 == 1 { "./config.py" } else { "config.py" };
        talk = talk.reads(path, &source(version, 40));
        steps.push(Some(source(version, 40)));
        if [2, 5, 6].contains(&read) {
            version += 1;
            let edit = json!({"path": "config.py", "old_str": source(version - 1, 40), "new_str": source(version, 40)});
            talk = talk.calls("edit_file", edit, "ok");
            steps.push(None);
        }
    }
    (talk, steps)
}

fn number_behind(note: &str, words: &str) -> Option<usize> {
    let (_, rest) = note.split_once(words)?;
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// A note is true when it is written: the file's last access is the file's, and a note that points at another read says
/// whether that is the same and when the file was changed since. The steps alone show here what is true.
#[test]
fn notes_of_a_changing_file_tell_its_last_access_and_what_became_of_the_copy_they_point_at() {
    let (talk, steps) = reads_of_a_changing_file();
    let shown_at = |step: usize| steps[step - 1].as_deref().expect("a read");
    let first_change = |after: usize| (after + 1..=steps.len()).find(|step| steps[step - 1].is_none());
    let mut told = (0, 0, 0);
    let few = [("max_file_reads".to_owned(), 2.0)];
    let identical = "about = \"Hides copies.\"\n[[step]]\nwhen = \"always\"\nselect = { redundant = [\"identical\"] }\ndo = \"clear\"\n";
    for policy in [
        trimtab_core::Policy::find_shipped("retention"),
        trimtab_core::Policy::shipped_with("retention", &few),
        trimtab_core::Policy::from_toml("copies", identical, &[]),
    ] {
        let sent = talk.fit_by(policy.expect("a policy"), ROOM);
        let whole: Vec<usize> =
            (1..=steps.len()).filter(|step| !sent.shown(*step).starts_with('[')).collect();
        let reads = (1..=steps.len()).filter(|step| steps[step - 1].is_some());
        for step in reads.filter(|step| !whole.contains(step)) {
            let note = sent.shown(step);
            if let Some(to) = number_behind(&note, "[Same as at step ") {
                assert_eq!((shown_at(to), first_change(to)), (shown_at(step), None), "{note}");
                told.0 += 1;
            } else if let Some(to) = number_behind(&note, "[Shown at step ") {
                assert_eq!(number_behind(&note, ", changed since at step "), first_change(to), "{note}");
                assert!(whole.contains(&to), "{note}");
                told.1 += 1;
            } else {
                assert_eq!(number_behind(&note, "last accessed at step "), Some(steps.len()), "{note}");
                assert!(note.contains("read often, shown at steps 1 and 13"), "{note}");
                assert_eq!(number_behind(&note, ", changed since at step "), first_change(step), "{note}");
                let same = number_behind(&note, ", the same as at step ");
                let copies = [13, 1].into_iter().find(|copy| shown_at(*copy) == shown_at(step));
                assert_eq!(same, copies, "{note}");
                told.2 += 1;
            }
        }
    }
    assert!(told.0 > 1 && told.1 > 1 && told.2 > 8, "{told:?}");
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

/// "Always keep" is followed to the end: no edit ever goes, however tight the budget. The
/// call says what was changed and why, and is unchanged; the tool's answer is shortened last of all, and then the floor is named. (The document
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

/// A file that is written and then changed again and again, a line at a time, and what is left of it at the end.
fn written_and_edited(edits: usize, result_lines: usize) -> (Talk, String, String) {
    let first: String = (0..60).map(|line| format!("setting_{line} = 0\n")).collect();
    let written = json!({"path": "config.py", "content": first});
    let mut talk = Talk::new().calls("write_file", written, "File written.");
    let mut now = first.clone();
    for number in 0..edits {
        // Every second edit changes the line that the one before it changed.
        let line = number / 2 * 7 % 60;
        let old = now.lines().nth(line).expect("a line").to_owned();
        let new = format!("setting_{line} = {}", number + 1);
        let intent = match number % 4 {
            3 => "Tune the defaults again".to_owned(),
            _ => format!("Raise setting number {number}"),
        };
        now = now.replacen(&format!("{old}\n"), &format!("{new}\n"), 1);
        let arguments = json!({"path": "config.py", "old_str": old, "new_str": new, "intent": intent});
        talk = talk.calls(
            "edit_file",
            arguments,
            &format!("Edited config.py:\n{}", source(number, result_lines)),
        );
    }
    (talk, first, now)
}

/// Returns the lines that a block quotes after a sign of its diff.
fn quoted(block: &str, sign: &str) -> Vec<String> {
    let diff = block.lines().filter_map(|line| line.strip_prefix("| "));
    diff.filter_map(|line| line.strip_prefix(sign)).map(str::to_owned).collect()
}

/// "[Edits to config.py: 12 changes between turns 10-50]": once the window fills, what the tool said of a long series becomes
/// one block with the number, the steps, the intents and the net diff; the other results of the series point at it.
#[test]
fn a_long_series_of_edits_is_told_in_one_block_with_intents_and_the_net_diff() {
    let (talk, before, after) = written_and_edited(12, 60);
    assert_eq!(talk.whole("retention", &[], ROOM).len(), 13, "while there is room, all are whole");
    let budget = talk.tokens() * 2 / 3;
    let sent = talk.fit("retention", &[], budget);
    let block = sent.shown(2);
    let closing = block.lines().last().expect("a note");
    let begins = "[13 changes of config.py between steps 1 and 13; net change since it was written at step 1 +6 -6 lines; ";
    assert!(closing.starts_with(begins), "{block}");
    assert!(closing.contains("intents: \"Raise setting number 0\", \"Raise setting number 1\", "), "{block}");
    assert!(closing.contains("\"Tune the defaults again\" (3 times), "), "{block}");
    assert!(closing.contains(", +2 more in their calls; trimtab recall "), "{block}");
    let gone: Vec<&str> = before.lines().filter(|line| !after.lines().any(|other| other == *line)).collect();
    let come: Vec<&str> = after.lines().filter(|line| !before.lines().any(|other| other == *line)).collect();
    assert_eq!((quoted(&block, "-"), quoted(&block, "+")), (owned(&gone), owned(&come)), "{block}");
    let pointers: Vec<usize> = (3..=12).filter(|number| sent.shown(*number).starts_with('[')).collect();
    assert!(pointers.len() >= 5, "{pointers:?}");
    for number in pointers {
        let note = sent.shown(number);
        assert!(note.starts_with("[one of the 13 changes listed at step 2; trimtab recall "), "{note}");
        assert!(note.len() < 80, "{note}");
    }
    assert!(talk.whole("retention", &[], budget).contains(&13), "the latest is whole");
    let few = edits(5);
    assert_eq!(few.whole("retention", &[], few.tokens()), [1, 2, 3, 4, 5], "a short series is none");
    assert!(!few.whole("retention", &[("max_edits", 3.0)], few.tokens()).contains(&2));
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Where the file was never shown, its lines are not guessed: what the calls add and remove is counted.
#[test]
fn a_series_in_a_file_that_is_not_known_tells_counts_and_no_diff() {
    let sent = edits(12).fit("retention", &[], edits(12).tokens());
    let block = sent.shown(2);
    assert!(
        block.starts_with("[12 changes of core/agent.py between steps 1 and 12; in all +240 -240 lines; "),
        "{block}"
    );
    assert!(!block.contains('\n') && block.contains("+4 more in their calls"), "{block}");
}

/// A note about a series is repeated: if the series goes on, another note lists what came since, once that is long itself.
#[test]
fn a_series_that_goes_on_is_told_in_a_second_block() {
    let fit = |talk: &Talk, warm: &mut trimtab_core::WarmState, memory: &trimtab_core::Memory, share: f64| {
        let policy = trimtab_core::Policy::find_shipped("retention").expect("a policy");
        let budget = trimtab_core::Tokens(talk.tokens()).scale(share);
        let settings =
            trimtab_core::Settings::new(policy).with_budget(budget).with_format(trimtab_core::Format::Chat);
        let request = talk.request().to_string().into_bytes();
        trimtab_core::session::fit_warm(request, warm, memory, &settings, trimtab_core::Millis(0))
            .expect("a fit")
    };
    let mut memory = trimtab_core::Memory::default();
    let mut warm = trimtab_core::WarmState::default();
    let mut earlier: Vec<(usize, String)> = Vec::new();
    let mut blocks = Vec::new();
    for count in [9, 10, 12, 13, 14, 19, 22] {
        let (talk, ..) = written_and_edited(count, 60);
        let fitted = fit(&talk, &mut trimtab_core::WarmState::default(), &memory, 0.5);
        assert_eq!(fitted.request, fit(&talk, &mut warm, &memory, 0.5).request, "warm as cold");
        memory.remember_sent(&fitted.plan, trimtab_core::Millis(0));
        let again = fit(&talk, &mut warm, &memory, 0.5);
        assert_eq!(fitted.request, again.request, "fitting twice changes nothing");
        let request: serde_json::Value = serde_json::from_slice(&fitted.request).expect("JSON");
        let results: Vec<(usize, String)> = (1..=count + 1)
            .map(|number| (number, crate::talk::result_in(&request, number).expect("a result")))
            .collect();
        for (number, text) in &earlier {
            assert_eq!(results.iter().find(|(other, _)| other == number).map(|(_, text)| text), Some(text));
        }
        let notes =
            results.iter().filter(|(_, text)| text.ends_with(']') && text.contains("trimtab recall "));
        earlier = notes.cloned().collect();
        blocks =
            earlier.iter().filter(|(_, text)| text.contains(" changes of config.py ")).cloned().collect();
    }
    let heads: Vec<String> = blocks
        .iter()
        .map(|(number, text)| {
            let closing = text.lines().last().expect("a note");
            format!("{number}: {}", closing.split("; ").next().expect("a clause"))
        })
        .collect();
    assert_eq!(
        heads,
        [
            "2: [10 changes of config.py between steps 1 and 10",
            "11: [10 changes of config.py between steps 11 and 20"
        ],
        "{blocks:?}"
    );
    let told = earlier.iter().find(|(number, _)| *number == 10).expect("the tenth is hidden by now");
    assert!(told.1.starts_with("[one of the 10 changes listed at step 2; "), "{told:?}");
}

/// With arguments allowed to go, the diffs between them go too and point at the block; the intents stay.
#[test]
fn with_inputs_on_the_diffs_of_a_long_series_go_and_the_intents_stay() {
    let talk = edits(12);
    let sent = talk.fit("retention", &[("inputs", 2.0)], talk.tokens() * 2 / 3);
    let arguments = |number: usize| {
        let call = &sent.request["messages"][number * 2]["tool_calls"][0]["function"]["arguments"];
        serde_json::from_str::<serde_json::Value>(call.as_str().expect("a text")).expect("JSON")
    };
    let old = arguments(3)["old_str"].as_str().expect("a text").to_owned();
    assert!(old.contains("hidden: one of the 12 changes listed at step 2; trimtab recall "), "{old}");
    assert_eq!(arguments(3)["intent"], "Increase tool retention number 2");
    assert_eq!(arguments(12)["old_str"], source(11, 20), "the last is whole");
}

/// Most tools answer an edit with a receipt that is shorter than any note: then the first call tells the series.
#[test]
fn with_inputs_on_and_receipts_alone_an_argument_tells_the_series() {
    let talk = (0..12).fold(Talk::new(), |talk, number| {
        let arguments = json!({"file_path": "core/agent.py", "old_str": source(number, 20),
            "new_str": source(number + 1, 20), "intent": format!("Increase tool retention number {number}")});
        talk.calls("edit_file", arguments, "Done.")
    });
    let sent = talk.fit("retention", &[("inputs", 2.0)], talk.tokens());
    let arguments = |number: usize| {
        let call = &sent.request["messages"][number * 2]["tool_calls"][0]["function"]["arguments"];
        serde_json::from_str::<serde_json::Value>(call.as_str().expect("a text")).expect("JSON")
    };
    let told = arguments(2)["old_str"].as_str().expect("a text").to_owned();
    assert!(told.starts_with("[12 changes of core/agent.py between steps 1 and 12; in all +"), "{told}");
    let other = arguments(5)["old_str"].as_str().expect("a text").to_owned();
    assert!(other.contains("hidden: one of the 12 changes listed at step 2; trimtab recall "), "{other}");
    assert_eq!(sent.shown(5), "Done.");
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

/// Over 10k: the first and last 2k characters and a line with all characters and lines. (The program that it describes keeps 5k
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

/// The current approach that the document starts from: the last 30 results. Its program keeps all where 0 is asked for;
/// here none is kept but what the model has not seen.
#[test]
fn the_last_thirty_results_are_kept_and_nought_means_none() {
    let talk =
        (0..35).fold(Talk::new(), |talk, number| talk.reads(&format!("{number}.py"), &source(number, 20)));
    assert_eq!(talk.whole("recent", &[], ROOM), (6..=35).collect::<Vec<_>>());
    assert_eq!(talk.whole("recent", &[("keep_last", 0.0)], ROOM), [35]);
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

/// Intents make a changelog: every one of them, in order, and one that was given again once, with how often.
#[test]
fn intents_become_a_changelog_that_leaves_none_out() {
    let talk = edits(2);
    let told = changelog(&talk.history(), &talk.facts());
    let rows: Vec<String> = told[0].changes.iter().map(ToString::to_string).collect();
    assert_eq!(told[0].path, "core/agent.py");
    assert_eq!(
        rows,
        ["step 1: Increase tool retention number 0", "step 2: Increase tool retention number 1"]
    );
    let told = changelog(&edits(14).history(), &edits(14).facts());
    let rows: Vec<String> = told[0].changes.iter().map(ToString::to_string).collect();
    let all: Vec<String> = (0..14)
        .map(|number| format!("step {}: Increase tool retention number {number}", number + 1))
        .collect();
    assert_eq!(rows, all);
    let (talk, ..) = written_and_edited(12, 1);
    let told = changelog(&talk.history(), &talk.facts());
    let again = told[0].changes.iter().find(|row| row.words == ["Tune the defaults again"]).expect("a row");
    assert_eq!(again.to_string(), "3 changes between steps 5 and 13: Tune the defaults again");
    assert_eq!(told[0].changes.iter().map(|row| row.count).sum::<usize>(), 13);
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
        let policy = trimtab_core::Policy::shipped_with("retention", &[("media_keep_last".to_owned(), keep)])
            .expect("a policy");
        let settings = trimtab_core::Settings::new(policy).with_budget(trimtab_core::Tokens(ROOM));
        let fitted = trimtab_core::fit(
            request.to_string().into_bytes(),
            &trimtab_core::Memory::default(),
            &settings,
            trimtab_core::Millis(0),
        )
        .expect("a fit");
        String::from_utf8(fitted.request).expect("UTF-8")
    };
    assert_eq!(sent(3.0).matches("image_url\":{").count(), 3);
    let sent = sent(2.0);
    assert_eq!(sent.matches("image_url\":{").count(), 2, "{sent}");
    assert!(sent.contains("See 1") && sent.contains("See 4"), "words stay");
}
