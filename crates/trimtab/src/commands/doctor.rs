//! `trimtab doctor`: is this installation sound? Takes nothing; gives one line per check with what to do where something is wrong, and
//! fails if a check does. What only may be wrong is a note. With `--settings`, every setting in force and where it comes from.

mod checks;

use anstyle::{AnsiColor, Style};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum as _;
use serde::Serialize;
use trimtab_core::report::SettingRow;

use crate::{
    args::{self, Doctor, Fold, KeepLimits},
    output::{Output, counted, wrapped_at},
    settings::{
        Asked, Files, in_force,
        keeping::{retention, secrets},
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
struct Check {
    name: &'static str,
    /// Whether nothing is wrong.
    good: bool,
    state: State,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, good: true, state: State::Ok, found: found.into(), fix: None }
    }

    fn note(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { state: State::Note, fix: Some(fix.into()), ..Check::ok(name, found) }
    }

    fn bad(name: &'static str, found: impl Into<String>, fix: Option<&str>) -> Check {
        Check { good: false, state: State::Bad, fix: fix.map(str::to_owned), ..Check::ok(name, found) }
    }
}

pub(crate) fn run(asked: &Doctor, out: &mut Output) -> Result<()> {
    let files = Files::read();
    let mut checks = vec![checks::version(), checks::self_test(), checks::models()];
    match &files {
        Ok(files) => {
            checks.push(checks::files(files));
            checks.push(checks::environment());
            checks.extend(checks::names_of_others());
            let settings = settings(files);
            // A setting that is wrong is shown in any case.
            checks.extend(settings.into_iter().filter(|check| asked.settings || !check.good));
            checks.push(checks::upstreams(files));
        }
        Err(error) => {
            checks.push(Check::bad("settings", format!("{error:#}"), None));
            checks.push(checks::environment());
        }
    }
    if !asked.settings {
        checks.extend([checks::store(), checks::port(), checks::agents(), checks::sessions()]);
    }
    if asked.json {
        out.json(&checks)?;
    } else {
        checks.iter().try_for_each(|check| line(check, out))?;
    }
    let bad = checks.iter().filter(|check| !check.good).count();
    if bad > 0 {
        bail!("{} failed (marked BAD above)", counted(bad, "check", "checks"));
    }
    Ok(())
}

fn line(Check { name, state, found, fix, .. }: &Check, out: &mut Output) -> Result<()> {
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
    out.line(format_args!("{style}{word:4}{style:#} {name:12} {first}"))?;
    lines.try_for_each(|line| out.line(format_args!("{:FOUND_AT$}{line}", "")))?;
    let fix = fix.iter().flat_map(|fix| wrapped_at(&format!("-> {fix}"), width));
    fix.into_iter().try_for_each(|line| out.line(format_args!("{:FOUND_AT$}{line}", "")))
}

/// Lists every setting in force with its origin, or what is wrong with one.
fn settings(files: &Files) -> Vec<Check> {
    let bad = |error: &anyhow::Error| vec![Check::bad("settings", format!("{error:#}"), None)];
    let mut checks = Vec::new();
    let asked = |name: &str| std::env::var(name).ok();
    let (policy, model) = (asked("TRIMTAB_POLICY"), asked("TRIMTAB_MODEL"));
    let fold = match asked("TRIMTAB_FOLD").map(|fold| Fold::from_str(&fold, false)).transpose() {
        Ok(fold) => fold,
        Err(fault) => return bad(&anyhow!("TRIMTAB_FOLD: {fault}")),
    };
    let budget = asked("TRIMTAB_BUDGET").and_then(|budget| args::tokens_or_share(&budget).ok());
    let spent = asked("TRIMTAB_SPENT").and_then(|spent| spent.parse().ok()).unwrap_or_default();
    let asked =
        Asked { policy: policy.as_deref(), model: model.as_deref(), budget, spent, fold, ..Asked::default() };
    match in_force(&asked, files) {
        Ok(in_force) => checks.extend(
            in_force
                .rows
                .into_iter()
                .map(|row| Check::ok("setting", format!("{} = {} ({})", row.name, row.value, row.from))),
        ),
        Err(error) => checks.extend(bad(&error)),
    }
    checks.extend(keeping(files));
    checks
}

/// Lists what says how long conversations are kept, and whether the patterns of secrets can be read.
fn keeping(files: &Files) -> Vec<Check> {
    let limits = KeepLimits {
        keep_for: std::env::var("TRIMTAB_KEEP_FOR").ok().and_then(|words| args::long_age(&words).ok()),
        keep_at_most: std::env::var("TRIMTAB_KEEP_AT_MOST").ok().and_then(|words| args::bytes(&words).ok()),
    };
    let rows = retention(&limits, files).and_then(|(_, rows)| secrets(false, files).map(|_| rows));
    match rows {
        Ok(rows) => {
            let shown = |row: SettingRow| {
                Check::ok("setting", format!("{} = {} ({})", row.name, row.value, row.from))
            };
            rows.into_iter().map(shown).collect()
        }
        Err(error) => vec![Check::bad("settings", format!("{error:#}"), None)],
    }
}
