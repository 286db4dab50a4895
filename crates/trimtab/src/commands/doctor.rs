//! `trimtab doctor`: is this installation sound? Takes nothing; gives one line per check with what to do where something is wrong, and
//! fails if a check does. A possible problem is only a note. With `--settings`, every setting in force and where it comes from.

mod checks;

use anstyle::{AnsiColor, Style};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum as _;
use serde::Serialize;
use trimtab_core::report::SettingRow;

use crate::{
    args::{self, DoctorArgs, FoldChoice, KeepLimitArgs, MarkerChoice},
    output::{Output, count_with_noun, wrapped_at},
    settings::{
        CommandLineSettings, SettingsFiles, SettingsInForce, in_force,
        keeping::{resolve_retention, resolve_secrets},
        marking::resolve_markers,
    },
};

/// Columns before what was found.
const FOUND_AT: usize = 18;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Something that may be meant so.
    Note,
    Bad,
}

#[derive(Serialize)]
struct DoctorCheck {
    name: &'static str,
    /// Whether nothing is wrong.
    good: bool,
    state: State,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl DoctorCheck {
    fn ok(name: &'static str, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, good: true, state: State::Ok, found: found.into(), fix: None }
    }

    fn note(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { state: State::Note, fix: Some(fix.into()), ..DoctorCheck::ok(name, found) }
    }

    fn bad(name: &'static str, found: impl Into<String>, fix: Option<&str>) -> DoctorCheck {
        DoctorCheck {
            good: false,
            state: State::Bad,
            fix: fix.map(str::to_owned),
            ..DoctorCheck::ok(name, found)
        }
    }
}

pub(crate) fn run(asked: &DoctorArgs, out: &mut Output) -> Result<()> {
    let files = SettingsFiles::read();
    let mut checks = vec![checks::check_version(), checks::self_test(), checks::check_models()];
    match &files {
        Ok(files) => {
            checks.push(checks::check_settings_files(files));
            checks.push(checks::check_environment());
            checks.extend(checks::names_of_others());
            let settings = check_settings(files);
            // A setting that is wrong is shown in any case.
            checks.extend(settings.into_iter().filter(|check| asked.settings || !check.good));
            checks.push(checks::check_upstreams(files));
        }
        Err(error) => {
            checks.push(DoctorCheck::bad("settings", format!("{error:#}"), None));
            checks.push(checks::check_environment());
        }
    }
    if !asked.settings {
        checks.extend([
            checks::check_store(),
            checks::check_port(),
            checks::check_agents(),
            checks::count_sessions(),
        ]);
    }
    if asked.json {
        out.write_json(&checks)?;
    } else {
        checks.iter().try_for_each(|check| print_check(check, out))?;
    }
    let bad = checks.iter().filter(|check| !check.good).count();
    if bad > 0 {
        bail!("{} failed (marked BAD above)", count_with_noun(bad, "check", "checks"));
    }
    Ok(())
}

fn print_check(DoctorCheck { name, state, found, fix, .. }: &DoctorCheck, out: &mut Output) -> Result<()> {
    let (word, color) = match state {
        State::Ok => ("ok", AnsiColor::Green),
        State::Note => ("note", AnsiColor::Yellow),
        State::Bad => ("BAD", AnsiColor::Red),
    };
    let style: Style = color.on_default().bold();
    // Only people want lines broken.
    let width = if out.is_terminal() { out.width().saturating_sub(FOUND_AT) } else { usize::MAX };
    let mut lines = wrapped_at(found, width).into_iter();
    let first = lines.next().unwrap_or_default();
    out.write_line(format_args!("{style}{word:4}{style:#} {name:12} {first}"))?;
    lines.try_for_each(|line| out.write_line(format_args!("{:FOUND_AT$}{line}", "")))?;
    let fix = fix.iter().flat_map(|fix| wrapped_at(&format!("-> {fix}"), width));
    fix.into_iter().try_for_each(|line| out.write_line(format_args!("{:FOUND_AT$}{line}", "")))
}

/// Lists every setting in force with its origin, or what is wrong with one.
fn check_settings(files: &SettingsFiles) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    match settings_in_force(files) {
        Ok(in_force) => {
            checks.extend(in_force.rows.into_iter().map(|row| {
                DoctorCheck::ok("setting", format!("{} = {} ({})", row.name, row.value, row.from))
            }));
        }
        Err(error) => checks.push(DoctorCheck::bad("settings", format!("{error:#}"), None)),
    }
    checks.push(check_markers(files));
    checks.extend(check_retention(files));
    checks
}

/// Returns what is in force where only the environment and the files say something.
pub(crate) fn settings_in_force(files: &SettingsFiles) -> Result<SettingsInForce> {
    let asked = |name: &str| std::env::var(name).ok();
    let (policy, model) = (asked("TRIMTAB_POLICY"), asked("TRIMTAB_MODEL"));
    let fold = asked("TRIMTAB_FOLD").map(|fold| FoldChoice::from_str(&fold, false)).transpose();
    let fold = fold.map_err(|fault| anyhow!("TRIMTAB_FOLD: {fault}"))?;
    let budget = asked("TRIMTAB_BUDGET").and_then(|budget| args::tokens_or_share(&budget).ok());
    let spent = asked("TRIMTAB_SPENT").and_then(|spent| spent.parse().ok()).unwrap_or_default();
    let asked = CommandLineSettings {
        policy: policy.as_deref(),
        model: model.as_deref(),
        budget,
        spent,
        fold,
        ..CommandLineSettings::default()
    };
    in_force(&asked, files)
}

/// Says whether cache markers are set for clients that set none.
fn check_markers(files: &SettingsFiles) -> DoctorCheck {
    let asked = std::env::var("TRIMTAB_MARKERS").ok();
    match asked.map(|words| MarkerChoice::from_str(&words, false)).transpose() {
        Ok(asked) => {
            let (_, row) = resolve_markers(asked, files);
            DoctorCheck::ok("setting", format!("{} = {} ({})", row.name, row.value, row.from))
        }
        Err(fault) => DoctorCheck::bad("settings", format!("TRIMTAB_MARKERS: {fault}"), None),
    }
}

/// Lists what says how long conversations are kept, and whether the patterns of secrets can be read.
fn check_retention(files: &SettingsFiles) -> Vec<DoctorCheck> {
    let rows = retention_rows(files).and_then(|rows| resolve_secrets(false, files).map(|_| rows));
    match rows {
        Ok(rows) => {
            let shown = |row: SettingRow| {
                DoctorCheck::ok("setting", format!("{} = {} ({})", row.name, row.value, row.from))
            };
            rows.into_iter().map(shown).collect()
        }
        Err(error) => vec![DoctorCheck::bad("settings", format!("{error:#}"), None)],
    }
}

/// Returns what says how long conversations are kept.
pub(crate) fn retention_rows(files: &SettingsFiles) -> Result<Vec<SettingRow>> {
    let limits = KeepLimitArgs {
        keep_for: std::env::var("TRIMTAB_KEEP_FOR").ok().and_then(|words| args::parse_long_age(&words).ok()),
        keep_at_most: std::env::var("TRIMTAB_KEEP_AT_MOST")
            .ok()
            .and_then(|words| args::parse_size(&words).ok()),
    };
    resolve_retention(&limits, files).map(|(_, rows)| rows)
}
