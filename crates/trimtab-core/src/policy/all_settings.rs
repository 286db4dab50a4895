//! Every setting of the shipped policies in one table. Takes a name; gives what it means and in which unit, and reads its
//! value. Never holds a default: that stands in the policy that has the setting.

use super::source::nearest_word;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettingInfo {
    /// Its name in files; in the environment it is written `TRIMTAB_NAME`.
    pub name: &'static str,
    /// What it is measured in.
    pub unit: SettingUnit,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The name under which another program's users know it, in the environment.
    pub alias: Option<&'static str>,
}

/// What a setting is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingUnit {
    /// True or false.
    Switch,
    /// Tokens.
    Tokens,
    /// Characters.
    Characters,
    /// Bytes.
    Bytes,
    /// Steps of the agent.
    Steps,
    /// Things counted.
    Count,
    /// A share of the budget, from 0 to 1.
    Share,
    /// A class of content, from 20 to 100.
    Class,
    /// How often a block is expected to be needed, for every thousand of its tokens.
    Need,
    /// Which arguments of calls may be shortened: off, commands, safe or all.
    Inputs,
}

/// The value of a setting that lets only those arguments be shortened that change no file.
pub(super) const COMMANDS: f64 = 3.0;

const fn new_setting(name: &'static str, unit: SettingUnit, about: &'static str) -> SettingInfo {
    SettingInfo { name, unit, about, alias: None }
}

const fn with_alias(knob: SettingInfo, alias: &'static str) -> SettingInfo {
    SettingInfo { alias: Some(alias), ..knob }
}

