//! Policies from TOML. Takes the text; gives steps with every `$setting` resolved, or the sentence that says which key of
//! which step is wrong. Never accepts a key it does not know: a misspelt condition would select everything.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Act, Batch, Circumstances, Closing, Edited, Order, Policy, Redundancy, Rule, SHARED, SHIPPED, Select,
    Step, Style, What, When,
    adapt::{ADAPTIVE, adapted},
    rules::rules,
    source::{Source, nearest},
};
use crate::{
    digest::{self, Inputs},
    facts::Shows,
};

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
    /// A file says something that is not understood.
    #[error("{file}, line {line}: {what}")]
    At {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what to write instead.
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
struct File {
    #[serde(default)]
    about: String,
    /// A shipped policy whose steps follow the file's own.
    base: Option<String>,
    /// Lists of steps that several policies share; they come before the file's own.
    #[serde(default)]
    include: Vec<String>,
    /// The same, behind the file's own.
    #[serde(default)]
    include_last: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, f64>,
    closing: Option<ClosingWord>,
    plain_notes: Option<Number>,
    #[serde(default)]
    cold_ages: Option<Number>,
    #[serde(default, rename = "step")]
    steps: Vec<StepRow>,
    /// Read with their places by [`rules`].
    #[serde(default, rename = "rule")]
    _rules: Option<toml::Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum ClosingWord {
    Nothing,
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
    share: Option<Number>,
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
    bytes_over: Option<Number>,
    share_over: Option<Number>,
    older_than: Option<Number>,
    keep_last: Option<Number>,
    protect: Option<Number>,
    minimum: Option<Number>,
    #[serde(default)]
    spare_errors: bool,
    #[serde(default)]
    redundant: Vec<RedundancyWord>,
    rereads_beyond: Option<Number>,
    edits_beyond: Option<Number>,
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
    Calls,
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
    Overdue,
}

/// A number, or the name of a setting as `"$name"`.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Number {
    Value(f64),
    Setting(String),
}

/// How far policies go that name no `low_water` of their own (a study of recorded sessions: nearly all of what deeper cuts save,
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
    let source = Source { file: name, text: toml };
    let whole = gather(source)?;
    let mut settings = whole.settings;
    if !whole.steps.is_empty() {
        for (general, value) in GENERAL {
            settings.entry(general.to_owned()).or_insert(value);
        }
    }
    let asked = changed.iter().rev().find(|(setting, _)| setting == ADAPTIVE).map(|(_, value)| *value);
    if asked.or_else(|| settings.get(ADAPTIVE).copied()).is_some_and(|adaptive| adaptive != 0.0) {
        for (setting, value) in &mut settings {
            *value = adapted(setting, *value, circumstances);
        }
    }
    for (setting, value) in changed {
        if settings.contains_key(setting) {
            settings.insert(setting.clone(), *value);
        } else {
            return Err(no_setting(name, setting, &settings));
        }
    }
    let resolve = Resolve { settings: &settings };
    let mut steps = Vec::new();
    for (index, row) in whole.steps.iter().enumerate() {
        let wrong = |what| PolicyError::Step { name: name.to_owned(), step: index + 1, what };
        if resolve.switched_on(row.only_if.as_deref()).map_err(wrong)? {
            steps.push(step(row, &resolve).map_err(wrong)?);
        }
    }
    let plain = match &whole.plain_notes {
        Some(Number::Setting(switch)) => resolve.switched_on(Some(switch)),
        other => resolve.number(other.as_ref()).map(|plain| plain.is_some_and(|plain| plain != 0.0)),
    };
    let plain = plain.map_err(|what| source.fault(&(0..0), format!("plain_notes: {what}")))?;
    let cold_ages = resolve.number(whole.cold_ages.as_ref());
    let cold_ages = cold_ages.map_err(|what| source.fault(&(0..0), format!("cold_ages: {what}")))?;
    let general = |name: &str| settings.get(name).copied();
    let batch = match general("batch").map_or(0, whole_number) {
        0 => Batch::WhatPays,
        results => Batch::Results(results),
    };
    let policy = Policy {
        name: name.to_owned(),
        about: whole.about,
        steps,
        closing: match whole.closing {
            Some(ClosingWord::Nothing) => Closing::Nothing,
            None | Some(ClosingWord::Exchanges) => Closing::Exchanges,
            Some(ClosingWord::Turns) => Closing::Turns,
        },
        style: if plain { Style::Plain } else { Style::Normal },
        cold_ages: cold_ages.unwrap_or(1.0),
        recent_steps: general("preserve_recent").map_or(5, whole_number),
        batch,
        room: match batch {
            Batch::EACH => 1.0,
            Batch::WhatPays | Batch::Results(_) => general("low_water").unwrap_or(ROOM),
        },
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
        nearest(setting, &known).map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
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
struct Whole {
    about: String,
    settings: BTreeMap<String, f64>,
    closing: Option<ClosingWord>,
    plain_notes: Option<Number>,
    cold_ages: Option<Number>,
    steps: Vec<StepRow>,
    rules: Vec<Rule>,
}

/// Puts together what a file includes, says itself and builds on.
fn gather(source: Source<'_>) -> Result<Whole, PolicyError> {
    let file: File = toml::from_str(source.text).map_err(|fault| source.toml_fault(&fault))?;
    let table = toml::de::DeTable::parse(source.text).map_err(|fault| source.toml_fault(&fault))?;
    let written = table.get_ref().iter().find(|(key, _)| key.get_ref().as_ref() == "rule");
    let rules = written.map(|(_, list)| rules(source, list)).transpose()?.unwrap_or_default();
    let place = |key: &str| {
        let found = table.get_ref().iter().find(|(name, _)| name.get_ref().as_ref() == key);
        found.map(|(_, value)| value.span()).unwrap_or_default()
    };
    let mut settings = BTreeMap::new();
    let mut steps = Vec::new();
    let shared_steps = |key: &str, name: &String| {
        let shared = SHARED.iter().find(|(shared, _)| shared == name).ok_or_else(|| {
            let known: Vec<&str> = SHARED.iter().map(|(shared, _)| *shared).collect();
            source.fault(
                &place(key),
                format!("there is nothing called {name:?} to include; there are: {}", known.join(", ")),
            )
        })?;
        gather(Source { file: shared.0, text: shared.1 })
    };
    for name in &file.include {
        let included = shared_steps("include", name)?;
        settings.extend(included.settings);
        steps.extend(included.steps);
    }
    steps.extend(file.steps);
    for name in &file.include_last {
        let included = shared_steps("include_last", name)?;
        settings.extend(included.settings);
        steps.extend(included.steps);
    }
    let mut whole = Whole {
        about: file.about,
        settings,
        closing: file.closing,
        plain_notes: file.plain_notes,
        cold_ages: file.cold_ages,
        steps,
        rules,
    };
    if let Some(name) = &file.base {
        let base = SHIPPED.iter().find(|(shipped, _)| shipped == name).ok_or_else(|| {
            source.fault(
                &place("base"),
                format!("there is no policy {name:?} to build on; there are: {}", super::names()),
            )
        })?;
        let base = gather(Source { file: base.0, text: base.1 })?;
        whole.settings.extend(base.settings);
        whole.steps.extend(base.steps);
        whole.closing = whole.closing.or(base.closing);
        whole.plain_notes = whole.plain_notes.or(base.plain_notes);
        whole.cold_ages = whole.cold_ages.or(base.cold_ages);
    }
    whole.settings.extend(file.settings);
    if !whole.rules.is_empty()
        || !whole.steps.is_empty()
        || whole.closing.is_some()
        || !whole.settings.is_empty()
    {
        return Ok(whole);
    }
    let what = "this is no policy: it has neither a [[step]] nor a [[rule]]; begin with base = \"steady\" and add a [[rule]]";
    Err(source.fault(&(0..0), what.to_owned()))
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
    let step = Step {
        when: when_words(&row.when, &|name| resolve.settings.get(name).copied())?,
        select: select(&row.select, resolve)?,
        act: act(row, resolve)?,
        rule: row.rule.clone(),
    };
    let of_calls = step.select.what == What::Calls;
    match step.act {
        Act::Inputs(_) if !of_calls => Err("do = \"inputs\" needs select = { what = \"calls\" }".to_owned()),
        Act::Inputs(_) | Act::Pin | Act::Hold | Act::Drop => Ok(step),
        _ if of_calls => Err(format!(
            "do = {:?}: the arguments of calls stay JSON; write do = \"inputs\" to shorten them",
            row.act
        )),
        _ => Ok(step),
    }
}

/// Reads the words that say when a step is taken; `setting` gives the value of a setting by its name.
pub(super) fn when_words(words: &str, setting: &dyn Fn(&str) -> Option<f64>) -> Result<When, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let share = |word: &str| match (word.parse::<f64>(), word.strip_prefix('$')) {
        (Ok(share), _) => Ok(share),
        (Err(_), Some(name)) => setting(name).ok_or_else(|| format!("there is no setting {name:?}")),
        (Err(_), None) => Err(format!("{word:?} is neither a share such as 0.75 nor a $setting")),
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
            WhatWord::Calls => What::Calls,
        },
        tools: row.tools.clone(),
        path: row.path.clone(),
        tokens_over: resolve.number(row.tokens_over.as_ref())?,
        chars_over: resolve.number(row.chars_over.as_ref())?,
        bytes_over: resolve.number(row.bytes_over.as_ref())?,
        share_over: resolve.number(row.share_over.as_ref())?,
        older_than: resolve.number(row.older_than.as_ref())?,
        keep_last: resolve.number(row.keep_last.as_ref())?,
        protect: resolve.number(row.protect.as_ref())?,
        minimum: resolve.number(row.minimum.as_ref())?,
        spare_errors: row.spare_errors,
        redundant: redundant.collect(),
        rereads_beyond: resolve.number(row.rereads_beyond.as_ref())?,
        edits_beyond: resolve.number(row.edits_beyond.as_ref())?,
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
            OrderWord::Overdue => Order::Overdue,
        },
        but_not: Vec::new(),
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
        ["hold"] => Ok(Act::Hold),
        ["inputs"] => Ok(Act::Inputs(match resolve.settings.get("inputs") {
            Some(value) if *value >= 2.0 => Inputs::All,
            Some(value) if *value >= 1.0 => Inputs::Safe,
            Some(_) | None => Inputs::Off,
        })),
        ["digest"] => Ok(Act::Digest(None)),
        ["digest", name] if digest::find_digest(name).is_some() => Ok(Act::Digest(Some((*name).to_owned()))),
        ["digest", name] => Err(format!("there is no digest {name:?}; `trimtab policies` lists them")),
        ["head-tail-chars"] => {
            Ok(Act::HeadTail { above: needed(&row.above, "above")?, keep: needed(&row.keep, "keep")? })
        }
        ["head-tail"] => {
            Ok(Act::HeadTailLines { head: needed(&row.head, "head")?, tail: needed(&row.tail, "tail")? })
        }
        ["middle-out"] => Ok(Act::MiddleOut { bytes: needed(&row.bytes, "bytes")? }),
        ["cap"] => Ok(Act::Cap { share: needed(&row.share, "share")? }),
        ["names"] => Ok(Act::Names),
        ["seen"] => Ok(Act::Seen),
        ["matching"] => match row.matching.iter().find(|pattern| regex::Regex::new(pattern).is_err()) {
            Some(wrong) => Err(format!("matching: {wrong:?} is no regular expression")),
            None => Ok(Act::Matching(row.matching.clone())),
        },
        ["clear"] => Ok(Act::Clear),
        ["drop"] => Ok(Act::Drop),
        ["fold"] => Ok(Act::Fold),
        _ => Err(format!(
            "do = {:?}: expected pin, hold, digest [NAME], head-tail, head-tail-chars, middle-out, cap, matching, names, seen, inputs, clear, drop or fold",
            row.act
        )),
    }
}
