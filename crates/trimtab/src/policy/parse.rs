//! Policies from TOML. Takes the text; gives steps with every `$setting` resolved, or the sentence that says which key of
//! which step is wrong. Never accepts a key it does not know: a misspelt condition would select everything.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Act, Closing, Edited, Order, Policy, Redundancy, Select, Step, Style, What, When};
use crate::plan::Shows;

/// A policy that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy of that name ships.
    #[error("there is no policy {name:?}; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The text is not the TOML of a policy.
    #[error("policy {name:?}: {what}")]
    Toml {
        /// The policy.
        name: String,
        /// What is wrong, with its line.
        what: String,
    },
    /// A step says something that means nothing.
    #[error("policy {name:?}, step {step}: {what}")]
    Step {
        /// The policy.
        name: String,
        /// The step, counted from 1.
        step: usize,
        /// What is wrong.
        what: String,
    },
    /// A setting that the policy does not have.
    #[error("policy {name:?} has no setting {setting:?}; it has: {known}")]
    Setting {
        /// The policy.
        name: String,
        /// The setting.
        setting: String,
        /// The settings it has.
        known: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default)]
    settings: BTreeMap<String, f64>,
    #[serde(default)]
    closing: ClosingWord,
    #[serde(default)]
    plain_notes: Option<Number>,
    #[serde(default)]
    cold_ages: Option<Number>,
    #[serde(default, rename = "step")]
    steps: Vec<StepRow>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum ClosingWord {
    Nothing,
    #[default]
    Exchanges,
    Turns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepRow {
    when: String,
    #[serde(default)]
    only_if: Option<String>,
    #[serde(default)]
    select: SelectRow,
    #[serde(rename = "do")]
    act: String,
    #[serde(default)]
    matching: Vec<String>,
    #[serde(default)]
    above: Option<Number>,
    #[serde(default)]
    keep: Option<Number>,
    #[serde(default)]
    bytes: Option<Number>,
    #[serde(default)]
    head: Option<Number>,
    #[serde(default)]
    tail: Option<Number>,
    #[serde(default)]
    rule: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SelectRow {
    #[serde(default)]
    what: WhatWord,
    #[serde(default)]
    tools: Vec<String>,
    path: Option<String>,
    tokens_over: Option<Number>,
    chars_over: Option<Number>,
    older_than: Option<Number>,
    keep_last: Option<Number>,
    protect: Option<Number>,
    minimum: Option<Number>,
    #[serde(default)]
    spare_errors: bool,
    #[serde(default)]
    redundant: Vec<RedundancyWord>,
    rereads_beyond: Option<Number>,
    class_at_most: Option<Number>,
    #[serde(default)]
    shows: Vec<String>,
    results_after: Option<Number>,
    edited: Option<EditedWord>,
    #[serde(default)]
    turn_since: bool,
    #[serde(default)]
    order: OrderWord,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EditedWord {
    Since,
    Before,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum WhatWord {
    #[default]
    Results,
    Media,
    Answers,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum RedundancyWord {
    Superseded,
    Identical,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum OrderWord {
    #[default]
    Oldest,
    Priority,
}

/// A number, or the name of a setting as `"$name"`.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Number {
    Value(f64),
    Setting(String),
}

pub(super) fn parse(name: &str, toml: &str, changed: &[(String, f64)]) -> Result<Policy, PolicyError> {
    let file: File = toml::from_str(toml).map_err(|fault| PolicyError::Toml {
        name: name.to_owned(),
        what: fault.to_string().trim().replace('\n', " "),
    })?;
    let mut settings = file.settings;
    for (setting, value) in changed {
        let known = || settings.keys().cloned().collect::<Vec<_>>().join(", ");
        match settings.contains_key(setting) {
            true => drop(settings.insert(setting.clone(), *value)),
            false => {
                let (name, setting, known) = (name.to_owned(), setting.clone(), known());
                return Err(PolicyError::Setting { name, setting, known });
            }
        }
    }
    let resolve = Resolve { settings: &settings };
    let mut steps = Vec::new();
    for (index, row) in file.steps.iter().enumerate() {
        let wrong = |what| PolicyError::Step { name: name.to_owned(), step: index + 1, what };
        if resolve.switched_on(row.only_if.as_deref()).map_err(wrong)? {
            steps.push(step(row, &resolve).map_err(wrong)?);
        }
    }
    let plain = resolve.number(file.plain_notes.as_ref());
    let plain = plain.map_err(|what| PolicyError::Toml { name: name.to_owned(), what })?;
    let closing = match file.closing {
        ClosingWord::Nothing => Closing::Nothing,
        ClosingWord::Exchanges => Closing::Exchanges,
        ClosingWord::Turns => Closing::Turns,
    };
    let style = if plain.is_some_and(|plain| plain != 0.0) { Style::Plain } else { Style::Normal };
    let cold_ages = resolve.number(file.cold_ages.as_ref());
    let cold_ages =
        cold_ages.map_err(|what| PolicyError::Toml { name: name.to_owned(), what })?.unwrap_or(1.0);
    let settings = settings.into_iter().collect();
    Ok(Policy { name: name.to_owned(), about: file.about, settings, steps, closing, style, cold_ages })
}

struct Resolve<'a> {
    settings: &'a BTreeMap<String, f64>,
}

impl Resolve<'_> {
    fn number(&self, number: Option<&Number>) -> Result<Option<f64>, String> {
        match number {
            None => Ok(None),
            Some(Number::Value(value)) => Ok(Some(*value)),
            Some(Number::Setting(name)) => self.setting(name).map(Some),
        }
    }

    fn setting(&self, name: &str) -> Result<f64, String> {
        let bare =
            name.strip_prefix('$').ok_or_else(|| format!("{name:?} is neither a number nor a $setting"))?;
        self.settings.get(bare).copied().ok_or_else(|| format!("there is no setting {bare:?}"))
    }

    /// Tells whether a step with a switch is on: `$name`, or `not $name`.
    fn switched_on(&self, switch: Option<&str>) -> Result<bool, String> {
        match switch {
            None => Ok(true),
            Some(switch) => match switch.strip_prefix("not ") {
                Some(name) => Ok(self.setting(name)? == 0.0),
                None => Ok(self.setting(switch)? != 0.0),
            },
        }
    }
}

fn step(row: &StepRow, resolve: &Resolve<'_>) -> Result<Step, String> {
    Ok(Step {
        when: when(&row.when, resolve)?,
        select: select(&row.select, resolve)?,
        act: act(row, resolve)?,
        rule: row.rule.clone(),
    })
}

fn when(words: &str, resolve: &Resolve<'_>) -> Result<When, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let share = |word: &str| match word.parse::<f64>() {
        Ok(share) => Ok(share),
        Err(_) => resolve.setting(word),
    };
    match words.as_slice() {
        ["birth"] => Ok(When::Birth),
        ["cold"] => Ok(When::Cold),
        ["pays"] => Ok(When::Pays),
        ["always"] => Ok(When::Always),
        ["over", over] => Ok(When::Over { share: share(over)?, until: None }),
        ["over", over, "until", until] => Ok(When::Over { share: share(over)?, until: Some(share(until)?) }),
        _ => Err(format!(
            "when = {:?}: expected birth, cold, pays, always, or over SHARE [until SHARE]",
            words.join(" ")
        )),
    }
}

fn select(row: &SelectRow, resolve: &Resolve<'_>) -> Result<Select, String> {
    let redundant = row.redundant.iter().map(|word| match word {
        RedundancyWord::Superseded => Redundancy::Superseded,
        RedundancyWord::Identical => Redundancy::Identical,
    });
    Ok(Select {
        what: match row.what {
            WhatWord::Results => What::Results,
            WhatWord::Media => What::Media,
            WhatWord::Answers => What::Answers,
        },
        tools: row.tools.clone(),
        path: row.path.clone(),
        tokens_over: resolve.number(row.tokens_over.as_ref())?,
        chars_over: resolve.number(row.chars_over.as_ref())?,
        older_than: resolve.number(row.older_than.as_ref())?,
        keep_last: resolve.number(row.keep_last.as_ref())?,
        protect: resolve.number(row.protect.as_ref())?,
        minimum: resolve.number(row.minimum.as_ref())?,
        spare_errors: row.spare_errors,
        redundant: redundant.collect(),
        rereads_beyond: resolve.number(row.rereads_beyond.as_ref())?,
        class_at_most: resolve.number(row.class_at_most.as_ref())?,
        shows: row.shows.iter().map(|name| shows(name)).collect::<Result<_, _>>()?,
        results_after: resolve.number(row.results_after.as_ref())?,
        edited: row.edited.map(|word| match word {
            EditedWord::Since => Edited::Since,
            EditedWord::Before => Edited::Before,
        }),
        turn_since: row.turn_since,
        order: match row.order {
            OrderWord::Oldest => Order::Oldest,
            OrderWord::Priority => Order::Priority,
        },
    })
}

fn shows(name: &str) -> Result<Shows, String> {
    let found = Shows::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, shows)| *shows).ok_or_else(|| {
        let known = Shows::ALL.map(|(name, _)| name).join(", ");
        format!("shows = {name:?}: expected one of {known}")
    })
}