/// Every setting, in the order of the reference page.
pub(super) const KNOBS: &[SettingInfo] = &[
    with_alias(
        new_setting(
            "intelligent_pruning",
            SettingUnit::Switch,
            "Shorten by kind of content; false: a plain note with the size instead.",
        ),
        "PATCHPAL_INTELLIGENT_PRUNING",
    ),
    with_alias(
        new_setting(
            "prune_protect",
            SettingUnit::Tokens,
            "The latest tool results, up to this many tokens, are not shortened.",
        ),
        "PATCHPAL_PRUNE_PROTECT",
    ),
    with_alias(
        new_setting(
            "prune_minimum",
            SettingUnit::Tokens,
            "Nothing is shortened unless what could be holds this many tokens.",
        ),
        "PATCHPAL_PRUNE_MINIMUM",
    ),
    with_alias(
        new_setting(
            "compact_threshold",
            SettingUnit::Share,
            "Above this share of the budget a summary is asked for.",
        ),
        "PATCHPAL_COMPACT_THRESHOLD",
    ),
    new_setting(
        "adaptive",
        SettingUnit::Switch,
        "Let `prune_protect` and `prune_minimum` follow the model's window and what the session has cost.",
    ),
    new_setting("deduplication", SettingUnit::Switch, "Hide results that a later one makes redundant."),
    new_setting("deduplication_threshold", SettingUnit::Share, "Only above this share of the budget."),
    new_setting(
        "max_file_reads",
        SettingUnit::Count,
        "How many of six or more reads of one file stay: the first, the last, samples.",
    ),
    new_setting(
        "keep_all_edits",
        SettingUnit::Switch,
        "No edit goes; what its tool said is the last to be shortened.",
    ),
    new_setting(
        "max_edits",
        SettingUnit::Count,
        "Of more edits of one file, what the tool said of those between the first and the last is hidden.",
    ),
    new_setting(
        "bash_whole",
        SettingUnit::Characters,
        "A command's output up to this size is left alone even under pressure.",
    ),
    new_setting(
        "bash_truncate",
        SettingUnit::Characters,
        "A command's output over this size is cut to its ends at once.",
    ),
    new_setting("bash_keep", SettingUnit::Characters, "How much of it is kept at each end."),
    new_setting(
        "max_bytes",
        SettingUnit::Bytes,
        "A single output over this size is cut in the middle down to it.",
    ),
    new_setting(
        "light_keep_last",
        SettingUnit::Count,
        "How many listings, task lists and changes of focus are kept.",
    ),
    new_setting("media_keep_last", SettingUnit::Count, "How many images and documents are kept."),
    new_setting(
        "consolidation_budget",
        SettingUnit::Share,
        "Above this share of the budget a summary is asked for.",
    ),
    new_setting(
        "preserve_recent",
        SettingUnit::Steps,
        "How many of the latest steps count as recent in the classes of content.",
    ),
    new_setting("max_age", SettingUnit::Steps, "Results older than this many steps are the first to go."),
    new_setting("small_tokens", SettingUnit::Tokens, "Results up to this size are not worth clearing."),
    new_setting(
        "most_valuable",
        SettingUnit::Class,
        "The most valuable class of content that is cleared before anything is dropped.",
    ),
    new_setting("keep_last", SettingUnit::Count, "How many of the latest tool results are kept; 0: none."),
    new_setting(
        "batch",
        SettingUnit::Count,
        "How many results that are no longer among the latest are hidden at once; 0: as many as pay for caching again what \
         follows them, 1: each at once.",
    ),
    new_setting("keep_last_hard", SettingUnit::Count, "How many are kept above `compact_threshold`."),
    new_setting("prune_threshold", SettingUnit::Share, "Above this share of the budget results are cleared."),
    new_setting(
        "critical_threshold",
        SettingUnit::Share,
        "Above this share of the budget exchanges are dropped, the least valuable first.",
    ),
    new_setting(
        "max_context",
        SettingUnit::Tokens,
        "The budget if none is given; never more than the model's window leaves.",
    ),
    new_setting(
        "birth_copies",
        SettingUnit::Switch,
        "Send a result that is the same as a visible one as a pointer, from its first request on.",
    ),
    new_setting(
        "birth_lines",
        SettingUnit::Switch,
        "Send runs of lines that a visible result shows as pointers, from their first request on.",
    ),
    new_setting(
        "largest_output",
        SettingUnit::Share,
        "A single output over this share of the budget is shortened by its kind before it is sent.",
    ),
    new_setting(
        "birth_logs",
        SettingUnit::Switch,
        "Shorten long logs of tests and builds from their first request on.",
    ),
    new_setting(
        "birth_repeats",
        SettingUnit::Switch,
        "Fold repeated lines of runs, tests and builds from their first request on.",
    ),
    new_setting(
        "birth_padding",
        SettingUnit::Switch,
        "Send line numbers without the blanks before them, from their first request on.",
    ),
    new_setting(
        "birth_ansi",
        SettingUnit::Switch,
        "Send what commands printed without colours and overwritten progress, from its first request on.",
    ),
    new_setting(
        "birth_paths",
        SettingUnit::Switch,
        "Send each path once above its search hits, as `rg --heading` prints them, from their first request on.",
    ),
    new_setting(
        "birth_json",
        SettingUnit::Switch,
        "Send JSON without the blanks between its tokens, from its first request on.",
    ),
    new_setting(
        "file_need",
        SettingUnit::Need,
        "A view of a file may be hidden when it is expected to be needed less often than this for every 1,000 tokens.",
    ),
    new_setting(
        "other_need",
        SettingUnit::Need,
        "The same for all other results: commands, searches, reports and receipts.",
    ),
    new_setting(
        "input_need",
        SettingUnit::Need,
        "The same for the arguments of old edits and writes, but the latest three; of those that may be needed more often, what was \
         replaced or is shown by a later step. 0 leaves them all.",
    ),
    new_setting(
        "cold_ages",
        SettingUnit::Share,
        "When the provider's cache holds nothing, ages are multiplied by this, and what may be hidden may be needed as many times more \
         often.",
    ),
    new_setting(
        "low_water",
        SettingUnit::Share,
        "Once the budget is exceeded, results are hidden down to this share of it.",
    ),
    new_setting(
        "cold_low_water",
        SettingUnit::Share,
        "The same where the provider's cache is gone anyway: room made then costs nothing.",
    ),
    new_setting(
        "inputs_under_pressure",
        SettingUnit::Switch,
        "Once the budget is exceeded, long arguments of calls that are not recent may become notes, where they are needed less than \
         what would go otherwise.",
    ),
    new_setting(
        "inputs",
        SettingUnit::Inputs,
        "Which long arguments of calls that are not recent become notes: off, commands (of calls that change no file), safe (what \
         an edit replaced; what was written to a file that a later step shows) or all.",
    ),
];

