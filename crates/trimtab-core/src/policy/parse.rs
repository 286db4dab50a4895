//! Policies from TOML. Takes the text; gives steps with every `$setting` resolved, or the sentence that says which key of
//! which step is wrong. Never accepts a key it does not know: a misspelt condition would select everything.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::{
    BatchSize, Circumstances, ClosingRule, NeedTable, NoteStyle, ParsedRule, Policy, SHARED, SHIPPED,
    adapt::{ADAPTIVE, adapt_setting},
    all_settings::SettingUnit,
    rows::{NumberOrSetting, RowReader, RuleRow, StepRow, read_rules},
    source::{TomlSource, nearest_word},
};

/// A policy that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy of that name ships.
    #[error("there is no policy {name:?}; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A file says something that is not understood.
    #[error("{file}, line {line}, column {column}: {what}")]
    At {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// A setting that only other policies have.
    #[error("policy {name:?} has no setting {setting:?}; these have it: {owners}")]
    OtherPolicy {
        /// The policy.
        name: String,
        /// The setting.
        setting: String,
        /// The policies that have it.
        owners: String,
    },
    /// A setting that no policy has.
    #[error("policy {name:?} has no setting {setting:?}{nearest}; it has: {known}")]
    Setting {
        /// The policy.
        name: String,
        /// The setting.
        setting: String,
        /// A question after the nearest one, where one is near.
        nearest: String,
        /// The settings it has.
        known: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    about: String,
    /// A shipped policy whose steps follow the file's own.
    base: Option<Spanned<String>>,
    /// Lists of steps that several policies share; they come before the file's own.
    #[serde(default)]
    include: Vec<Spanned<String>>,
    /// The same, after the file's own.
    #[serde(default)]
    include_last: Vec<Spanned<String>>,
    #[serde(default)]
    settings: BTreeMap<String, f64>,
    closing: Option<ClosingRule>,
    plain_notes: Option<Spanned<NumberOrSetting>>,
    cold_ages: Option<Spanned<NumberOrSetting>>,
    /// A table of needs in the place of the one that ships.
    needs: Option<Spanned<String>>,
    #[serde(default, rename = "step")]
    steps: Vec<Spanned<StepRow>>,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleRow>>,
}

/// How far policies go that name no `low_water` (a study of recorded sessions: nearly all of what deeper cuts save,
/// at hardly any loss).
const ROOM: f64 = 0.9;

/// Settings that every policy has which hides anything.
const GENERAL: [(&str, f64); 3] = [("batch", 0.0), ("inputs", 0.0), ("preserve_recent", 5.0)];

pub(super) fn parse(
    name: &str,
    toml: &str,
    changed: &[(String, f64)],
    circumstances: &Circumstances,
) -> Result<Policy, PolicyError> {
    let source = TomlSource { file: name, text: toml };
    let whole = gather_files(source)?;
    let mut settings = whole.settings;
    if !whole.steps.is_empty() {
        for (general, value) in GENERAL {
            settings.entry(general.to_owned()).or_insert(value);
        }
    }
    let asked = changed.iter().rev().find(|(setting, _)| setting == ADAPTIVE).map(|(_, value)| *value);
    if asked.or_else(|| settings.get(ADAPTIVE).copied()).is_some_and(|adaptive| adaptive != 0.0) {
        for (setting, value) in &mut settings {
            *value = adapt_setting(setting, *value, circumstances);
        }
    }
    for (setting, value) in changed {
        if settings.contains_key(setting) {
            settings.insert(setting.clone(), *value);
        } else {
            return Err(no_setting(name, setting, &settings));
        }
    }
    let mut steps = Vec::new();
    for (source, row) in &whole.steps {
        let reader = RowReader { source: *source, settings: &settings };
        if reader.is_on(row.get_ref().only_if.as_ref())? {
            steps.push(reader.read_step(row)?);
        }
    }
    let reader = RowReader { source, settings: &settings };
    let plain = match whole.plain_notes.as_ref().map(|plain| (plain.get_ref(), plain.span())) {
        Some((NumberOrSetting::Text(switch), at)) => reader.is_on(Some(&Spanned::new(at, switch.clone())))?,
        Some((NumberOrSetting::Value(plain), _)) => *plain != 0.0,
        None => false,
    };
    let cold_ages = reader.read_number("cold_ages", SettingUnit::Share, whole.cold_ages.as_ref())?;
    let general = |name: &str| settings.get(name).copied();
    let batch = match general("batch").map_or(0, whole_number) {
        0 => BatchSize::WhatPays,
        results => BatchSize::Results(results),
    };
    let policy = Policy {
        name: name.to_owned(),
        about: whole.about,
        steps,
        closing: whole.closing.unwrap_or_default(),
        style: if plain { NoteStyle::Plain } else { NoteStyle::Normal },
        cold_ages: cold_ages.unwrap_or(1.0),
        recent_steps: general("preserve_recent").map_or(5, whole_number),
        batch,
        room: match batch {
            BatchSize::EACH => 1.0,
            BatchSize::WhatPays | BatchSize::Results(_) => general("low_water").unwrap_or(ROOM),
        },
        needs: whole.needs.unwrap_or_else(NeedTable::find_shipped),
        inputs_under_pressure: general("inputs_under_pressure").is_some_and(|on| on != 0.0),
        settings: settings.into_iter().collect(),
    };
    Ok(policy.with_rules(&whole.rules))
}

pub(super) fn no_setting(name: &str, setting: &str, settings: &BTreeMap<String, f64>) -> PolicyError {
    let known: Vec<&str> = settings.keys().map(String::as_str).collect();
    let owners = super::policies_with(setting);
    if !owners.is_empty() {
        return PolicyError::OtherPolicy {
            name: name.to_owned(),
            setting: setting.to_owned(),
            owners: owners.join(", "),
        };
    }
    let nearest =
        nearest_word(setting, &known).map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
    PolicyError::Setting {
        name: name.to_owned(),
        setting: setting.to_owned(),
        nearest,
        known: known.join(", "),
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float beyond u32 saturates"
)]
fn whole_number(value: f64) -> u32 {
    value.max(0.0) as u32
}

/// A file with everything that it includes and builds on.
struct ResolvedFile<'a> {
    about: String,
    settings: BTreeMap<String, f64>,
    closing: Option<ClosingRule>,
    plain_notes: Option<Spanned<NumberOrSetting>>,
    cold_ages: Option<Spanned<NumberOrSetting>>,
    needs: Option<NeedTable>,
    steps: Vec<(TomlSource<'a>, Spanned<StepRow>)>,
    rules: Vec<ParsedRule>,
}

/// Finds a text among those that ship, by the name that a file gives.
fn find_shipped(
    source: TomlSource<'_>,
    name: &Spanned<String>,
    among: &'static [(&str, &str)],
    purpose: &str,
) -> Result<ResolvedFile<'static>, PolicyError> {
    let Some((file, text)) = among.iter().find(|(known, _)| known == name.get_ref()) else {
        let known: Vec<&str> = among.iter().map(|(known, _)| *known).collect();
        let what = format!("there is {purpose}; there are: {}", known.join(", "));
        return Err(source.fault_at(&name.span(), what));
    };
    gather_files(TomlSource { file, text })
}

