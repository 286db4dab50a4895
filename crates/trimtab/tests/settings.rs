//! Settings as their users meet them: flags, environment, the project's file and the user's, in this order of strength.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{Run, command, root};

/// A folder of a project's own, with a file of settings in it and the user's beside it.
struct Project(PathBuf);

impl Project {
    fn new(name: &str, local: &str, user: &str) -> Project {
        let folder = std::env::temp_dir().join(format!("trimtab-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("home/trimtab")).expect("a folder");
        for (file, text) in [("trimtab.toml", local), ("home/trimtab/config.toml", user)] {
            if !text.is_empty() {
                fs::write(folder.join(file), text).expect(file);
            }
        }
        Project(folder)
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        let mut command = command(arguments);
        command.current_dir(&self.0).env("XDG_CONFIG_HOME", self.0.join("home"));
        command.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
        let done = command.output().expect("the binary");
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        Run { code: done.status.code(), out: done.stdout, words }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recording() -> String {
    root().join("fixtures/recordings/claude-code.jsonl").to_string_lossy().into_owned()
}

/// Returns a setting in force and where it comes from, as doctor tells.
fn in_force(run: &Run, setting: &str) -> String {
    let text = run.text();
    let line = text.lines().find(|line| line.contains(&format!(" {setting} = ")));
    line.unwrap_or_else(|| panic!("no {setting} in {text}{}", run.words))
        .split_once(" = ")
        .expect("a value")
        .1
        .to_owned()
}

#[test]
fn flags_beat_environment_beats_the_projects_file_beats_the_users() {
    let project =
        Project::new("layers", "policy = 'recent'\nkeep_last = 9\n", "keep_last = 4\npolicy = 'ladder'\n");
    let doctor = |environment: &[(&str, &str)]| {
        in_force(&project.run(&["doctor", "--settings"], environment), "keep_last")
    };
    assert_eq!(doctor(&[]), "9 (trimtab.toml, line 2)");
    assert_eq!(doctor(&[("TRIMTAB_KEEP_LAST", "7")]), "7 (TRIMTAB_KEEP_LAST)");
    let report = project.file("report.json");
    let fit = |arguments: &[&str], environment: &[(&str, &str)]| -> serde_json::Value {
        let path = report.to_string_lossy();
        let file = recording();
        let all = [&["fit", &file, "--budget", "900000", "--report", &path], arguments].concat();
        let run = project.run(&all, environment);
        assert_eq!(run.code, Some(0), "{}", run.words);
        serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON")
    };
    let value = |report: &serde_json::Value, name: &str| -> (String, String) {
        let row = report["settings"]
            .as_array()
            .expect("settings")
            .iter()
            .find(|row| row["name"] == name)
            .expect(name)
            .clone();
        (
            row["value"].as_str().expect("a value").to_owned(),
            row["from"].as_str().expect("an origin").to_owned(),
        )
    };
    let flag = fit(&["--set", "keep_last=2"], &[("TRIMTAB_KEEP_LAST", "7")]);
    assert_eq!(value(&flag, "keep_last"), ("2".to_owned(), "--set keep_last=2".to_owned()));
    assert_eq!(flag["policy"], "recent");
    let hidden = |report: &serde_json::Value| report["verdicts"].as_array().expect("verdicts").len();
    assert!(hidden(&flag) > hidden(&fit(&[], &[])), "the setting is read");
    let user_only = Project::new("user", "", "[ladder]\nkeep_last = 4\n");
    assert!(
        in_force(&user_only.run(&["doctor", "--settings"], &[("TRIMTAB_POLICY", "ladder")]), "keep_last")
            .starts_with("4 (")
    );
    assert_eq!(
        in_force(&user_only.run(&["doctor", "--settings"], &[("TRIMTAB_POLICY", "recent")]), "keep_last"),
        "30 (default)"
    );
}

#[test]
fn how_a_policy_folds_is_a_setting_like_any_other() {
    let project = Project::new("fold", "fold = 'ledger'\n", "fold = 'off'\n");
    let doctor =
        |environment: &[(&str, &str)]| in_force(&project.run(&["doctor", "--settings"], environment), "fold");
    assert_eq!(doctor(&[]), "ledger (trimtab.toml, line 1)");
    assert_eq!(doctor(&[("TRIMTAB_FOLD", "summary")]), "summary (the command line or TRIMTAB_FOLD)");
    let misspelt = project.run(&["doctor", "--settings"], &[("TRIMTAB_FOLD", "leger")]);
    assert!(misspelt.code == Some(1) && misspelt.text().contains("TRIMTAB_FOLD"), "{}", misspelt.text());
    // The file is read by what folds, not by doctor alone.
    let messages: Vec<serde_json::Value> = (0..40)
        .map(|number| {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            serde_json::json!({"role": role, "content": format!("words of message {number} ").repeat(60)})
        })
        .chain([serde_json::json!({"role": "user", "content": "Go on."})])
        .collect();
    let request = serde_json::json!({"model": "gpt-5", "messages": messages}).to_string();
    fs::write(project.file("request.json"), request).expect("a request");
    let fitted = |environment: &[(&str, &str)]| {
        let run =
            project.run(&["fit", "request.json", "--policy", "ladder", "--budget", "12000"], environment);
        assert_eq!(run.code, Some(0), "{}", run.words);
        run.text().contains("[Previous conversation summary]")
    };
    assert_eq!((fitted(&[]), fitted(&[("TRIMTAB_FOLD", "off")])), (true, false));
}

#[test]
fn a_project_cannot_change_where_requests_go() {
    let evil = "[upstream.anthropic]\nurl = 'https://elsewhere.example'\n";
    let project = Project::new("redirected", evil, "");
    let refused = project.run(&["proxy", "--listen", "127.0.0.1:0"], &[]);
    assert_ne!(refused.code, Some(0));
    let place = "trimtab.toml, line 1: [upstream.anthropic]";
    assert!(refused.words.contains(place) && refused.words.contains("config.toml"), "{}", refused.words);
    let own = Project::new(
        "directed",
        "",
        "[upstream.work]\nurl = 'https://work.example'\nmodel_prefix = 'qwen'\n",
    );
    let shown = in_force(&own.run(&["doctor", "--settings"], &[]), "upstream.work");
    assert!(shown.starts_with("https://work.example, models qwen* ("), "{shown}");
}

#[test]
fn doctor_knows_every_variable_that_a_command_reads() {
    let project = Project::new("variables", "", "");
    let run = project.run(
        &["doctor", "--settings"],
        &[
            ("TRIMTAB_STORE", "store.db"),
            ("TRIMTAB_MCP_MAX_CHARS", "9000"),
            ("TRIMTAB_FOLD", "off"),
            ("TRIMTAB_UPSTREAM", "openai=http://localhost:1"),
            ("TRIMTAB_STOR", "store.db"),
        ],
    );
    let environment =
        run.text().lines().find(|line| line.contains(" environment ")).unwrap_or_default().to_owned();
    let unknown = environment.split_once("no setting: ").map_or("", |(_, unknown)| unknown);
    assert_eq!(unknown, "TRIMTAB_STOR", "{environment}");
}

#[test]
fn names_of_the_first_seed_are_read_and_ours_win() {
    let project = Project::new("patchpal", "", "");
    let theirs = ("PATCHPAL_PRUNE_PROTECT", "20000");
    let run = project.run(&["doctor", "--settings"], &[("TRIMTAB_POLICY", "per-tool"), theirs]);
    assert_eq!(in_force(&run, "prune_protect"), "20000 (PATCHPAL_PRUNE_PROTECT)");
    assert!(run.text().contains("PATCHPAL_PRUNE_PROTECT=20000"), "{}", run.text());
    let run = project.run(
        &["doctor", "--settings"],
        &[
            ("TRIMTAB_POLICY", "per-tool"),
            theirs,
            ("TRIMTAB_PRUNE_PROTECT", "30000"),
            ("TRIMTAB_PRUNE_PROTET", "1"),
        ],
    );
    assert_eq!(in_force(&run, "prune_protect"), "30000 (TRIMTAB_PRUNE_PROTECT)");
    assert!(run.text().contains("outweighed by TRIMTAB_PRUNE_PROTECT"), "{}", run.text());
    assert!(run.text().contains("TRIMTAB_PRUNE_PROTET, nearest TRIMTAB_PRUNE_PROTECT"), "{}", run.text());
}

#[test]
fn thresholds_adapt_to_window_and_cost_unless_they_are_set() {
    let project = Project::new("adapt", "policy = 'per-tool'\nadaptive = true\n", "");
    let protect = |environment: &[(&str, &str)]| {
        in_force(&project.run(&["doctor", "--settings"], environment), "prune_protect")
    };
    assert_eq!(protect(&[]), "40000 (default)");
    assert_eq!(protect(&[("TRIMTAB_SPENT", "20")]), "20000 (adapted, default 40000)");
    assert!(protect(&[("TRIMTAB_MODEL", "gpt-5")]).ends_with("(adapted, default 40000)"));
    assert_eq!(
        protect(&[("TRIMTAB_SPENT", "20"), ("TRIMTAB_PRUNE_PROTECT", "40000")]),
        "40000 (TRIMTAB_PRUNE_PROTECT)"
    );
}

#[test]
fn a_malformed_rule_or_value_is_wrong_usage_and_writes_nothing() {
    for (name, toml, sentence) in [
        (
            "rule",
            "[[rule]]\ntol = 'Bash'\ndo = 'clear'\n",
            "trimtab.toml, line 2, column 1: there is no key `tol`; did you mean `tool`?",
        ),
        (
            "key",
            "prune_protct = 1\n",
            "trimtab.toml, line 1, column 1: there is no key `prune_protct`; did you mean `prune_protect`?",
        ),
        (
            "value",
            "\nkeep_last = -1\n",
            "trimtab.toml, line 2, column 13: keep_last = \"-1\" is not a valid value: write a whole number",
        ),
    ] {
        let project = Project::new(name, toml, "");
        let report = project.file("report.json");
        let run = project
            .run(&["fit", &recording(), "--budget", "20000", "--report", &report.to_string_lossy()], &[]);
        assert_eq!((run.code, run.out.len()), (Some(2), 0), "{}", run.words);
        assert!(run.words.contains(sentence), "{}", run.words);
        assert!(!report.exists());
        let doctor = project.run(&["doctor", "--settings"], &[]);
        assert!(doctor.code == Some(1) && doctor.text().contains(sentence), "{}", doctor.text());
    }
    let project = Project::new("variable", "", "");
    let run = project.run(
        &["fit", &recording(), "--policy", "recent", "--budget", "20000"],
        &[("TRIMTAB_KEEP_LAST", "few")],
    );
    assert!(
        run.code == Some(2) && run.words.contains("TRIMTAB_KEEP_LAST: \"few\" is not a valid value"),
        "{}",
        run.words
    );
}

#[test]
fn a_setting_of_another_policy_is_wrong_usage_from_every_source() {
    let sentence = "policy \"steady\" has no setting \"keep_last\"; these have it: recent, ladder";
    let fitted = recording();
    let fit = ["fit", &fitted, "--budget", "20000"];
    for (source, toml, flags, variables) in [
        ("trimtab.toml, line 1", "keep_last = 10\n", vec![], vec![]),
        ("--set", "", vec!["--set", "keep_last=10"], vec![]),
        ("TRIMTAB_KEEP_LAST", "", vec![], vec![("TRIMTAB_KEEP_LAST", "10")]),
    ] {
        let project = Project::new("other-policy", toml, "");
        let run = project.run(&[&fit[..], &flags].concat(), &variables);
        assert_eq!((run.code, run.out.len()), (Some(2), 0), "{}", run.words);
        assert!(run.words.contains(sentence) && run.words.contains(source), "{source}: {}", run.words);
        let with_it = project.run(&[&fit[..], &flags, &["--policy", "recent"]].concat(), &variables);
        assert_eq!(with_it.code, Some(0), "{source}: {}", with_it.words);
    }
}

#[test]
fn rules_come_before_the_policy_and_can_keep_pin_cut_and_clear() {
    let fit = |name: &str, toml: &str| {
        let project = Project::new(name, toml, "");
        let report = project.file("report.json");
        let path = report.to_string_lossy().into_owned();
        let run = project.run(
            &[
                "fit",
                &recording(),
                "--policy",
                "recent",
                "--set",
                "keep_last=0",
                "--budget",
                "900000",
                "--report",
                &path,
            ],
            &[],
        );
        assert_eq!(run.code, Some(0), "{}", run.words);
        let report: serde_json::Value =
            serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
        let rows = report["verdicts"].as_array().expect("verdicts").clone();
        (
            rows.len(),
            rows.iter()
                .filter(|row| row["reason"].as_str().is_some_and(|reason| reason.starts_with("rule")))
                .count(),
        )
    };
    let (plain, _) = fit("none", "");
    for act in ["keep", "pin"] {
        let (hidden, by_rule) = fit(act, &format!("[[rule]]\ntool = 'Read'\ndo = '{act}'\n"));
        assert!(hidden < plain && by_rule == 0, "{act}: {hidden} of {plain}");
    }
    for rule in [
        "do = 'clear'",
        "do = 'head-tail'\nhead = 2\ntail = 1",
        "do = 'digest other'",
        "do = 'lines'\nlines = ['^def ']",
    ] {
        let (_, by_rule) = fit(
            "act",
            &format!("[[rule]]\nname = 'mine'\ntool = 'R*'\npath = '*.py'\nchars_over = 300\n{rule}\n"),
        );
        assert!(by_rule > 0, "{rule}");
    }
    let (_, dropped) = fit("drop", "[[rule]]\ntool = 'Bash'\ndo = 'drop'\n");
    assert!(dropped > 0);
}

#[test]
fn a_file_of_rules_builds_on_a_policy() {
    let project = Project::new("base", "", "");
    let policy = project.file("mine.toml");
    fs::write(&policy, "base = 'ladder'\ninclude = ['output-caps']\n[settings]\nkeep_last = 1\n[[rule]]\ntool = 'Read'\ndo = 'keep'\n").expect("a file");
    let run =
        project.run(&["fit", &recording(), "--policy", &policy.to_string_lossy(), "--budget", "20000"], &[]);
    assert_eq!(run.code, Some(0), "{}", run.words);
    fs::write(&policy, "base = 'laddr'\n").expect("a file");
    let run =
        project.run(&["fit", &recording(), "--policy", &policy.to_string_lossy(), "--budget", "20000"], &[]);
    assert!(
        run.code == Some(2)
            && run.words.contains("mine.toml, line 1, column 8: there is no policy \"laddr\" to build on"),
        "{}",
        run.words
    );
}

#[test]
fn the_ladder_takes_its_own_limit_where_no_budget_is_given() {
    let project = Project::new("limit", "", "");
    let file = recording();
    let status = |arguments: &[&str]| {
        project.run(&[&["fit", &file, "--policy", "ladder"], arguments].concat(), &[]).words
    };
    assert!(
        status(&["--model", "unknown-model"]).contains("/180000 tokens ("),
        "{}",
        status(&["--model", "unknown-model"])
    );
    let small = status(&["--model", "unknown-model", "--set", "max_context=50000"]);
    assert!(small.contains("/50000 tokens ("), "{small}");
}

#[test]
fn a_report_tells_floor_supersession_and_handles_even_where_it_does_not_fit() {
    let project = Project::new("report", "", "");
    let report = project.file("report.json");
    let read = |budget: &str| -> (Run, serde_json::Value) {
        let run = project.run(
            &[
                "fit",
                &recording(),
                "--model",
                "gpt-5",
                "--budget",
                budget,
                "--report",
                &report.to_string_lossy(),
            ],
            &[],
        );
        (run, serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON"))
    };
    let (run, fits) = read("15000");
    assert_eq!((run.code, &fits["floor"]), (Some(0), &serde_json::Value::Null), "{}", run.words);
    assert!(fits["tokens_after"].as_u64() < fits["tokens_before"].as_u64());
    let rows = fits["verdicts"].as_array().expect("verdicts");
    assert!(
        rows.iter()
            .all(|row| row["handle"].as_str().is_some_and(|handle| handle.len() == 12)
                && row["saved"].is_u64())
    );
    let newer = &fits["supersedes"].as_array().expect("supersedes")[0];
    assert!(
        newer["supersedes"][0]["block"].as_u64() < newer["block"].as_u64()
            && newer["supersedes"][0]["rule"].is_string(),
        "{newer}"
    );
    let (run, floor) = read("9");
    assert_eq!((run.code, run.out.len()), (Some(1), 0));
    assert!(floor["floor"]["tokens"].as_u64() > Some(9) && floor["floor"]["made_of"][0][0].is_string());
    let left: Vec<_> = fs::read_dir(&project.0)
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".report")), "{left:?}");
    let nowhere =
        project.run(&["fit", &recording(), "--budget", "15000", "--report", "no/such/folder/r.json"], &[]);
    assert!(
        nowhere.code == Some(1)
            && nowhere.out.is_empty()
            && nowhere.words.contains("r.json: cannot be written"),
        "{}",
        nowhere.words
    );
}

#[test]
fn repair_mends_and_lists_every_mending() {
    let project = Project::new("repair", "", "");
    let file = project.file("broken.json");
    let broken = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"x","content":"?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}]}"#;
    fs::write(&file, broken).expect("a file");
    let path = file.to_string_lossy();
    let carried = project.run(&["fit", &path, "--policy", "none"], &[]);
    assert_eq!(carried.text(), broken, "without being asked nothing is mended");
    let mended = project.run(&["fit", &path, "--policy", "none", "--repair"], &[]);
    assert_eq!(mended.code, Some(0));
    assert!(
        mended.words.contains("message 2: a result for \"x\" without a call before it, removed"),
        "{}",
        mended.words
    );
    assert!(
        mended.words.contains("message 3: the call \"a\" has no result, a note put in its place"),
        "{}",
        mended.words
    );
    assert!(
        mended.text().ends_with(
            r#"{"role":"tool","tool_call_id":"a","content":"[No result: the call was never answered.]"}]}"#
        ),
        "{}",
        mended.text()
    );
    assert!(Path::new(&*path).exists());
}
