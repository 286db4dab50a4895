//! Every setting of the shipped policies in one table. Takes a name; gives what it means and in which unit, and reads its
//! value. Never holds a default: that stands in the policy that has the setting.

use super::source::nearest;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// Its name in files; in the environment it is written `TRIMTAB_NAME`.
    pub name: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The name under which another program's users know it, in the environment.
    pub alias: Option<&'static str>,
}

/// What a setting is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
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
    /// Which arguments of calls may be shortened: off, safe or all.
    Inputs,
}

const fn knob(name: &'static str, unit: Unit, about: &'static str) -> Knob {
    Knob { name, unit, about, alias: None }
}

const fn alias(knob: Knob, alias: &'static str) -> Knob {
    Knob { alias: Some(alias), ..knob }
}

/// Every setting, in the order of the reference page.
pub(super) const KNOBS: &[Knob] = &[
    alias(
        knob(
            "intelligent_pruning",
            Unit::Switch,
            "Shorten by kind of content; false: a plain note with the size instead.",
        ),
        "PATCHPAL_INTELLIGENT_PRUNING",
    ),
    alias(
        knob(
            "prune_protect",
            Unit::Tokens,
            "The latest tool results, up to this many tokens, are not shortened.",
        ),
        "PATCHPAL_PRUNE_PROTECT",
    ),
    alias(
        knob(
            "prune_minimum",
            Unit::Tokens,
            "Nothing is shortened unless what could be holds this many tokens.",
        ),
        "PATCHPAL_PRUNE_MINIMUM",
    ),
    alias(
        knob("compact_threshold", Unit::Share, "Above this share of the budget a summary is asked for."),
        "PATCHPAL_COMPACT_THRESHOLD",
    ),
    knob(
        "adaptive",
        Unit::Switch,
        "Let `prune_protect` and `prune_minimum` follow the model's window and what the session has cost.",
    ),
    knob("deduplication", Unit::Switch, "Hide results that a later one makes redundant."),
    knob("deduplication_threshold", Unit::Share, "Only above this share of the budget."),
    knob(
        "max_file_reads",
        Unit::Count,
        "How many of six or more reads of one file stay: the first, the last, samples.",
    ),
    knob("keep_all_edits", Unit::Switch, "No edit goes; what its tool said is the last to be shortened."),
    knob(
        "max_edits",
        Unit::Count,
        "Of more edits of one file, what the tool said of those between the first and the last is hidden.",
    ),
    knob(
        "bash_whole",
        Unit::Characters,
        "A command's output up to this size is left alone even under pressure.",
    ),
    knob("bash_truncate", Unit::Characters, "A command's output over this size is cut to its ends at once."),
    knob("bash_keep", Unit::Characters, "How much of it is kept at each end."),
    knob("max_bytes", Unit::Bytes, "A single output over this size is cut in the middle down to it."),
    knob("light_keep_last", Unit::Count, "How many listings, task lists and changes of focus are kept."),
    knob("media_keep_last", Unit::Count, "How many images and documents are kept."),
    knob("consolidation_budget", Unit::Share, "Above this share of the budget a summary is asked for."),
    knob(
        "preserve_recent",
        Unit::Steps,
        "How many of the latest steps count as recent in the classes of content.",
    ),
    knob("max_age", Unit::Steps, "Results older than this many steps are the first to go."),
    knob("small_tokens", Unit::Tokens, "Results up to this size are not worth clearing."),
    knob(
        "most_valuable",
        Unit::Class,
        "The most valuable class of content that is cleared before anything is dropped.",
    ),
    knob("keep_last", Unit::Count, "How many of the latest tool results are kept; 0: none."),
    knob(
        "batch",
        Unit::Count,
        "How many results that are no longer among the latest are hidden at once; 0: as many as pay for caching again what \
         follows them, 1: each at once.",
    ),
    knob("keep_last_hard", Unit::Count, "How many are kept above `compact_threshold`."),
    knob("prune_threshold", Unit::Share, "Above this share of the budget results are cleared."),
    knob(
        "critical_threshold",
        Unit::Share,
        "Above this share of the budget exchanges are dropped, the least valuable first.",
    ),
    knob(
        "max_context",
        Unit::Tokens,
        "The budget if none is given; never more than the model's window leaves.",
    ),
    knob(
        "birth_copies",
        Unit::Switch,
        "Send a result that is the same as a visible one as a pointer, from its first request on.",
    ),
    knob(
        "birth_lines",
        Unit::Switch,
        "Send runs of lines that a visible result shows as pointers, from their first request on.",
    ),
    knob(
        "largest_output",
        Unit::Share,
        "A single output over this share of the budget is shortened by its kind before it is sent.",
    ),
    knob("birth_logs", Unit::Switch, "Shorten long logs of tests and builds from their first request on."),
    knob(
        "birth_repeats",
        Unit::Switch,
        "Fold repeated lines of runs, tests and builds from their first request on.",
    ),
    knob(
        "changed_age",
        Unit::Count,
        "How many results after the last change of a file an older view of it may be hidden.",
    ),
    knob(
        "turn_age",
        Unit::Count,
        "How many results later a view of a file may be hidden, once the user has sent another message.",
    ),
    knob("file_age", Unit::Count, "How many results later a view of a file may be hidden in any case."),
    knob(
        "shell_file_age",
        Unit::Count,
        "How many results later a file printed by a shell command may be hidden.",
    ),
    knob("search_age", Unit::Count, "How many results later a search or the echo of an edit may be hidden."),
    knob("report_age", Unit::Count, "How many results later another agent's report may be hidden."),
    knob("cold_ages", Unit::Share, "The factor for these ages when the provider's cache has expired."),
    knob(
        "low_water",
        Unit::Share,
        "Once the budget is exceeded, results are hidden down to this share of it.",
    ),
    knob(
        "cold_low_water",
        Unit::Share,
        "The same where the provider's cache is gone anyway: room made then costs nothing.",
    ),
    knob(
        "inputs_under_pressure",
        Unit::Switch,
        "Once the budget is exceeded, long arguments of calls that are not recent may become notes, where they are needed less than \
         what would go otherwise.",
    ),
    knob(
        "inputs",
        Unit::Inputs,
        "Which long arguments of calls that are not recent become notes: off, safe (what an edit replaced; what was written to a \
         file that a later step shows) or all.",
    ),
];

