//! What is in force, and where it comes from. Takes the command line, the environment, `./trimtab.toml` and the user's
//! `config.toml`, in this order of strength; gives the policy with every setting resolved. Never writes a file.

pub(crate) mod keeping;
pub(crate) mod marking;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::CommandFactory as _;
use trimtab_core::{
    Model, Policy, Tokens,
    policy::{
        Circumstances, ConfigFile, Folding, SettingInfo, all_settings, find_knob, nearest_knob, policies,
    },
    report::SettingRow as Row,
};

use crate::{
    args::{Amount, Args, FoldChoice},
    discovery::Machine,
    near::did_you_mean,
    output::print_note,
};

/// The policy where none is named.
pub(crate) const DEFAULT_POLICY: &str = "steady";

/// The setting that lets thresholds adapt.
const ADAPTIVE: &str = "adaptive";

/// The project's own file.
const LOCAL_FILE: &str = "trimtab.toml";

/// A mistake in what was asked for, on the command line, in the environment or in a file: exit code 2.
#[derive(Debug)]
pub(crate) struct WrongUsage(String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// Makes an error of something that was asked for in the wrong way.
pub(crate) fn wrong_usage(what: impl fmt::Display) -> anyhow::Error {
    WrongUsage(what.to_string()).into()
}

/// What the command line says.
#[derive(Debug, Default)]
pub(crate) struct CommandLineSettings<'a> {
    pub(crate) policy: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) budget: Option<Amount>,
    pub(crate) set: &'a [String],
    pub(crate) fold: Option<FoldChoice>,
    /// What the session has cost, in dollars.
    pub(crate) spent: f64,
    /// The model that the conversation names.
    pub(crate) said_model: Option<String>,
}

/// What is in force.
pub(crate) struct SettingsInForce {
    pub(crate) policy: Policy,
    pub(crate) model: Option<String>,
    pub(crate) budget: Option<Tokens>,
    pub(crate) folding: Folding,
    pub(crate) rows: Vec<Row>,
}

/// The files that settings come from, the weaker first.
pub(crate) struct SettingsFiles {
    /// Where the user's file is looked for, where the system tells.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) user: Option<ConfigFile>,
    pub(crate) local: Option<ConfigFile>,
}

impl SettingsFiles {
    /// Reads the files that are there.
    pub(crate) fn read() -> Result<SettingsFiles> {
        let user_file = user_file("config.toml");
        let user = user_file.as_deref().map(read_config).transpose()?.flatten();
        Ok(SettingsFiles { user_file, user, local: read_config(Path::new(LOCAL_FILE))? })
    }

    /// Returns the files that are there, the weaker first.
    pub(crate) fn existing_files(&self) -> impl Iterator<Item = &ConfigFile> {
        self.user.iter().chain(&self.local)
    }
}

/// Returns where a file of the user's settings stands.
pub(crate) fn user_file(name: &str) -> Option<PathBuf> {
    Some(Machine::this().settings_folder()?.join("trimtab").join(name))
}

fn read_config(file: &Path) -> Result<Option<ConfigFile>> {
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => ConfigFile::parse(&name, &text).map(Some).map_err(wrong_usage),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("{name}: cannot be read")),
    }
}

