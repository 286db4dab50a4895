//! Settings about conversations that are kept: how long, and what of them is not shown. They come from flags and variables, else
//! from the user's file. A project's file may only add patterns of secrets: a project that was cloned must not decide what is
//! forgotten or shown.

use anyhow::Result;
use trimtab_core::{policy::ConfigFile, report::SettingRow as Row};
use trimtab_store::{Retention, Secrets};

use super::{SettingsFiles, wrong_usage};
use crate::args::{self, KeepLimitArgs};

/// Where a value of the command line comes from.
const FROM_FLAG: &str = "the command line or TRIMTAB_";

/// Returns how long conversations are kept, with where that comes from.
pub(crate) fn resolve_retention(
    asked: &KeepLimitArgs,
    files: &SettingsFiles,
) -> Result<(Retention, Vec<Row>)> {
    refuse_in_project(files)?;
    let user = files.user.as_ref();
    let age = user.and_then(|user| Some((user, user.keep_for.as_ref()?)));
    let size = user.and_then(|user| Some((user, user.keep_at_most.as_ref()?)));
    let mut rows = Vec::new();
    let keep_for = match (asked.keep_for, age) {
        (Some(age), _) => {
            rows.push(setting_row(
                "keep_for",
                format!("{}h", age / 3_600_000),
                format!("{FROM_FLAG}KEEP_FOR"),
            ));
            Some(age)
        }
        (None, Some((user, (words, line)))) => {
            rows.push(setting_row("keep_for", words.clone(), place_in_file(user, *line)));
            Some(args::parse_long_age(words).map_err(|what| wrong_in(user, *line, "keep_for", &what))?)
        }
        (None, None) => None,
    };
    let keep_at_most = match (asked.keep_at_most, size) {
        (Some(size), _) => {
            rows.push(setting_row("keep_at_most", size.to_string(), format!("{FROM_FLAG}KEEP_AT_MOST")));
            Some(size)
        }
        (None, Some((user, (words, line)))) => {
            rows.push(setting_row("keep_at_most", words.clone(), place_in_file(user, *line)));
            Some(args::parse_size(words).map_err(|what| wrong_in(user, *line, "keep_at_most", &what))?)
        }
        (None, None) => None,
    };
    Ok((Retention { keep_for, keep_at_most }, rows))
}

/// Returns what is covered in what is shown of conversations.
pub(crate) fn resolve_secrets(shown: bool, files: &SettingsFiles) -> Result<Secrets> {
    refuse_in_project(files)?;
    let by_file = files.user.as_ref().and_then(|user| user.show_secrets);
    if shown || by_file.is_some_and(|(shown, _)| shown) {
        return Ok(Secrets::none());
    }
    let mut secrets = Secrets::default();
    for config in files.existing_files() {
        let Some((patterns, line)) = &config.secret_patterns else { continue };
        for pattern in patterns {
            let added = secrets.add_pattern(pattern);
            added.map_err(|what| wrong_in(config, *line, "secret_patterns", &what))?;
        }
    }
    Ok(secrets)
}

fn refuse_in_project(files: &SettingsFiles) -> Result<()> {
    let Some(local) = &files.local else { return Ok(()) };
    let given = [
        ("keep_for", local.keep_for.as_ref().map(|(_, line)| *line)),
        ("keep_at_most", local.keep_at_most.as_ref().map(|(_, line)| *line)),
        ("show_secrets", local.show_secrets.map(|(_, line)| line)),
    ];
    let Some((name, line)) = given.into_iter().find_map(|(name, line)| Some((name, line?))) else {
        return Ok(());
    };
    Err(wrong_usage(format_args!(
        "{}: {name} is about the conversations of all projects: write it in the user's config.toml",
        place_in_file(local, line)
    )))
}

fn wrong_in(config: &ConfigFile, line: usize, name: &str, what: &str) -> anyhow::Error {
    wrong_usage(format_args!("{}: {name}: {what}", place_in_file(config, line)))
}

fn place_in_file(config: &ConfigFile, line: usize) -> String {
    format!("{}, line {line}", config.file)
}

fn setting_row(name: &str, value: String, from: String) -> Row {
    Row { name: name.to_owned(), value, from }
}
