//! `trimtab doctor`: is this installation sound? Takes nothing; gives one line per check, and fails if one does.

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum as _;
use serde::Serialize;
use trimtab_core::{
    Counter, Format, Tokens,
    count::{Tokenizer, Vocabulary},
    parse,
    prices::prices_date,
    write,
};
use trimtab_replay::agents;

use crate::{
    args::{self, Doctor, Fold, KeepLimits},
    output::Output,
    prices,
    settings::{
        Asked, Files, foreign_variables, in_force,
        keeping::{retention, secrets},
        unknown_variables, variables,
    },
};

#[derive(Serialize)]
struct Check {
    name: &'static str,
    good: bool,
    found: String,
}

pub(crate) fn run(asked: &Doctor, out: &mut Output) -> Result<()> {
    let mut checks = vec![
        version(),
        formats(),
        Check {
            name: "recordings",
            good: agents().count() > 0,
            found: names(agents().map(|(name, _)| name)),
        },
        vocabulary("o200k", Vocabulary::O200k),
        vocabulary("cl100k", Vocabulary::Cl100k),
        Check {
            name: "models",
            good: prices::models().is_ok(),
            found: match (prices::models(), prices::path()) {
                (Ok(models), None) => format!("{}, prices of {}", models.len(), prices_date()),
                (Ok(models), Some(own)) => {
                    format!("{}, prices of {}, and {}", models.len(), prices_date(), own.display())
                }
                (Err(fault), _) => format!("{fault:#}"),
            },
        },
        environment(),
        names_of_others(),
    ];
    checks.extend(settings());
    if asked.json {
        out.json(&checks)?;
    } else {
        for Check { name, good, found } in &checks {
            out.line(format_args!("{} {name:11} {found}", if *good { "ok  " } else { "BAD " }))?;
        }
    }
    if checks.iter().any(|check| !check.good) {
        bail!("a check failed: the line says which");
    }
    Ok(())
}

fn version() -> Check {
    let found = format!(
        "trimtab {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    Check { name: "version", good: true, found }
}

/// Reads and writes a small request.
fn formats() -> Check {
    let request = br#"{"model":"m","messages":[{"role":"user","content":"\u00e9"}]}"#;
    let good = parse(request.to_vec()).is_ok_and(|history| write(&history, &[]) == request);
    Check { name: "formats", good, found: names(Format::ALL.into_iter().map(Format::name)) }
}

/// Loads a vocabulary and counts a text whose count is known.
fn vocabulary(name: &'static str, vocabulary: Vocabulary) -> Check {
    let start = Instant::now();
    let counted = Counter::new(Tokenizer::Exact(vocabulary)).text("hello world");
    let found = format!("loaded in {} ms, \"hello world\" is {counted} tokens", start.elapsed().as_millis());
    Check { name, good: counted == Tokens(2), found }
}

/// Lists what the environment says, and what in it is no setting.
fn environment() -> Check {
    let set: Vec<String> =
        variables("TRIMTAB_").into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut found = if set.is_empty() { "no TRIMTAB_* variable is set".to_owned() } else { set.join(" ") };
    let unknown = unknown_variables();
    if !unknown.is_empty() {
        found += &format!("; no setting: {}", unknown.join("; "));
    }
    Check { name: "environment", good: true, found }
}

/// Lists settings under the names of another program.
fn names_of_others() -> Check {
    let found = foreign_variables();
    let found = if found.is_empty() { "no PATCHPAL_* setting is set".to_owned() } else { found.join(" ") };
    Check { name: "patchpal", good: true, found }
}

/// Lists the files that settings come from, and every setting in force with its origin.
fn settings() -> Vec<Check> {
    let bad =
        |error: &anyhow::Error| vec![Check { name: "settings", good: false, found: format!("{error:#}") }];
    let files = match Files::read() {
        Ok(files) => files,
        Err(error) => return bad(&error),
    };
    let place = |there: bool| if there { "" } else { " (not there)" };
    let user = files.user_file.as_ref().map_or_else(
        || "no folder for the user's settings is known".to_owned(),
        |file| format!("{}{}", file.display(), place(files.user.is_some())),
    );
    let found = format!("./trimtab.toml{}, {user}", place(files.local.is_some()));
    let mut checks = vec![Check { name: "files", good: true, found }];
    let asked = |name: &str| std::env::var(name).ok();
    let (policy, model) = (asked("TRIMTAB_POLICY"), asked("TRIMTAB_MODEL"));
    let fold = match asked("TRIMTAB_FOLD").map(|fold| Fold::from_str(&fold, false)).transpose() {
        Ok(fold) => fold,
        Err(fault) => return bad(&anyhow!("TRIMTAB_FOLD: {fault}")),
    };
    let budget = asked("TRIMTAB_BUDGET").and_then(|budget| budget.parse().ok());
    let spent = asked("TRIMTAB_SPENT").and_then(|spent| spent.parse().ok()).unwrap_or_default();
    let asked =
        Asked { policy: policy.as_deref(), model: model.as_deref(), budget, spent, fold, ..Asked::default() };
    match in_force(&asked, &files) {
        Ok(in_force) => checks.extend(in_force.rows.into_iter().map(|row| {
            let found = format!("{} = {} ({})", row.name, row.value, row.from);
            Check { name: "setting", good: true, found }
        })),
        Err(error) => checks.extend(bad(&error)),
    }
    checks.extend(keeping(&files));
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
        Ok(rows) => rows
            .into_iter()
            .map(|row| {
                let found = format!("{} = {} ({})", row.name, row.value, row.from);
                Check { name: "setting", good: true, found }
            })
            .collect(),
        Err(error) => vec![Check { name: "settings", good: false, found: format!("{error:#}") }],
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
