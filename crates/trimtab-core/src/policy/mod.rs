//! What may be hidden, and when: policies as data. Takes TOML, shipped or the user's own; gives steps of `when`, `select`
//! and `do` whose numbers are resolved. Never looks at a conversation: `plan` runs the steps.

mod adapt;
mod all_settings;
mod config;
mod needs;
mod parse;
mod rows;
mod source;
mod switches;

pub use adapt::Circumstances;
pub use all_settings::{SettingInfo, SettingUnit, all_settings, find_knob, nearest_knob};
pub use config::{ConfigFile, ConfigSetting, ConfigUpstream};
pub use parse::PolicyError;
pub use switches::{Folding, Markers};

pub(crate) use needs::NeedTable;
pub(crate) use rows::ParsedRule;

use std::hash::{Hash, Hasher};

use serde::Deserialize;

use crate::{digest::InputShortening, facts::ResultSort, rewrite::RewriteForm, units::Tokens};

/// A list of steps, run in order over verdicts that start as keep. A step may only hide more.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The name by which it is asked for.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Its settings with the values in force, by name.
    pub settings: Vec<(String, f64)>,
    pub(crate) steps: Vec<PolicyStep>,
    pub(crate) closing: ClosingRule,
    pub(crate) style: NoteStyle,
    /// What ages are multiplied by when the cache is cold.
    pub(crate) cold_ages: f64,
    /// How many of the latest steps count as recent in the classes of content.
    pub(crate) recent_steps: u32,
    pub(crate) batch: BatchSize,
    /// How far steps that hide just enough go, and the closing step, as a share of that: the next requests need not hide again.
    pub(crate) room: f64,
    /// How much blocks are expected to be needed, for steps that make room.
    pub(crate) needs: NeedTable,
    /// Whether steps that make room may shorten the arguments of calls.
    pub(crate) inputs_under_pressure: bool,
}

/// How many results go at once by steps that leave the latest alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchSize {
    /// As many as it takes to pay for caching again what follows them.
    WhatPays,
    /// At least so many.
    Results(u32),
}

impl BatchSize {
    /// Every result as soon as it may be hidden, as the documents that describe the policies have it.
    pub(crate) const EACH: BatchSize = BatchSize::Results(1);
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyStep {
    pub(crate) when: StepMoment,
    pub(crate) select: BlockSelection,
    pub(crate) act: StepAction,
    /// The rule's name, where a user wrote it.
    pub(crate) rule: Option<String>,
}

/// When a step is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StepMoment {
    /// Before a block is sent for the first time.
    Birth,
    /// When the provider's cache is gone anyway.
    Cold,
    /// When what it saves over the expected rest of the session exceeds the rewriting of what follows.
    Pays,
    /// When the request counts more than a share of the budget; as far as `until` where there is one.
    Over { share: f64, until: Option<f64> },
    /// At every request.
    Always,
}

impl PolicyStep {
    /// Tells whether a step moves on with the conversation: it leaves the latest alone and hides what is older.
    pub(crate) fn moves_on(&self) -> bool {
        let BlockSelection { keep_last, protect, older_than, .. } = &self.select;
        let leaves_latest = keep_last.is_some() || protect.is_some() || older_than.is_some();
        leaves_latest
            && self.rule.is_none()
            && !matches!(
                self.act,
                StepAction::Pin | StepAction::Hold | StepAction::Fold | StepAction::MakeRoom { .. }
            )
    }
}

/// Which blocks a step is about. Every condition given must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BlockSelection {
    pub(crate) what: SelectedKind,
    /// Kinds of tools, or names of tools with `*`.
    pub(crate) tools: Vec<String>,
    /// A pattern for the path that the call is about.
    pub(crate) path: Option<String>,
    /// Blocks of at least this many tokens.
    pub(crate) tokens_over: Option<f64>,
    /// Texts of more than this many characters.
    pub(crate) chars_over: Option<f64>,
    /// Texts of more than this many bytes.
    pub(crate) bytes_over: Option<f64>,
    /// Blocks of more than this share of the budget.
    pub(crate) share_over: Option<f64>,
    /// Blocks said more than this many steps ago.
    pub(crate) older_than: Option<f64>,
    /// All but this many of the latest.
    pub(crate) keep_last: Option<f64>,
    /// All but the latest that hold this many tokens together.
    pub(crate) protect: Option<f64>,
    /// Nothing, unless what is selected holds this many tokens together.
    pub(crate) minimum: Option<f64>,
    /// Not the results of calls that failed.
    pub(crate) spare_errors: bool,
    /// Only what another block makes redundant, in one of these ways.
    pub(crate) redundant: Vec<Redundancy>,
    /// Of reads of one file only those between the first, the last and evenly sampled ones, so many in all.
    pub(crate) rereads_beyond: Option<f64>,
    /// Of more changes of one file than this, only those between the first and the last.
    pub(crate) edits_beyond: Option<f64>,
    /// Results that show one of these.
    pub(crate) shows: Vec<ResultSort>,
    /// Blocks after which at least so many results came; after the last change of what they show, where that is asked for.
    pub(crate) results_after: Option<f64>,
    /// Blocks that are expected to be needed less often than this for every thousand tokens.
    pub(crate) needed_under: Option<f64>,
    /// Whether what they show was changed.
    pub(crate) edited: Option<EditedWhen>,
    /// Blocks after which the user spoke.
    pub(crate) turn_since: bool,
    /// Only classes of at most this number.
    pub(crate) class_at_most: Option<f64>,
    pub(crate) order: SelectionOrder,
    /// Not what one of these selects by kind, tool, path, size and age.
    pub(crate) but_not: Vec<BlockSelection>,
}