fn act(row: &StepRow, resolve: &Resolve<'_>) -> Result<Act, String> {
    let needed = |number: &Option<Number>, key: &str| {
        resolve.number(number.as_ref())?.ok_or_else(|| format!("do = {:?} needs {key}", row.act))
    };
    match row.act.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["pin"] => Ok(Act::Pin),
        ["digest"] => Ok(Act::Digest(None)),
        ["digest", name] => Ok(Act::Digest(Some((*name).to_owned()))),
        ["head-tail"] => {
            Ok(Act::HeadTail { above: needed(&row.above, "above")?, keep: needed(&row.keep, "keep")? })
        }
        ["head-tail-lines"] => {
            Ok(Act::HeadTailLines { head: needed(&row.head, "head")?, tail: needed(&row.tail, "tail")? })
        }
        ["middle-out"] => Ok(Act::MiddleOut { bytes: needed(&row.bytes, "bytes")? }),
        ["matching"] => Ok(Act::Matching(row.matching.clone())),
        ["names"] => Ok(Act::Names),
        ["clear"] => Ok(Act::Clear),
        ["drop"] => Ok(Act::Drop),
        ["fold"] => Ok(Act::Fold),
        _ => Err(format!(
            "do = {:?}: expected pin, digest [NAME], head-tail, head-tail-lines, middle-out, matching, names, clear, drop or fold",
            row.act
        )),
    }
}
