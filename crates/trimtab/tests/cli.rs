//! The command line as its users meet it: good input, wrong input, closed pipes.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{io::Read, process::Stdio};

use common::{command, files_below, root, trimtab, trimtab_reading};

#[test]
fn show_prints_one_line_per_block_of_every_recording_shipped() {
    for file in files_below("fixtures/recordings") {
        let name = file.to_string_lossy().into_owned();
        let shown = trimtab(&["show", &name]);
        if shown.code != Some(0) {
            // Cline keeps files beside the conversation; the error says which one to take.
            assert!(name.contains("/cline/"), "{name}: {}", shown.words);
            continue;
        }
        let json: serde_json::Value =
            serde_json::from_slice(&trimtab(&["show", &name, "--json"]).out).expect(&name);
        let blocks = json["blocks"].as_array().expect("blocks").len();
        let text = shown.text();
        let lines = text.lines().skip_while(|line| !line.trim_start().starts_with('#')).skip(1).count();
        assert_eq!(lines, blocks, "{name}");
        assert!(json["tokens"].as_u64() > Some(0), "{name}");
    }
}

#[test]
fn fit_by_policy_none_gives_every_request_back_byte_for_byte() {
    let mut requests = 0;
    for file in files_below("fixtures/requests") {
        let bytes = std::fs::read(&file).expect("a file");
        let name = file.to_string_lossy().into_owned();
        let fitted = trimtab(&["fit", "--policy", "none", &name]);
        assert_eq!(fitted.code, Some(0), "{name}: {}", fitted.words);
        assert_eq!(fitted.out, bytes, "{name}");
        let piped = trimtab_reading(&["fit", "--policy", "none", "-"], &bytes);
        assert_eq!(piped.out, bytes, "{name} on standard input");
        requests += 1;
    }
    assert!(requests > 30);
}

#[test]
fn a_step_of_a_recording_is_the_request_that_was_sent_then() {
    let recording = "fixtures/recordings/codex.jsonl";
    let early = trimtab(&["fit", "--policy", "none", recording, "--step", "3"]);
    let shown = trimtab_reading(&["show", "-", "--json"], &early.out);
    let json: serde_json::Value = serde_json::from_slice(&shown.out).expect("JSON");
    assert_eq!(json["format"], "responses");
    assert_eq!(json["blocks"].as_array().and_then(|blocks| blocks.last()).expect("a block")["step"], 2);
    let late = trimtab(&["fit", "--policy", "none", recording, "--step", "9999"]);
    assert_eq!(late.code, Some(1));
    assert!(late.words.contains("has no step 9999: the last is"), "{}", late.words);
}

#[test]
fn broken_files_are_refused_with_a_sentence_and_never_a_panic() {
    for file in files_below("fixtures/broken") {
        let name = file.to_string_lossy().into_owned();
        let shown = trimtab(&["show", &name]);
        assert!(!shown.words.contains("panicked"), "{name}: {}", shown.words);
        match shown.code {
            Some(0) => assert!(!shown.out.is_empty(), "{name}"),
            Some(1) => {
                assert!(shown.words.contains("trimtab: ") && shown.out.is_empty(), "{name}: {}", shown.words);
            }
            other => panic!("{name}: exit code {other:?}"),
        }
    }
}

const LONG: &str = "fixtures/recordings/claude-code.jsonl";