/// Resolves what is in force.
pub(crate) fn in_force(asked: &CommandLineSettings<'_>, files: &SettingsFiles) -> Result<SettingsInForce> {
    let (model, model_row) = resolve_model(asked, files);
    let known = model.as_deref().and_then(|model| crate::prices::find_model(model).ok());
    let (name, policy_from) = policy_name(asked, files);
    let toml = policy_text(&name, &policy_from)?;
    let circumstances =
        Circumstances { window: known.as_ref().map(|model| model.window), spent: asked.spent };
    let plain = Policy::from_toml(&name, &toml, &[]).map_err(wrong_usage)?;
    let has_switch = plain.settings.iter().any(|(setting, _)| setting == ADAPTIVE);
    let switch = if has_switch { from_layers(ADAPTIVE, &name, asked, files)? } else { None };
    let switch: Vec<(String, f64)> =
        switch.map(|(value, _)| (ADAPTIVE.to_owned(), value)).into_iter().collect();
    let adapted = Policy::from_toml_adapted(&name, &toml, &switch, &circumstances).map_err(wrong_usage)?;
    let mut changed: Vec<(String, f64)> = Vec::new();
    let mut rows = vec![Row { name: "policy".to_owned(), value: name.clone(), from: policy_from }];
    rows.extend(model_row);
    for ((setting, default), (_, value)) in plain.settings.iter().zip(&adapted.settings) {
        let found = from_layers(setting, &name, asked, files)?;
        let knob = find_knob(setting);
        let written = |value: f64| knob.map_or_else(|| value.to_string(), |knob| knob.format_value(value));
        let (value, from) = match found {
            Some((value, from)) => {
                changed.push((setting.clone(), value));
                (value, from)
            }
            None if value != default => (*value, format!("adapted, default {}", written(*default))),
            None => (*value, "default".to_owned()),
        };
        rows.push(Row { name: setting.clone(), value: written(value), from });
    }
    refuse_settings_of_other_policies(&plain, asked, files)?;
    let mut policy =
        Policy::from_toml_adapted(&name, &toml, &changed, &circumstances).map_err(wrong_usage)?;
    for config in files.existing_files() {
        policy = policy.with_config(config);
        rows.extend(config.upstreams.iter().map(|upstream| {
            let models = upstream.model_prefix.as_ref().map(|prefix| format!("models {prefix}*"));
            let value: Vec<String> = upstream.url.clone().into_iter().chain(models).collect();
            Row {
                name: format!("upstream.{}", upstream.name),
                value: value.join(", "),
                from: format!("{}, line {}", config.file, upstream.line),
            }
        }));
        if config.rule_count() > 0 {
            let value = config.rule_count().to_string();
            rows.push(Row { name: "rules".to_owned(), value, from: config.file.clone() });
        }
    }
    let (budget, budget_row) = resolve_budget(asked, files, &policy, known.as_ref())?;
    rows.extend(budget_row);
    let (folding, fold_row) = resolve_folding(asked, files);
    rows.push(fold_row);
    Ok(SettingsInForce { policy, model, budget, folding, rows })
}

/// Refuses a setting that the policy in force does not have, wherever it is set for every policy.
fn refuse_settings_of_other_policies(
    policy: &Policy,
    asked: &CommandLineSettings<'_>,
    files: &SettingsFiles,
) -> Result<()> {
    let mut given: Vec<(String, String)> = Vec::new();
    for words in asked.set {
        given.push((parse_assignment(words)?.0, format!("--set {words}")));
    }
    for knob in all_settings() {
        let variable = knob.variable_name();
        if std::env::var_os(&variable).is_some() {
            given.push((knob.name.to_owned(), variable));
        }
    }
    for config in files.existing_files() {
        let for_all = config.settings.iter().filter(|setting| setting.policy.is_none());
        given.extend(
            for_all.map(|setting| (setting.name.clone(), format!("{}, line {}", config.file, setting.line))),
        );
    }
    for (setting, place) in given {
        policy.check_setting(&setting).map_err(|fault| wrong_usage(format_args!("{place}: {fault}")))?;
    }
    Ok(())
}

fn resolve_folding(asked: &CommandLineSettings<'_>, files: &SettingsFiles) -> (Folding, Row) {
    let from_file = files.existing_files().filter_map(|config| Some((config.fold?, &config.file))).last();
    let (folding, from) = match (asked.fold, from_file) {
        (Some(fold), _) => (fold.to_folding(), "the command line or TRIMTAB_FOLD".to_owned()),
        (None, Some(((folding, line), file))) => (folding, format!("{file}, line {line}")),
        (None, None) => (Folding::default(), "default".to_owned()),
    };
    (folding, Row { name: "fold".to_owned(), value: folding.name().to_owned(), from })
}

