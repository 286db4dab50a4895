//! Documents stay true by being made: the reference of the command line, and what the pages show.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::fmt::Write;

use common::{check_between, check_file, trimtab};

/// How many lines of a long listing a page shows.
const PICTURE_LINES: usize = 22;

#[test]
fn the_reference_is_what_the_program_says_of_itself() {
    let mut page = "# Command line\n\nWritten by a test from `trimtab --help`; `TRIMTAB_BLESS=1 cargo test` renews it.\n".to_owned();
    let help = trimtab(&["--help"]).text();
    // The commands of the groups; the beginning has examples, the end options.
    let groups =
        help.lines().skip_while(|line| !line.starts_with("Usage:")).take_while(|line| *line != "Options:");
    let commands =
        groups.filter_map(|line| line.strip_prefix("  ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = commands.collect();
    assert!(names.len() > 20, "{help}");
    let _ = write!(page, "\n## trimtab\n\n```text\n{help}```\n");
    for name in names {
        let help = trimtab(&[name, "--help"]).text();
        let _ = write!(page, "\n## trimtab {name}\n\n```text\n{help}```\n");
    }
    check_file("docs/commands.md", &page);
}

#[test]
fn the_settings_page_lists_every_setting_with_the_defaults_of_each_policy() {
    let mut page = include_str!("settings-page.md").to_owned();
    page += "\n## Every setting\n\n| name | unit | what it does | defaults |\n|---|---|---|---|\n";
    for knob in trimtab_core::policy::all_settings() {
        let mut defaults: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, _) in trimtab_core::policy::policies() {
            let settings = trimtab_core::Policy::find_shipped(name).expect(name).settings;
            let Some((_, value)) = settings.into_iter().find(|(setting, _)| setting == knob.name) else {
                continue;
            };
            match defaults.iter_mut().find(|(written, _)| *written == knob.format_value(value)) {
                Some((_, policies)) => policies.push(name),
                None => defaults.push((knob.format_value(value), vec![name])),
            }
        }
        let defaults: Vec<String> = defaults
            .into_iter()
            .map(|(value, policies)| format!("{value} ({})", policies.join(", ")))
            .collect();
        let alias = knob.alias.map(|alias| format!(" Also read from `{alias}`.")).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}` | {} | {}{alias} | {} |",
            knob.name,
            knob.unit.name(),
            knob.about,
            defaults.join("; ")
        );
    }
    check_file("docs/settings.md", &page);
}

#[test]
fn the_quick_start_shows_what_show_prints() {
    let shown = trimtab(&["show", "fixtures/recordings/claude-code.jsonl"]).text();
    let lines: Vec<&str> = shown.lines().take(PICTURE_LINES).map(str::trim_end).collect();
    check_between("docs/quickstart.md", "show", &format!("```text\n{}\n…\n```\n", lines.join("\n")));
}

#[test]
fn the_page_about_reading_lists_every_agent() {
    let rows = trimtab_replay::agents().map(|(name, about)| format!("| `{name}` | {about} |\n"));
    let table = "| agent | what a file is |\n|---|---|\n".to_owned() + &rows.collect::<String>();
    check_between("docs/reading.md", "agents", &table);
}

#[test]
fn the_quick_start_shows_what_inspect_prints() {
    let shown = trimtab(&["inspect", "fixtures/recordings/claude-code.jsonl"]).text();
    let lines: Vec<&str> = shown.lines().take(PICTURE_LINES + 8).map(str::trim_end).collect();
    check_between("docs/quickstart.md", "inspect", &format!("```text\n{}\n…\n```\n", lines.join("\n")));
}

#[test]
fn the_page_about_agents_names_every_agent_that_wrap_knows() {
    let page = std::fs::read_to_string(common::root().join("docs/agents/index.md")).expect("the page");
    let known = trimtab(&["wrap", "--list"]).text();
    assert!(known.lines().count() > 5, "{known}");
    for name in known.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(
            page.contains(&format!("`trimtab wrap {name}`")),
            "docs/agents/index.md has no row for {name}"
        );
    }
}