#[test]
fn every_policy_fits_every_long_recording_and_every_handle_recalls_its_original() {
    let report = std::env::temp_dir().join(format!("trimtab-report-{}.json", std::process::id()));
    for file in [LONG, "fixtures/recordings/codex.jsonl"] {
        for policy in ["recent", "retention", "per-tool", "supersede", "age", "priority", "ladder", "steady"]
        {
            let path = report.to_string_lossy();
            let arguments =
                ["fit", file, "--policy", policy, "--budget", "16000", "--model", "gpt-5", "--report", &path];
            let fitted = trimtab(&arguments);
            assert_eq!(fitted.code, Some(0), "{file} by {policy}: {}", fitted.words);
            let shown = trimtab_reading(&["show", "-", "--json", "--model", "gpt-5"], &fitted.out);
            let json: serde_json::Value = serde_json::from_slice(&shown.out).expect("JSON");
            assert!(json["tokens"].as_u64() <= Some(16_000), "{file} by {policy}: {}", json["tokens"]);
            let told: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
            assert_eq!(told["tokens_after"], json["tokens"], "{file} by {policy}");
            let hidden = told["verdicts"].as_array().expect("verdicts");
            for verdict in hidden.iter().rev().take(2) {
                let handle = verdict["handle"].as_str().expect("a handle");
                let original = trimtab(&["recall", handle, "--in", file]);
                assert_eq!(original.code, Some(0), "{file} by {policy}: {}", original.words);
                assert_eq!(handle, &blake3::hash(&original.out).to_hex()[..12]);
            }
        }
    }
    std::fs::remove_file(report).expect("the report");
}

#[test]
fn explain_shows_every_block_beside_the_data() {
    let plain = trimtab(&["fit", LONG, "--budget", "15000", "--policy", "ladder"]);
    let explained = trimtab(&["fit", LONG, "--budget", "15000", "--policy", "ladder", "--explain"]);
    assert_eq!(plain.out, explained.out);
    let status = plain.words.trim();
    assert!(
        status.starts_with("[context] ") && status.contains("/15000 tokens (") && status.ends_with("%)"),
        "{status}"
    );
    assert_eq!(status.lines().count(), 1);
    assert!(explained.words.contains(status) && explained.words.contains("over budget; recall "));
}

#[test]
fn explain_and_report_say_which_pass_hid_how_much() {
    let report = std::env::temp_dir().join(format!("trimtab-passes-{}.json", std::process::id()));
    let path = report.display().to_string();
    let arguments =
        ["fit", LONG, "--budget", "15000", "--policy", "ladder", "--explain", "--report", path.as_str()];
    let explained = trimtab(&arguments);
    let told: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
    std::fs::remove_file(report).expect("the report");
    let passes = told["passes"].as_array().expect("passes");
    let lines: Vec<&str> = explained.words.lines().filter(|line| line.starts_with("pass ")).collect();
    assert_eq!(lines.len(), passes.len(), "{}", explained.words);
    for (line, pass) in lines.iter().zip(passes) {
        let blocks = pass["blocks"].as_u64().expect("a number");
        let begins = format!("pass {:8} {blocks} block", pass["pass"].as_str().expect("a name"));
        assert!(line.starts_with(&begins) && line.ends_with(" tokens fewer"), "{line}");
    }
    assert!(passes.iter().any(|pass| pass["pass"] == "pressure"), "{passes:?}");
    let sum = |rows: &[serde_json::Value], key: &str| {
        rows.iter().map(|row| row[key].as_u64().expect("a number")).sum::<u64>()
    };
    let hidden = told["verdicts"].as_array().expect("verdicts");
    assert_eq!(sum(passes, "saved"), sum(hidden, "saved"), "every block counts for one pass");
    assert_eq!(sum(passes, "blocks"), u64::try_from(hidden.len()).expect("few"));
}

#[test]
fn settings_come_from_the_command_line_and_the_environment() {
    let size = |command: &mut std::process::Command| command.output().expect("the binary").stdout.len();
    let fit = ["fit", LONG, "--policy", "recent", "--budget", "900000"];
    let few = size(command(&fit).args(["--set", "keep_last=0"]));
    let many = size(command(&fit).env("TRIMTAB_KEEP_LAST", "60"));
    let both = size(command(&fit).env("TRIMTAB_KEEP_LAST", "60").args(["--set", "keep_last=0"]));
    assert!(few < many, "{few} {many}");
    assert_eq!(few, both);
}