/// Returns every setting of the shipped policies.
pub fn knobs() -> &'static [Knob] {
    KNOBS
}

/// Returns the setting of a name.
pub fn find_knob(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

/// Returns the name of a setting that is nearest to a word, where one is near.
pub fn nearest_knob(word: &str) -> Option<&'static str> {
    let names: Vec<&'static str> = KNOBS.iter().map(|knob| knob.name).collect();
    nearest(word, &names)
}

impl Knob {
    /// Returns its name in the environment.
    pub fn variable(&self) -> String {
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
    pub fn write(&self, value: f64) -> String {
        self.unit.write(value)
    }
}

impl Unit {
    /// Returns the name used in the reference.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Switch => "true or false",
            Unit::Tokens => "tokens",
            Unit::Characters => "characters",
            Unit::Bytes => "bytes",
            Unit::Steps => "steps",
            Unit::Count => "count",
            Unit::Share => "share",
            Unit::Class => "class",
            Unit::Inputs => "off, safe, all",
        }
    }

    pub(super) fn read(self, words: &str) -> Result<f64, String> {
        let words = words.trim();
        let switch = match words.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "safe" => Some(1.0),
            "false" | "no" | "off" => Some(0.0),
            "all" => Some(2.0),
            _ => None,
        };
        let number = words.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        match self {
            Unit::Switch if !matches!(words, "safe" | "all") => {
                switch.or(number.filter(|number| *number == 0.0 || *number == 1.0))
            }
            Unit::Inputs if matches!(words, "off" | "safe" | "all") => switch,
            Unit::Share => number.filter(|share| (0.0..=1.0).contains(share)),
            Unit::Class => number.filter(|class| (0.0..=100.0).contains(class)),
            Unit::Tokens | Unit::Characters | Unit::Bytes | Unit::Steps | Unit::Count => {
                number.filter(|number| *number >= 0.0 && number.fract() == 0.0)
            }
            Unit::Switch | Unit::Inputs => None,
        }
        .ok_or_else(|| format!("{words:?} is not a valid value: write {}", self.wanted()))
    }

    fn wanted(self) -> &'static str {
        match self {
            Unit::Switch => "true or false",
            Unit::Tokens => "a whole number of tokens, such as 40000",
            Unit::Characters => "a whole number of characters, such as 10000",
            Unit::Bytes => "a whole number of bytes, such as 50000",
            Unit::Steps => "a whole number of steps, such as 5",
            Unit::Count => "a whole number, such as 5",
            Unit::Share => "a share from 0 to 1, such as 0.75",
            Unit::Class => "a class from 20 to 100, such as 50",
            Unit::Inputs => "off, safe or all",
        }
    }

    pub(super) fn write(self, value: f64) -> String {
        match self {
            Unit::Switch => (value != 0.0).to_string(),
            Unit::Inputs if value >= 2.0 => "all".to_owned(),
            Unit::Inputs if value >= 1.0 => "safe".to_owned(),
            Unit::Inputs => "off".to_owned(),
            Unit::Share => format!("{value:.2}"),
            Unit::Tokens | Unit::Characters | Unit::Bytes | Unit::Steps | Unit::Count | Unit::Class => {
                format!("{value:.0}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, policies};

    fn check(unit: Unit, words: &str, value: Option<f64>) {
        assert_eq!(unit.read(words).ok(), value, "{unit:?} {words}");
    }

    #[test]
    fn values_are_read_in_their_unit_and_nothing_else_is() {
        check(Unit::Switch, "true", Some(1.0));
        check(Unit::Switch, "off", Some(0.0));
        check(Unit::Switch, "2", None);
        check(Unit::Switch, "all", None);
        check(Unit::Tokens, "40_000", Some(40_000.0));
        check(Unit::Tokens, "-1", None);
        check(Unit::Tokens, "1.5", None);
        check(Unit::Tokens, "inf", None);
        check(Unit::Share, "0.75", Some(0.75));
        check(Unit::Share, "75", None);
        check(Unit::Inputs, "safe", Some(1.0));
        check(Unit::Inputs, "true", None);
        assert_eq!(
            Unit::Share.read("75"),
            Err("\"75\" is not a valid value: write a share from 0 to 1, such as 0.75".to_owned())
        );
    }

    #[test]
    fn every_setting_of_a_shipped_policy_is_in_the_table_and_no_other() {
        let mut used: Vec<String> = Vec::new();
        for (name, _) in policies() {
            used.extend(Policy::shipped(name).expect(name).settings.into_iter().map(|(setting, _)| setting));
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
            ("steady", "inputs", 0.0),
        ] {
            let settings = Policy::shipped(policy).expect(policy).settings;
            let found = settings.iter().find(|(name, _)| name == setting).map(|(_, value)| *value);
            assert_eq!(found, Some(value), "{policy} {setting}");
        }
    }
}