fn resolve_model(asked: &CommandLineSettings<'_>, files: &SettingsFiles) -> (Option<String>, Option<Row>) {
    let from_file =
        files.existing_files().filter_map(|config| Some((config.model.as_ref()?, &config.file))).last();
    let (model, from) = match (asked.model, from_file, &asked.said_model) {
        (Some(model), _, _) => (model.to_owned(), "the command line or TRIMTAB_MODEL".to_owned()),
        (None, Some(((model, line), file)), _) => (model.clone(), format!("{file}, line {line}")),
        (None, None, Some(model)) => (model.clone(), "the conversation".to_owned()),
        (None, None, None) => return (None, None),
    };
    let row = Row { name: "model".to_owned(), value: model.clone(), from };
    (Some(model), Some(row))
}

fn policy_name(asked: &CommandLineSettings<'_>, files: &SettingsFiles) -> (String, String) {
    let from_file =
        files.existing_files().filter_map(|config| Some((config.policy.as_ref()?, &config.file))).last();
    match (asked.policy, from_file) {
        (Some(name), _) => (name.to_owned(), "the command line or TRIMTAB_POLICY".to_owned()),
        (None, Some(((name, line), file))) => (name.clone(), format!("{file}, line {line}")),
        (None, None) => (DEFAULT_POLICY.to_owned(), "default".to_owned()),
    }
}

/// Returns the TOML of a policy that ships, or of a file.
fn policy_text(name: &str, from: &str) -> Result<String> {
    if let Some((_, toml)) = policies().find(|(shipped, _)| *shipped == name) {
        return Ok(toml.to_owned());
    }
    if Path::new(name).extension().is_some_and(|kind| kind == "toml") {
        return std::fs::read_to_string(name).with_context(|| format!("{name}: the policy cannot be read"));
    }
    let names: Vec<&str> = policies().map(|(name, _)| name).collect();
    let place = if from.contains(", line ") { format!("{from}: ") } else { String::new() };
    Err(wrong_usage(format_args!("{place}{}", unknown_policy(name, &names))))
}

/// Says that there is no such policy, and what there is.
pub(crate) fn unknown_policy(name: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known);
    let known = known.join(", ");
    format!("there is no policy {name:?}{near}: there are {known}; or name a file that ends in .toml")
}

/// Finds a setting in the layers, the strongest first.
fn from_layers(
    setting: &str,
    policy: &str,
    asked: &CommandLineSettings<'_>,
    files: &SettingsFiles,
) -> Result<Option<(f64, String)>> {
    for words in asked.set.iter().rev() {
        let (name, value) = parse_assignment(words)?;
        if name == setting {
            return Ok(Some((value, format!("--set {words}"))));
        }
    }
    let own = format!("TRIMTAB_{}", setting.to_uppercase());
    let alias = find_knob(setting).and_then(|knob| knob.alias.map(str::to_owned));
    for variable in std::iter::once(own).chain(alias) {
        if let Some(words) = std::env::var_os(&variable) {
            let words = words.to_string_lossy();
            let value =
                read(setting, &words).map_err(|what| wrong_usage(format_args!("{variable}: {what}")))?;
            return Ok(Some((value, variable)));
        }
    }
    for config in files.local.iter().chain(&files.user) {
        let of_all = config.settings.iter().filter(|found| found.name == setting && found.policy.is_none());
        let of_this = config
            .settings
            .iter()
            .filter(|found| found.name == setting && found.policy.as_deref() == Some(policy));
        if let Some(found) = of_all.chain(of_this).last() {
            return Ok(Some((found.value, format!("{}, line {}", config.file, found.line))));
        }
    }
    Ok(None)
}

/// Reads `NAME=VALUE`.
fn parse_assignment(words: &str) -> Result<(String, f64)> {
    let (name, value) = words
        .split_once('=')
        .ok_or_else(|| wrong_usage(format_args!("--set {words}: write NAME=VALUE, such as keep_last=5")))?;
    let value =
        read(name.trim(), value).map_err(|what| wrong_usage(format_args!("--set {words}: {what}")))?;
    Ok((name.trim().to_owned(), value))
}