#[test]
fn what_cannot_be_read_is_named_with_the_remedy() {
    for (arguments, code, sentence) in [
        (&["show", "nowhere.json"][..], 1, "nowhere.json: cannot be opened: No such file"),
        (&["show", "fixtures"], 1, "fixtures: is a folder: name one file in it"),
        (&["show", "Cargo.toml"], 1, "Cargo.toml: neither JSON nor JSON lines"),
        (&["show", "--format", "xml", "-"], 2, "formats are: anthropic, chat, responses, gemini"),
        (&["show", "fixtures/recordings/codex.jsonl", "--segment", "77"], 1, "has no segment 77: there are"),
        (&["fit", "--policy", "sloppy", LONG], 2, "there is no policy \"sloppy\": there are none, recent"),
        (&["fit", "--policy", "Cargo.toml", LONG], 2, "Cargo.toml, line "),
        (&["fit", "--budget", "9", LONG], 1, "does not fit into 9 tokens"),
        (
            &["fit", "--budget", "9000", "--set", "low_watr=1", LONG],
            2,
            "policy \"steady\" has no setting \"low_watr\" (did you mean \"low_water\"?); it has: ",
        ),
        (
            &["fit", "--budget", "9000", "--set", "low_water=85", LONG],
            2,
            "write a share from 0 to 1, such as 0.75",
        ),
        (&["fit", "--budget", "9000", "--set", "low_water", LONG], 2, "--set low_water: write NAME=VALUE"),
        (
            &["fit", "fixtures/requests/nasty/anthropic-odd-spacing.json", "--model", "no-such"],
            1,
            "no budget: the model \"no-such\" is not in the table; `trimtab models` lists all; or give --budget",
        ),
        (&["recall", "000000000000", "--in", LONG], 1, "no block has the handle 000000000000"),
        (&["models", "no-such-model"], 1, "no model's name contains \"no-such-model\""),
        (&["fit", LONG, "--model", "claude-opos-5"], 1, "did you mean claude-opus-5?"),
        (&["fit", "--policy", "stedy", LONG], 2, "did you mean steady?"),
        (
            &["fit", "--budget", "lots", LONG],
            2,
            "is neither a number of tokens (50000, 50k, 1.5M) nor a share (35%)",
        ),
        (&["show", LONG, "--block", "99999"], 1, "has no block 99999: they are numbered from 0 to"),
        (&["proxy", "--listen", "here"], 2, "write 127.0.0.1:8790, or a port such as 8790"),
        (&["mcp", "--in", "nowhere.json"], 1, "nowhere.json: cannot be opened"),
        (&["sho"], 2, "unrecognized subcommand 'sho'"),
    ] {
        let run = trimtab(arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.words);
        assert!(run.words.contains(sentence), "{arguments:?} said: {}", run.words);
        assert!(run.out.is_empty(), "{arguments:?} wrote data");
    }
    let empty = trimtab_reading(&["show"], b" \n");
    assert_eq!(
        (empty.code, empty.words.trim()),
        (Some(1), "trimtab: standard input: the file is empty: expected a request or a recording")
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let file = "fixtures/recordings/claude-code.jsonl";
    for arguments in [
        &["show", file, "--json"][..],
        &["inspect", file, "--json"],
        &["inspect", file, file],
        &["file-at", file, "ledger/money.py"],
        &["changelog", file, "--json"],
    ] {
        let mut child = command(arguments).stdin(Stdio::null()).spawn().expect("the binary");
        let mut first = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("some output");
        // The pipe is closed here, with most of the output unread.
        let done = child.wait_with_output().expect("an end");
        assert_eq!(done.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{arguments:?}");
    }
}

#[test]
fn colour_is_for_people_who_want_it() {
    let file = "fixtures/recordings/claude-code.jsonl";
    let plain = trimtab(&["show", file]);
    assert!(!plain.out.contains(&0x1b));
    let colored = trimtab(&["show", file, "--color", "always"]);
    assert!(colored.out.contains(&0x1b));
    let json = trimtab(&["show", file, "--color", "always", "--json"]);
    assert!(!json.out.contains(&0x1b));
}

#[test]
fn the_demo_needs_nothing_and_says_the_same_every_time() {
    let home = tempfile::tempdir().expect("a folder");
    let demo = |arguments: &[&str]| {
        let mut command = command(arguments);
        // Neither settings nor a provider of the user's have a say, and nothing is left over.
        command.env("HOME", home.path()).env("TMPDIR", home.path()).env("TRIMTAB_POLICY", "none");
        command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").env("TRIMTAB_OFF", "1");
        let done = command.stdin(Stdio::null()).output().expect("the binary");
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!((done.status.code(), words.as_str()), (Some(0), ""));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let text = demo(&["demo"]);
    assert_eq!(text, demo(&["demo"]));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // Rows that are not wrapped fit into the narrowest usual terminal.
    let (_, result) = text.split_once("Result\n").expect("a result");
    let rows = || result.lines().filter(|line| line.starts_with("  "));
    assert!(rows().count() >= 6 && rows().all(|line| line.chars().count() <= 80), "{result}");
    for part in [
        "Turn 1 ", "blocks hidden", "Recall ", "byte for byte", "saved (", "trimtab replay",
        "trimtab wrap claude",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&demo(&["demo", "--json"])).expect("JSON");
    let totals = &json["totals"];
    let dollars = |name: &str| totals[name].as_f64().expect("dollars");
    assert!(dollars("input_dollars") < dollars("input_dollars_untrimmed"), "{totals}");
    let hidden = json["turns"]
        .as_array()
        .expect("turns")
        .iter()
        .map(|turn| turn["hidden"].as_array().map_or(0, Vec::len));
    assert_eq!(totals["blocks_hidden"], hidden.sum::<usize>());
    let recalled = &json["recalled"];
    let original = recalled["original"].as_str().expect("an original");
    assert_eq!(recalled["handle"], blake3::hash(original.as_bytes()).to_hex()[..12]);
    assert_eq!(std::fs::read_dir(home.path()).expect("the folder").count(), 0, "something is left behind");
    let tight = demo(&["demo", "--budget", "30k"]);
    assert!(
        tight.contains("Requests may have 30,000 tokens at most.") && tight.contains("over budget"),
        "{tight}"
    );
}

#[test]
fn models_and_doctor_speak_json_too() {
    for command in ["models", "doctor", "policies"] {
        assert_eq!(trimtab(&[command]).code, Some(0));
        let json: serde_json::Value =
            serde_json::from_slice(&trimtab(&[command, "--json"]).out).expect(command);
        assert!(json.as_array().is_some_and(|rows| rows.len() > 3), "{command}");
    }
}

#[test]
fn nothing_at_all_is_answered_with_what_to_do() {
    let run = trimtab(&[]);
    assert_eq!((run.code, run.words.as_str()), (Some(0), ""));
    let text = run.text();
    for part in
        ["Start here:", "trimtab demo", "Run:", "Measure:", "Look:", "Stored sessions:", "This installation:"]
    {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert_eq!(text, trimtab(&["-h"]).text());
    let version = trimtab(&["--version"]).text();
    assert!(version.contains("prices of ") && version.contains(std::env::consts::ARCH), "{version}");
}

#[test]
fn numbers_are_written_as_people_write_them() {
    let size = |budget: &str| {
        trimtab(&["fit", LONG, "--policy", "ladder", "--model", "gpt-5", "--budget", budget]).out.len()
    };
    assert_eq!(size("15000"), size("15k"));
    // The window of the model has 400,000 tokens.
    assert_eq!(size("20000"), size("5%"));
    let unknown = trimtab(&["fit", LONG, "--model", "no-such", "--budget", "35%"]);
    assert!(
        unknown.code == Some(2) && unknown.words.contains("a share of the model's window"),
        "{}",
        unknown.words
    );
}

#[test]
fn one_block_is_printed_whole_by_its_number_and_recalled_by_the_handle_beside_it() {
    let json: serde_json::Value =
        serde_json::from_slice(&trimtab(&["show", LONG, "--json"]).out).expect("JSON");
    let block = &json["blocks"][1];
    let shown = trimtab(&["show", LONG, "--block", "1"]);
    assert_eq!(shown.text().trim_end(), block["text"].as_str().expect("a text").trim_end());
    let handle = block["handle"].as_str().expect("a handle");
    assert!(trimtab(&["show", LONG]).text().contains(handle));
    let recalled = trimtab(&["recall", handle, "--in", LONG]);
    assert_eq!(recalled.text().trim_end(), shown.text().trim_end());
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let home = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let doctor = |variables: &[(&str, &str)]| {
        let mut command = command(&["doctor"]);
        command.env("HOME", home.path()).env("PATH", home.path()).env("XDG_DATA_HOME", home.path());
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        let done = command.output().expect("the binary");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, text) = doctor(&[("TRIMTAB_PORT", &port)]);
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "is in use by another program",
        "trimtab proxy --port ",
        "none of aider, claude",
        "no session of an agent was found",
        "nothing is stored yet",
        "anthropic https://api.anthropic.com",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let broken = home.path().join("broken.db");
    std::fs::write(&broken, "no database").expect("a file");
    let (code, text) = doctor(&[("TRIMTAB_STORE", broken.to_str().expect("a path")), ("TRIMTAB_PORT", "0")]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("BAD  store") && text.contains("-> name another file"), "{text}");
    let (code, text) = doctor(&[("TRIMTAB_UPSTREAM", "nonsense")]);
    assert!(code == Some(1) && text.contains("BAD  upstreams"), "{text}");
}

#[test]
fn policies_are_a_short_list_with_the_default_first() {
    let text = trimtab(&["policies"]).text();
    assert!(text.lines().count() <= 12 && text.starts_with("steady      (default) "), "{text}");
    assert!(trimtab(&["policies", "--settings"]).text().contains("keep_last = "));
    assert!(trimtab(&["policies", "--peers"]).text().contains("peer:clear-tool-uses"));
}

#[test]
fn a_man_page_is_written_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = trimtab(&["man", folder.path().to_str().expect("a path")]);
    assert_eq!(run.code, Some(0), "{}", run.words);
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(page("trimtab.1").contains(".TH") && page("trimtab-replay.1").contains("recorded sessions"));
    let commands = trimtab(&["completions", "bash"]).text().matches("trimtab,").count();
    assert!(std::fs::read_dir(folder.path()).expect("the folder").count() > 20 && commands > 20);
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = trimtab(&["completions", shell]);
        assert!(run.text().contains("trimtab"), "{shell}");
    }
}

#[test]
fn lines_keep_to_a_width_of_120_columns_without_a_terminal() {
    for file in ["claude-code.jsonl", "codex.jsonl", "mini-swe-agent.traj.json"] {
        let shown =
            trimtab(&["show", &root().join("fixtures/recordings").join(file).to_string_lossy()]).text();
        // The first line names the file, whose path may be long.
        let widest = shown.lines().skip(1).map(|line| line.chars().count()).max();
        assert!(widest <= Some(120), "{file}: {widest:?}");
    }
}

#[test]
fn inspect_tells_what_fills_the_window_of_every_recording_shipped() {
    for file in files_below("fixtures/recordings") {
        let name = file.to_string_lossy().into_owned();
        let run = trimtab(&["inspect", &name]);
        if run.code != Some(0) {
            assert!(name.contains("/cline/"), "{name}: {}", run.words);
            continue;
        }
        // The first line is the file's path, which may be long.
        let widest = run.text().lines().skip(1).map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{name}: {widest:?}");
        let json: serde_json::Value =
            serde_json::from_slice(&trimtab(&["inspect", &name, "--json"]).out).expect(&name);
        let sum = |list: &str| -> u64 {
            json[list]
                .as_array()
                .expect(list)
                .iter()
                .map(|part| part["tokens"].as_u64().expect("tokens"))
                .sum()
        };
        assert_eq!(json["tokens"].as_u64(), Some(sum("roles")), "{name}");
        assert!(sum("tools") <= sum("roles") && sum("priorities") <= sum("roles"), "{name}");
    }
}

#[test]
fn a_folder_is_summed_up_and_unreadable_files_are_listed() {
    let run = trimtab(&["inspect", "fixtures/recordings/cline", "fixtures/recordings/claude-code.jsonl"]);
    let text = run.text();
    assert_eq!(run.code, Some(1), "{}", run.words);
    assert!(run.words.contains("files could not be read; the reasons are in the report"), "{}", run.words);
    for part in [
        "unreadable: ", "ui_messages.json", "mean length", "tool-heavy", "cache hits",
        "Longest conversations",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let json = trimtab(&["inspect", "fixtures/recordings", "--json", "--model", "gpt-5"]);
    let json: serde_json::Value = serde_json::from_slice(&json.out).expect("JSON");
    assert!(json["conversations"].as_u64() > Some(10) && json["mean_tokens"].as_f64() > Some(1000.0));
    assert_eq!(json["conversations"], json["with_window"]);
    assert!(json["cache_hit_rate"].as_f64().is_some_and(|rate| rate > 0.0 && rate < 1.0));
    let good = trimtab(&["inspect", "fixtures/recordings/pi.jsonl", "fixtures/recordings/codex.jsonl"]);
    assert_eq!(good.code, Some(0), "{}", good.words);
    assert_eq!(good.words, "", "no progress bar where nobody looks");
}

#[test]
fn file_at_shows_a_file_as_it_was_known_at_a_step() {
    let file = "fixtures/recordings/claude-code.jsonl";
    let shown = |step: &str| trimtab(&["file-at", file, "ledger/money.py", "--step", step]).text();
    let (before, after) = (shown("8"), shown("20"));
    assert!(before.starts_with("ledger/money.py after step 8: "), "{before}");
    assert_ne!(before, after);
    let json = trimtab(&["file-at", file, "money.py", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.out).expect("JSON");
    assert_eq!(json["path"], "ledger/money.py");
    let text = json["text"].as_str().expect("a whole text");
    assert_eq!(json["line_count"].as_u64(), u64::try_from(text.lines().count()).ok());
    let part = trimtab(&["file-at", "fixtures/recordings/codex.jsonl", "ledger/invoices.py"]).text();
    assert!(part.contains("unknown"), "{part}");
}

#[test]
fn a_path_that_is_not_known_is_answered_with_the_nearest() {
    let file = "fixtures/recordings/claude-code.jsonl";
    for (arguments, sentence) in [
        (&["file-at", file, "ledger/mony.py"][..], "ledger/mony.py is not known. Nearest: ledger/money.py"),
        (
            &["file-at", file, "ledger/money.py", "--step", "1"],
            "was not touched by step 1; it first was in step 3",
        ),
        (&["file-at", file, "ledger/money.py", "--step", "9999"], "has no step 9999: the last is"),
    ] {
        let run = trimtab(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.words.contains(sentence), "{arguments:?} said: {}", run.words);
    }
}

#[test]
fn files_are_listed_with_their_last_access_and_by_question() {
    let file = "fixtures/recordings/claude-code.jsonl";
    let text = trimtab(&["files", file]).text();
    let money = text.split("ledger/money.py\n").nth(1).expect("the file").lines().next().expect("a line");
    for part in [" at step ", " UTC, ", " lines, modified, ", " reads, ", " tokens"] {
        assert!(money.contains(part), "no {part:?} in {money}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let json = |arguments: &[&str]| -> serde_json::Value {
        let run = trimtab(&[&["files", file, "--json"], arguments].concat());
        serde_json::from_slice(&run.out).expect("JSON")
    };
    let all = json(&[]);
    let step = all["step"].as_u64().expect("a step");
    let files = |value: &serde_json::Value| value["files"].as_array().expect("files").clone();
    let age = |file: &serde_json::Value| step - file["last_access_step"].as_u64().expect("a step");
    let count = files(&all).len();
    assert!(
        count > 3 && files(&all).windows(2).all(|pair| age(&pair[0]) <= age(&pair[1])),
        "the latest first"
    );
    let middle = age(&files(&all)[count / 2]).to_string();
    let (recent, stale) = (json(&["--recent", &middle]), json(&["--stale", &middle]));
    assert!(
        files(&recent).iter().all(|file| age(file).to_string().parse::<u64>().ok() <= middle.parse().ok())
    );
    assert_eq!(files(&recent).len() + files(&stale).len(), count, "each file is one of both");
    assert!(!files(&stale).is_empty() && !files(&recent).is_empty());
    let modified = json(&["--modified"]);
    assert!(
        files(&modified).iter().all(|file| file["modified"] == true && file["changes"].as_u64() > Some(0))
    );
    let money =
        files(&modified).into_iter().find(|file| file["path"] == "ledger/money.py").expect("the file");
    let whole = trimtab(&["file-at", file, "ledger/money.py", "--json"]);
    let whole: serde_json::Value = serde_json::from_slice(&whole.out).expect("JSON");
    assert_eq!(money["line_count"], whole["line_count"]);
    let preview: String = whole["text"].as_str().expect("a text").chars().take(200).collect();
    assert_eq!(money["preview"], preview);
    assert!(money["last_access_time"].as_i64() > Some(1_500_000_000_000), "{money}");
    let inspected: serde_json::Value =
        serde_json::from_slice(&trimtab(&["inspect", file, "--json"]).out).expect("JSON");
    assert!(inspected["files"].as_array().expect("files").contains(&money), "inspect tells the same");
    let last = format!(
        "ledger/money.py ({} {})",
        money["operation"].as_str().expect("a word"),
        money["last_access_step"]
    );
    assert!(trimtab(&["inspect", file]).text().contains(&last), "{last}");
    let none =
        trimtab_reading(&["files", "-"], br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#);
    assert_eq!(none.text(), "standard input: no call touched a file\n");
}

#[test]
fn a_changelog_leaves_no_intent_out() {
    let calls = |number: usize| {
        let arguments = serde_json::json!({"path": "config.py", "old_str": "a", "new_str": "b",
            "intent": format!("Raise the limit number {number}")});
        [
            serde_json::json!({"role": "assistant", "tool_calls": [{"id": number.to_string(), "type": "function",
                "function": {"name": "edit_file", "arguments": arguments.to_string()}}]}),
            serde_json::json!({"role": "tool", "tool_call_id": number.to_string(), "content": "ok"}),
        ]
    };
    let messages: Vec<serde_json::Value> =
        std::iter::once(serde_json::json!({"role": "user", "content": "Go."}))
            .chain((1..=14).flat_map(calls))
            .collect();
    let request = serde_json::json!({"model": "gpt-5", "messages": messages}).to_string();
    let text = trimtab_reading(&["changelog", "-"], request.as_bytes()).text();
    for number in 1..=14 {
        assert!(text.contains(&format!("Raise the limit number {number}\n")), "{number} is missing: {text}");
    }
}

#[test]
fn changelog_groups_by_file_with_steps_and_reasons() {
    let file = "fixtures/recordings/claude-code.jsonl";
    let text = trimtab(&["changelog", file]).text();
    assert!(text.starts_with("ledger/money.py\n  step 9"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let json = trimtab(&["changelog", file, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.out).expect("JSON");
    assert_eq!(json[0]["path"], "ledger/money.py");
    assert!(json[0]["changes"][0]["first_step"].as_u64() > Some(0));
    let none = trimtab_reading(
        &["changelog", "-"],
        br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#,
    );
    assert_eq!(none.text(), "standard input: no call changed a file\n");
}

#[test]
fn no_name_from_outside_steers_the_terminal() {
    let evil = "m\\u001b]52;c;AAAA\\u0007\\u009b2J\\u202e\\ntrimtab: forged";
    let request = format!(
        r#"{{"model":"{evil}","messages":[{{"role":"user","content":"Hi"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"{evil}","arguments":"{{\"path\":\"{}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":"{evil}"}}]}}"#,
        evil.replace('\\', "\\\\")
    );
    for arguments in [&["show", "-"][..], &["inspect", "-"], &["files", "-"], &["changelog", "-"]] {
        let shown = trimtab_reading(&[arguments, &["--color", "always"]].concat(), request.as_bytes());
        assert_eq!(shown.code, Some(0), "{arguments:?}: {}", shown.words);
        let text = shown.text() + &shown.words;
        for (at, found) in text.match_indices(|letter: char| letter.is_control() && letter != '\n') {
            let style = text[at..].split('m').next().unwrap_or_default();
            let is_style = style.strip_prefix("\u{1b}[").is_some_and(|rest| rest.len() < 8);
            assert!(found == "\u{1b}" && is_style, "{arguments:?}: {:?}", &text[at..]);
        }
        assert!(!text.contains('\u{202e}') && !text.contains("\ntrimtab: forged"), "{arguments:?}: {text}");
    }
}