/// Returns every setting of the shipped policies.
pub fn all_settings() -> &'static [SettingInfo] {
    KNOBS
}

/// Returns the setting of a name.
pub fn find_knob(name: &str) -> Option<&'static SettingInfo> {
    KNOBS.iter().find(|knob| knob.name == name)
}

/// Returns the name of a setting that is nearest to a word, where one is near.
pub fn nearest_knob(word: &str) -> Option<&'static str> {
    let names: Vec<&'static str> = KNOBS.iter().map(|knob| knob.name).collect();
    nearest_word(word, &names)
}

impl SettingInfo {
    /// Returns its name in the environment.
    pub fn variable_name(&self) -> String {
        format!("TRIMTAB_{}", self.name.to_uppercase())
    }

    /// Reads a value as people write it.
    ///
    /// # Errors
    /// Says what to write instead.
    pub fn read(&self, words: &str) -> Result<f64, String> {
        self.unit.read(words)
    }

    /// Writes a value as people do.
    pub fn format_value(&self, value: f64) -> String {
        self.unit.format_value(value)
    }
}

impl SettingUnit {
    /// Returns the name used in the reference.
    pub fn name(self) -> &'static str {
        match self {
            SettingUnit::Switch => "true or false",
            SettingUnit::Tokens => "tokens",
            SettingUnit::Characters => "characters",
            SettingUnit::Bytes => "bytes",
            SettingUnit::Steps => "steps",
            SettingUnit::Count => "count",
            SettingUnit::Share => "share",
            SettingUnit::Class => "class",
            SettingUnit::Need => "uses per 1,000 tokens",
            SettingUnit::Inputs => "off, commands, safe, all",
        }
    }

    pub(super) fn read(self, words: &str) -> Result<f64, String> {
        let words = words.trim();
        let switch = match words.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "safe" => Some(1.0),
            "false" | "no" | "off" => Some(0.0),
            "all" => Some(2.0),
            "commands" => Some(COMMANDS),
            _ => None,
        };
        let number = words.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        match self {
            SettingUnit::Switch if !matches!(words, "safe" | "all" | "commands") => {
                switch.or(number.filter(|number| *number == 0.0 || *number == 1.0))
            }
            SettingUnit::Inputs if matches!(words, "off" | "commands" | "safe" | "all") => switch,
            SettingUnit::Need => number.filter(|need| *need >= 0.0),
            SettingUnit::Share => number.filter(|share| (0.0..=1.0).contains(share)),
            SettingUnit::Class => number.filter(|class| (0.0..=100.0).contains(class)),
            SettingUnit::Tokens
            | SettingUnit::Characters
            | SettingUnit::Bytes
            | SettingUnit::Steps
            | SettingUnit::Count => number.filter(|number| *number >= 0.0 && number.fract() == 0.0),
            SettingUnit::Switch | SettingUnit::Inputs => None,
        }
        .ok_or_else(|| format!("{words:?} is not a valid value: write {}", self.expected_form()))
    }

    fn expected_form(self) -> &'static str {
        match self {
            SettingUnit::Switch => "true or false",
            SettingUnit::Tokens => "a whole number of tokens, such as 40000",
            SettingUnit::Characters => "a whole number of characters, such as 10000",
            SettingUnit::Bytes => "a whole number of bytes, such as 50000",
            SettingUnit::Steps => "a whole number of steps, such as 5",
            SettingUnit::Count => "a whole number, such as 5",
            SettingUnit::Share => "a share from 0 to 1, such as 0.75",
            SettingUnit::Class => "a class from 20 to 100, such as 50",
            SettingUnit::Need => "a number from 0, such as 0.0015",
            SettingUnit::Inputs => "off, commands, safe or all",
        }
    }

    pub(super) fn format_value(self, value: f64) -> String {
        match self {
            SettingUnit::Switch => (value != 0.0).to_string(),
            SettingUnit::Inputs if value >= COMMANDS => "commands".to_owned(),
            SettingUnit::Inputs if value >= 2.0 => "all".to_owned(),
            SettingUnit::Inputs if value >= 1.0 => "safe".to_owned(),
            SettingUnit::Inputs => "off".to_owned(),
            SettingUnit::Share => format!("{value:.2}"),
            SettingUnit::Need => value.to_string(),
            SettingUnit::Tokens
            | SettingUnit::Characters
            | SettingUnit::Bytes
            | SettingUnit::Steps
            | SettingUnit::Count
            | SettingUnit::Class => {
                format!("{value:.0}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, policies};

    fn check(unit: SettingUnit, words: &str, value: Option<f64>) {
        assert_eq!(unit.read(words).ok(), value, "{unit:?} {words}");
    }

    #[test]
    fn values_are_read_in_their_unit_and_nothing_else_is() {
        check(SettingUnit::Switch, "true", Some(1.0));
        check(SettingUnit::Switch, "off", Some(0.0));
        check(SettingUnit::Switch, "2", None);
        check(SettingUnit::Switch, "all", None);
        check(SettingUnit::Tokens, "40_000", Some(40_000.0));
        check(SettingUnit::Tokens, "-1", None);
        check(SettingUnit::Tokens, "1.5", None);
        check(SettingUnit::Tokens, "inf", None);
        check(SettingUnit::Share, "0.75", Some(0.75));
        check(SettingUnit::Share, "75", None);
        check(SettingUnit::Inputs, "safe", Some(1.0));
        check(SettingUnit::Inputs, "true", None);
        assert_eq!(
            SettingUnit::Share.read("75"),
            Err("\"75\" is not a valid value: write a share from 0 to 1, such as 0.75".to_owned())
        );
    }

    #[test]
    fn every_setting_of_a_shipped_policy_is_in_the_table_and_no_other() {
        let mut used: Vec<String> = Vec::new();
        for (name, _) in policies() {
            used.extend(
                Policy::find_shipped(name).expect(name).settings.into_iter().map(|(setting, _)| setting),
            );
        }
        for setting in &used {
            assert!(find_knob(setting).is_some(), "{setting} is not in the table");
        }
        for knob in KNOBS {
            assert!(used.iter().any(|setting| setting == knob.name), "no policy has {}", knob.name);
        }
    }

    #[test]
    fn defaults_are_those_that_the_seeds_name() {
        for (policy, setting, value) in [
            ("per-tool", "intelligent_pruning", 1.0),
            ("per-tool", "prune_protect", 40_000.0),
            ("per-tool", "prune_minimum", 20_000.0),
            ("per-tool", "compact_threshold", 0.75),
            ("ladder", "compact_threshold", 0.85),
            ("ladder", "prune_threshold", 0.70),
            ("ladder", "critical_threshold", 0.95),
            ("recent", "deduplication", 0.0),
            ("supersede", "deduplication", 1.0),
            ("supersede", "deduplication_threshold", 0.75),
            ("retention", "max_file_reads", 5.0),
            ("retention", "keep_all_edits", 1.0),
            ("retention", "bash_truncate", 10_000.0),
            ("retention", "consolidation_budget", 0.70),
            ("priority", "preserve_recent", 5.0),
            ("recent", "keep_last", 30.0),
            ("ladder", "keep_last", 5.0),
            ("ladder", "keep_last_hard", 2.0),
            ("ladder", "max_context", 180_000.0),
            ("ladder", "max_bytes", 50_000.0),
            ("steady", "inputs", 3.0),
        ] {
            let settings = Policy::find_shipped(policy).expect(policy).settings;
            let found = settings.iter().find(|(name, _)| name == setting).map(|(_, value)| *value);
            assert_eq!(found, Some(value), "{policy} {setting}");
        }
    }
}
