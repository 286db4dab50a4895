//! `trimtab doctor`: is this installation sound? Takes nothing; gives one line per check, and fails if one does.

use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;
use trimtab::{Counter, Format, Tokenizer, Tokens, Vocabulary, agents, models, parse, prices_date, write};

use crate::{args::Doctor, output::Output};

#[derive(Serialize)]
struct Check {
    name: &'static str,
    good: bool,
    found: String,
}

pub(crate) fn run(asked: &Doctor, out: &mut Output) -> Result<()> {
    let checks = [
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
            good: !models().is_empty(),
            found: format!("{}, prices of {}", models().len(), prices_date()),
        },
        settings(),
    ];
    if asked.json {
        out.json(&checks)?;
    } else {
        for Check { name, good, found } in &checks {
            out.line(format_args!("{} {name:11} {found}", if *good { "ok  " } else { "BAD " }))?;
        }
    }
    if checks.iter().any(|check| !check.good) {
        bail!("a check failed: this build does not work as it should");
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

/// Lists the settings that come from the environment.
fn settings() -> Check {
    let mut set: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| name.starts_with("TRIMTAB_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    set.sort();
    let found = if set.is_empty() { "no TRIMTAB_* variable is set".to_owned() } else { set.join(" ") };
    Check { name: "environment", good: true, found }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