impl BlockSelection {
    /// Tells whether it counts or spares some of the blocks that are meant, hidden or not.
    pub(crate) fn counts_all_meant(&self) -> bool {
        let BlockSelection { keep_last, protect, minimum, rereads_beyond, edits_beyond, .. } = self;
        [keep_last, protect, minimum, rereads_beyond, edits_beyond].into_iter().any(Option::is_some)
    }
}

/// What kind of block is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SelectedKind {
    /// Tool results.
    #[default]
    Results,
    /// Images and documents, alone or in results.
    Media,
    /// The model's own answers that call nothing.
    Answers,
    /// Calls that were answered.
    Calls,
}

/// When a file that a block shows was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EditedWhen {
    /// After the block.
    Since,
    /// Before it, and not since.
    Before,
}

/// How a block can be redundant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Redundancy {
    /// A later block holds what it holds, or newer.
    Superseded,
    /// An earlier block holds the very same.
    Identical,
}

/// Which of the selected blocks come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SelectionOrder {
    #[default]
    Oldest,
    /// The least valuable class first, the oldest in it.
    Priority,
    /// First what is large and most overdue by the ages of the steps that wait until it pays; never what is not yet seen.
    Overdue,
}

/// What is done with a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepAction {
    /// Nothing hides it any more.
    Pin,
    /// Its exchange never goes; its result may still be shortened, after all others.
    Hold,
    /// The digest of its kind of content, or the one named.
    Digest(Option<String>),
    /// Its first and last characters.
    HeadTail { above: f64, keep: f64 },
    /// Its beginning and end, so many bytes in all.
    MiddleOut { bytes: f64 },
    /// The digest of its kind where that leaves at most this share of the budget, else its beginning and end.
    Cap { share: f64 },
    /// Its first and last lines.
    HeadTailLines { head: f64, tail: f64 },
    /// The lines that match.
    Matching(Vec<String>),
    /// A note with the names in it that stand nowhere else, and its first, last and error lines.
    Names,
    /// Notes in the place of lines that an earlier visible result shows.
    Seen,
    /// All of it, in a form that takes fewer tokens.
    Rewrite(RewriteForm),
    /// A note instead of it.
    Clear,
    /// The exchange goes.
    Drop,
    /// The long arguments of a call become notes.
    Inputs(InputShortening),
    /// A summary is asked for.
    Fold,
    /// What is needed least is hidden, in one decision about how much, from which place on, and what; down to this share of the
    /// budget where the cache is cold.
    MakeRoom { cold: f64 },
}

impl Hash for StepAction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            StepAction::Digest(name) => name.hash(state),
            StepAction::HeadTail { above: one, keep: other }
            | StepAction::HeadTailLines { head: one, tail: other } => {
                [one.to_bits(), other.to_bits()].hash(state);
            }
            StepAction::MiddleOut { bytes: one }
            | StepAction::Cap { share: one }
            | StepAction::MakeRoom { cold: one } => one.to_bits().hash(state),
            StepAction::Matching(patterns) => patterns.hash(state),
            StepAction::Inputs(inputs) => inputs.hash(state),
            StepAction::Rewrite(form) => form.hash(state),
            StepAction::Pin
            | StepAction::Hold
            | StepAction::Names
            | StepAction::Seen
            | StepAction::Clear
            | StepAction::Drop
            | StepAction::Fold => {}
        }
    }
}

/// What is done at last when the request still does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClosingRule {
    /// Nothing: the request goes as it is.
    Nothing,
    /// The least valuable exchanges go until it fits; the user's words are kept.
    #[default]
    Exchanges,
    /// And then whole turns, the oldest first, with the user's words in them.
    Turns,
}

/// How notes are worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum NoteStyle {
    /// Sentences that say what was there.
    #[default]
    Normal,
    /// The size and nothing else, as simple pruning writes it.
    Plain,
}

/// The policies that ship, with their TOML.
const SHIPPED: &[(&str, &str)] = &[
    ("none", include_str!("shipped/none.toml")),
    ("recent", include_str!("shipped/recent.toml")),
    ("retention", include_str!("shipped/retention.toml")),
    ("per-tool", include_str!("shipped/per-tool.toml")),
    ("supersede", include_str!("shipped/supersede.toml")),
    ("age", include_str!("shipped/age.toml")),
    ("priority", include_str!("shipped/priority.toml")),
    ("ladder", include_str!("shipped/ladder.toml")),
    ("steady", include_str!("shipped/steady.toml")),
    ("steady.safe", include_str!("shipped/steady.safe.toml")),
    ("steady.bold", include_str!("shipped/steady.bold.toml")),
];