/// Reads a value: in its unit where the setting is known, else a number, true or false.
fn read(setting: &str, words: &str) -> Result<f64, String> {
    if let Some(knob) = find_knob(setting) {
        return knob.read(words);
    }
    match words.trim() {
        "true" => Ok(1.0),
        "false" => Ok(0.0),
        words => words.parse().map_err(|_| format!("{words:?} is neither a number nor true or false")),
    }
}

fn resolve_budget(
    asked: &CommandLineSettings<'_>,
    files: &SettingsFiles,
    policy: &Policy,
    known: Option<&Model>,
) -> Result<(Option<Tokens>, Option<Row>)> {
    let row = |tokens: u64, from: String| {
        (Some(Tokens(tokens)), Some(Row { name: "budget".to_owned(), value: tokens.to_string(), from }))
    };
    let asked_tokens = match asked.budget {
        Some(Amount::Share(share)) => {
            let window = known.map(|model| model.window).ok_or_else(|| {
                wrong_usage("a budget in per cent is a share of the model's window, and no model that is known is named: --model NAME names one")
            })?;
            Some(window.scale(share).0)
        }
        Some(Amount::Tokens(tokens)) => Some(tokens.0),
        None => None,
    };
    let from_file = files.existing_files().filter_map(|config| Some((config.budget?, &config.file))).last();
    Ok(match (asked_tokens, from_file, policy.max_context()) {
        (Some(tokens), _, _) => row(tokens, "the command line or TRIMTAB_BUDGET".to_owned()),
        (None, Some(((tokens, line), file)), _) => row(tokens, format!("{file}, line {line}")),
        // Where the model's window leaves less, the library takes that.
        (None, None, Some(most)) => match known.map(|model| model.request_budget(Tokens::ZERO)) {
            Some(window) if window <= most => (None, None),
            Some(_) | None => row(most.0, "max_context".to_owned()),
        },
        (None, None, None) => (None, None),
    })
}

/// Names variables that look like settings and are none, each with the nearest that is.
pub(crate) fn unknown_variables() -> Vec<String> {
    let of_flags = flag_variables(&Args::command());
    // What only the project's own tests read.
    let of_tests = ["TRIMTAB_BLESS", "TRIMTAB_CASES", "TRIMTAB_FIT_CASES"];
    let known = |name: &str| {
        of_flags.iter().any(|known| known == name)
            || of_tests.contains(&name)
            || find_knob(&name.trim_start_matches("TRIMTAB_").to_lowercase()).is_some()
    };
    let names = environment_variables("TRIMTAB_").into_iter().map(|(name, _)| name);
    names
        .filter(|name| !known(name))
        .map(|name| match nearest_knob(&name.trim_start_matches("TRIMTAB_").to_lowercase()) {
            Some(near) => format!("{name}, nearest TRIMTAB_{}", near.to_uppercase()),
            None => name,
        })
        .collect()
}

/// Says which variables look like settings and are none.
pub(crate) fn warn_of_unknown_variables() {
    for variable in unknown_variables() {
        print_note(format_args!("the environment has {variable}, which is not a setting"));
    }
}

/// Returns the variables that a command's flags are read from, and those of the commands below it.
fn flag_variables(command: &clap::Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|flag| Some(flag.get_env()?.to_string_lossy().into_owned()));
    own.chain(command.get_subcommands().flat_map(flag_variables)).collect()
}

/// Returns the settings that are set under another program's name, with those that a name of ours outweighs.
pub(crate) fn foreign_variables() -> Vec<String> {
    let aliases = all_settings().iter().filter_map(|knob: &SettingInfo| Some((knob, knob.alias?)));
    let found = aliases.filter_map(|(knob, alias)| {
        let value = std::env::var_os(alias)?;
        let outweighed = std::env::var_os(knob.variable_name()).is_some();
        let end =
            if outweighed { format!(", outweighed by {}", knob.variable_name()) } else { String::new() };
        Some(format!("{alias}={}{end}", value.to_string_lossy()))
    });
    found.collect()
}

/// Returns the variables of the environment whose names begin so, sorted.
pub(crate) fn environment_variables(start: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| name.starts_with(start))
        .collect();
    found.sort();
    found
}