fn read_needs(source: TomlSource<'_>, needs: &Spanned<String>) -> Result<NeedTable, PolicyError> {
    NeedTable::read(needs.get_ref()).map_err(|what| source.fault_at(&needs.span(), format!("needs: {what}")))
}

/// Puts together what a file includes, says itself and builds on.
fn gather_files(source: TomlSource<'_>) -> Result<ResolvedFile<'_>, PolicyError> {
    let file: PolicyFile = toml::from_str(source.text).map_err(|fault| source.toml_fault(&fault))?;
    let mut settings = BTreeMap::new();
    let mut steps = Vec::new();
    let own = file.steps.into_iter().map(|row| (source, row));
    let include = |name: &Spanned<String>| {
        let purpose = format!("nothing called {:?} to include", name.get_ref());
        find_shipped(source, name, SHARED, &purpose)
    };
    for name in &file.include {
        let included = include(name)?;
        settings.extend(included.settings);
        steps.extend(included.steps);
    }
    steps.extend(own);
    for name in &file.include_last {
        let included = include(name)?;
        settings.extend(included.settings);
        steps.extend(included.steps);
    }
    let mut whole = ResolvedFile {
        about: file.about,
        settings,
        closing: file.closing,
        plain_notes: file.plain_notes,
        cold_ages: file.cold_ages,
        needs: file.needs.map(|needs| read_needs(source, &needs)).transpose()?,
        steps,
        rules: read_rules(source, file.rules)?,
    };
    if let Some(name) = &file.base {
        let base =
            find_shipped(source, name, SHIPPED, &format!("no policy {:?} to build on", name.get_ref()))?;
        whole.settings.extend(base.settings);
        whole.steps.extend(base.steps);
        whole.closing = whole.closing.or(base.closing);
        whole.plain_notes = whole.plain_notes.or(base.plain_notes);
        whole.cold_ages = whole.cold_ages.or(base.cold_ages);
        whole.needs = whole.needs.or(base.needs);
    }
    whole.settings.extend(file.settings);
    if whole.rules.is_empty()
        && whole.steps.is_empty()
        && whole.closing.is_none()
        && whole.settings.is_empty()
    {
        let what = "this is no policy: it has neither a [[step]] nor a [[rule]]; begin with base = \"steady\" and add a [[rule]]";
        return Err(source.fault_at(&(0..0), what.to_owned()));
    }
    Ok(whole)
}