/// Lists of steps that several policies share.
const SHARED: &[(&str, &str)] = &[
    ("output-caps", include_str!("shared/output-caps.toml")),
    ("max-bytes", include_str!("shared/max-bytes.toml")),
    ("deduplication", include_str!("shared/deduplication.toml")),
    ("media", include_str!("shared/media.toml")),
    ("inputs", include_str!("shared/inputs.toml")),
    ("inputs-under-pressure", include_str!("shared/inputs-under-pressure.toml")),
];

/// Returns the names and TOML texts of the lists of steps that a policy may include.
pub fn shared_steps() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHARED.iter().copied()
}

/// Returns the names and TOML texts of the policies that ship.
pub fn policies() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied()
}

/// Returns the names of the shipped policies that have a setting, in order.
pub(crate) fn policies_with(setting: &str) -> Vec<&'static str> {
    let has = |name: &&str| {
        Policy::find_shipped(name).is_ok_and(|policy| policy.settings.iter().any(|(own, _)| own == setting))
    };
    SHIPPED.iter().map(|(name, _)| *name).filter(has).collect()
}

impl Policy {
    /// Tells whether a step waits until it pays or until the cache is cold; all others do the same at any price.
    pub fn depends_on_prices(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.when, StepMoment::Pays | StepMoment::Cold))
    }

    /// Returns a shipped policy with its own settings.
    ///
    /// # Errors
    /// Names the policies there are, where there is none of that name.
    pub fn find_shipped(name: &str) -> Result<Policy, PolicyError> {
        Policy::shipped_with(name, &[])
    }

    /// Returns a shipped policy with some of its settings changed.
    ///
    /// # Errors
    /// Names the policies or settings there are, where there is none of that name.
    pub fn shipped_with(name: &str, changed: &[(String, f64)]) -> Result<Policy, PolicyError> {
        let (_, toml) = SHIPPED
            .iter()
            .find(|(shipped, _)| *shipped == name)
            .ok_or_else(|| PolicyError::Unknown { name: name.to_owned(), known: shipped_names() })?;
        Policy::from_toml(name, toml, changed)
    }

    /// Reads a policy from TOML.
    ///
    /// # Errors
    /// Says what is wrong where.
    pub fn from_toml(name: &str, toml: &str, changed: &[(String, f64)]) -> Result<Policy, PolicyError> {
        parse::parse(name, toml, changed, &Circumstances::default())
    }

    /// Reads a policy from TOML, with thresholds that follow the circumstances where nothing else is set.
    ///
    /// # Errors
    /// Says what is wrong where.
    pub fn from_toml_adapted(
        name: &str,
        toml: &str,
        changed: &[(String, f64)],
        circumstances: &Circumstances,
    ) -> Result<Policy, PolicyError> {
        parse::parse(name, toml, changed, circumstances)
    }

    /// Tells whether the policy has a setting.
    ///
    /// # Errors
    /// Names the policies that have it, or the settings that this one has.
    pub fn check_setting(&self, setting: &str) -> Result<(), PolicyError> {
        if self.settings.iter().any(|(own, _)| own == setting) {
            return Ok(());
        }
        Err(parse::no_setting(&self.name, setting, &self.settings.iter().cloned().collect()))
    }

    /// Puts the rules of a user's file before the policy's own steps.
    #[must_use]
    pub fn with_config(self, config: &ConfigFile) -> Policy {
        self.with_rules(&config.rules)
    }

    /// Returns the budget that the policy itself names, for requests whose model says none.
    pub fn max_context(&self) -> Option<Tokens> {
        let most = self.settings.iter().find(|(name, _)| name == "max_context")?.1;
        Some(Tokens(1).scale(most))
    }

    /// Tells whether a step waits until what it hides pays for caching again what follows.
    pub(crate) fn waits_until_it_pays(&self, step: &PolicyStep) -> bool {
        let in_batches =
            self.batch == BatchSize::WhatPays && step.when == StepMoment::Always && step.moves_on();
        step.when == StepMoment::Pays || in_batches
    }

    /// A rule counts before those after it: what it keeps is left alone by them and by the policy's own steps.
    fn with_rules(mut self, rules: &[ParsedRule]) -> Policy {
        let mut steps: Vec<PolicyStep> = Vec::new();
        let mut kept: Vec<BlockSelection> = Vec::new();
        for rule in rules {
            if rule.keeps {
                kept.push(rule.step.select.clone());
            } else {
                steps.push(without_kept(rule.step.clone(), &kept));
            }
        }
        steps.extend(self.steps.drain(..).map(|step| without_kept(step, &kept)));
        self.steps = steps;
        self
    }
}

fn without_kept(mut step: PolicyStep, kept: &[BlockSelection]) -> PolicyStep {
    // Nothing hides what is pinned: a rule that keeps takes nothing away from that.
    if !matches!(step.act, StepAction::Pin | StepAction::Hold) {
        step.select.but_not.extend_from_slice(kept);
    }
    step
}

fn shipped_names() -> String {
    SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
