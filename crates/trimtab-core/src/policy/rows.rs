//! One `[[step]]` of a policy or `[[rule]]` of a user, in one grammar. Takes rows as TOML with their places; gives steps with
//! every `$setting` resolved, or the sentence that says where and what to write instead. Never accepts a key it does not
//! know: a misspelt condition would select everything.

use std::{collections::BTreeMap, ops::Range};

use serde::Deserialize;
use toml::Spanned;

use super::{
    BlockSelection, EditedWhen, PolicyError, PolicyStep, Redundancy, SelectedKind, SelectionOrder,
    StepAction, StepMoment,
    all_settings::{COMMANDS, SettingUnit},
    source::{TomlSource, nearest_word},
};
use crate::{
    digest::{self, InputShortening},
    facts::ResultSort,
    rewrite::RewriteForm,
};

/// Lines that `head-tail` keeps at each end where nothing is said: as for files (seed 001).
const LINES_AT_EACH_END: f64 = 10.0;

/// What a step can do.
const STEP_ACTS: &[&str] = &[
    "pin", "hold", "digest", "head-tail", "head-tail-chars", "middle-out", "cap", "lines", "matching",
    "names", "seen", "rewrite", "inputs", "clear", "drop", "fold", "make-room",
];

/// What a rule can do.
const RULE_ACTS: &[&str] = &["keep", "pin", "head-tail", "lines", "digest", "clear", "drop"];

/// A rule: what it selects, and what becomes of that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedRule {
    pub(super) step: PolicyStep,
    /// Whether what it selects is left to the closing step alone.
    pub(super) keeps: bool,
}

/// A number, or a text that is one, or the name of a setting as `"$name"`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number")]
pub(super) enum NumberOrSetting {
    Value(f64),
    Text(String),
}

/// A text, or a list of texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts: write [\"…\", \"…\"]")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn to_list(&self) -> Vec<String> {
        match self {
            OneOrMany::One(text) => vec![text.clone()],
            OneOrMany::Many(texts) => texts.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepRow {
    when: Spanned<String>,
    pub(super) only_if: Option<Spanned<String>>,
    #[serde(default)]
    select: SelectRow,
    #[serde(rename = "do")]
    act: Spanned<String>,
    #[serde(alias = "matching")]
    lines: Option<Spanned<OneOrMany>>,
    above: Option<Spanned<NumberOrSetting>>,
    keep: Option<Spanned<NumberOrSetting>>,
    bytes: Option<Spanned<NumberOrSetting>>,
    share: Option<Spanned<NumberOrSetting>>,
    head: Option<Spanned<NumberOrSetting>>,
    tail: Option<Spanned<NumberOrSetting>>,
    #[serde(alias = "name")]
    rule: Option<String>,
}

/// A rule says what it selects beside what it does, and is taken at every request where it says no other time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleRow {
    name: Option<String>,
    #[serde(alias = "tools")]
    tool: Option<Spanned<OneOrMany>>,
    path: Option<String>,
    tokens_over: Option<Spanned<NumberOrSetting>>,
    chars_over: Option<Spanned<NumberOrSetting>>,
    older_than: Option<Spanned<NumberOrSetting>>,
    keep_last: Option<Spanned<NumberOrSetting>>,
    when: Option<Spanned<String>>,
    #[serde(rename = "do")]
    act: Option<Spanned<String>>,
    head: Option<Spanned<NumberOrSetting>>,
    tail: Option<Spanned<NumberOrSetting>>,
    #[serde(alias = "matching")]
    lines: Option<Spanned<OneOrMany>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct SelectRow {
    what: SelectedKind,
    #[serde(alias = "tool")]
    tools: Option<Spanned<OneOrMany>>,
    path: Option<String>,
    tokens_over: Option<Spanned<NumberOrSetting>>,
    chars_over: Option<Spanned<NumberOrSetting>>,
    bytes_over: Option<Spanned<NumberOrSetting>>,
    share_over: Option<Spanned<NumberOrSetting>>,
    older_than: Option<Spanned<NumberOrSetting>>,
    keep_last: Option<Spanned<NumberOrSetting>>,
    protect: Option<Spanned<NumberOrSetting>>,
    minimum: Option<Spanned<NumberOrSetting>>,
    spare_errors: bool,
    redundant: Vec<Redundancy>,
    rereads_beyond: Option<Spanned<NumberOrSetting>>,
    edits_beyond: Option<Spanned<NumberOrSetting>>,
    class_at_most: Option<Spanned<NumberOrSetting>>,
    shows: Vec<Spanned<String>>,
    results_after: Option<Spanned<NumberOrSetting>>,
    needed_under: Option<Spanned<NumberOrSetting>>,
    edited: Option<EditedWhen>,
    turn_since: bool,
    order: SelectionOrder,
}

/// Reads the rules of a file.
pub(super) fn read_rules(
    source: TomlSource<'_>,
    rows: Vec<Spanned<RuleRow>>,
) -> Result<Vec<ParsedRule>, PolicyError> {
    let reader = RowReader { source, settings: &BTreeMap::new() };
    rows.into_iter().enumerate().map(|(index, row)| reader.read_rule(index + 1, row)).collect()
}

/// Reads the rows of one text.
pub(super) struct RowReader<'a> {
    pub(super) source: TomlSource<'a>,
    pub(super) settings: &'a BTreeMap<String, f64>,
}

impl RowReader<'_> {
    fn read_rule(&self, number: usize, row: Spanned<RuleRow>) -> Result<ParsedRule, PolicyError> {
        let at = row.span();
        let row = row.into_inner();
        let Some(act) = row.act else {
            let what = format!("this rule does nothing: add do = \"…\" with one of {}", RULE_ACTS.join(", "));
            return Err(self.source.fault_at(&at, what));
        };
        let keeps = act.get_ref() == "keep";
        self.check_word(&act, RULE_ACTS)?;
        let select = SelectRow {
            tools: row.tool,
            path: row.path,
            tokens_over: row.tokens_over,
            chars_over: row.chars_over,
            older_than: row.older_than,
            keep_last: row.keep_last,
            ..SelectRow::default()
        };
        let step = self.read_step(&Spanned::new(
            at.clone(),
            StepRow {
                when: row.when.unwrap_or_else(|| Spanned::new(at.clone(), "always".to_owned())),
                only_if: None,
                select,
                act: if keeps { Spanned::new(act.span(), "pin".to_owned()) } else { act },
                lines: row.lines,
                above: None,
                keep: None,
                bytes: None,
                share: None,
                head: row.head,
                tail: row.tail,
                rule: Some(row.name.unwrap_or_else(|| number.to_string())),
            },
        ))?;
        if step.select == BlockSelection::default() {
            let what =
                "this rule selects everything: give it a tool, a path or a size, such as tool = \"Bash\"";
            return Err(self.source.fault_at(&at, what.to_owned()));
        }
        Ok(ParsedRule { step, keeps })
    }

    pub(super) fn read_step(&self, row: &Spanned<StepRow>) -> Result<PolicyStep, PolicyError> {
        let row = row.get_ref();
        let step = PolicyStep {
            when: self.read_moment(&row.when)?,
            select: self.read_selection(&row.select)?,
            act: self.read_action(row)?,
            rule: row.rule.clone(),
        };
        let of_calls = step.select.what == SelectedKind::Calls;
        let wrong = |what: String| Err(self.source.fault_at(&row.act.span(), what));
        match step.act {
            StepAction::Inputs(_) if !of_calls => {
                wrong("do = \"inputs\" needs select = { what = \"calls\" }".to_owned())
            }
            StepAction::Inputs(_) | StepAction::Pin | StepAction::Hold | StepAction::Drop => Ok(step),
            StepAction::Rewrite(_) if step.when != StepMoment::Birth => wrong(format!(
                "do = {:?} needs when = \"birth\": what was sent is not written otherwise later",
                row.act.get_ref()
            )),
            _ if of_calls => wrong(format!(
                "do = {:?}: the arguments of calls stay JSON; write do = \"inputs\" to shorten them",
                row.act.get_ref()
            )),
            _ => Ok(step),
        }
    }

    /// Reads a number in its unit; one by the name of a setting has been read with the setting.
    pub(super) fn read_number(
        &self,
        key: &str,
        unit: SettingUnit,
        number: Option<&Spanned<NumberOrSetting>>,
    ) -> Result<Option<f64>, PolicyError> {
        let Some(number) = number else { return Ok(None) };
        let read = match number.get_ref() {
            NumberOrSetting::Text(name) if name.starts_with('$') => self.read_setting(name),
            NumberOrSetting::Text(words) => unit.read(words).map_err(|what| format!("{key} = {what}")),
            NumberOrSetting::Value(value) => {
                unit.read(&value.to_string()).map_err(|what| format!("{key} = {what}"))
            }
        };
        read.map(Some).map_err(|what| self.source.fault_at(&number.span(), what))
    }

    fn read_setting(&self, name: &str) -> Result<f64, String> {
        let bare =
            name.strip_prefix('$').ok_or_else(|| format!("{name:?} is neither a number nor a $setting"))?;
        self.settings.get(bare).copied().ok_or_else(|| format!("there is no setting {bare:?}"))
    }

    /// Tells whether a step with switches is on: `$name` or `not $name`, several joined by ` and `.
    pub(super) fn is_on(&self, switch: Option<&Spanned<String>>) -> Result<bool, PolicyError> {
        let Some(switch) = switch else { return Ok(true) };
        let mut is_on = true;
        for words in switch.get_ref().split(" and ") {
            let (name, off) = match words.strip_prefix("not ") {
                Some(name) => (name, true),
                None => (words, false),
            };
            let value = self.read_setting(name).map_err(|what| self.source.fault_at(&switch.span(), what))?;
            is_on &= (value == 0.0) == off;
        }
        Ok(is_on)
    }

    /// Reads the words that say when a step is taken.
    fn read_moment(&self, given: &Spanned<String>) -> Result<StepMoment, PolicyError> {
        let words: Vec<&str> = given.get_ref().split_whitespace().collect();
        let share = |word: &str| match (word.parse::<f64>(), word.starts_with('$')) {
            (Ok(share), _) => Ok(share),
            (Err(_), true) => self.read_setting(word),
            (Err(_), false) => Err(format!("{word:?} is neither a share such as 0.75 nor a $setting")),
        };
        let when = match words.as_slice() {
            ["birth"] => Ok(StepMoment::Birth),
            ["cold"] => Ok(StepMoment::Cold),
            ["pays"] => Ok(StepMoment::Pays),
            ["always"] => Ok(StepMoment::Always),
            ["over", over] => share(over).map(|share| StepMoment::Over { share, until: None }),
            ["over", over, "until", until] => {
                share(over).and_then(|over| Ok(StepMoment::Over { share: over, until: Some(share(until)?) }))
            }
            _ => Err(format!(
                "when = {:?}: expected birth, cold, pays, always, or over SHARE [until SHARE]",
                words.join(" ")
            )),
        };
        when.map_err(|what| self.source.fault_at(&given.span(), what))
    }

    fn read_selection(&self, row: &SelectRow) -> Result<BlockSelection, PolicyError> {
        let tokens = |key, given: &Option<_>| self.read_number(key, SettingUnit::Tokens, given.as_ref());
        let count = |key, given: &Option<_>| self.read_number(key, SettingUnit::Count, given.as_ref());
        Ok(BlockSelection {
            what: row.what,
            tools: row.tools.as_ref().map(|tools| tools.get_ref().to_list()).unwrap_or_default(),
            path: row.path.clone(),
            tokens_over: tokens("tokens_over", &row.tokens_over)?,
            chars_over: self.read_number("chars_over", SettingUnit::Characters, row.chars_over.as_ref())?,
            bytes_over: self.read_number("bytes_over", SettingUnit::Bytes, row.bytes_over.as_ref())?,
            share_over: self.read_number("share_over", SettingUnit::Share, row.share_over.as_ref())?,
            older_than: self.read_number("older_than", SettingUnit::Steps, row.older_than.as_ref())?,
            keep_last: count("keep_last", &row.keep_last)?,
            protect: tokens("protect", &row.protect)?,
            minimum: tokens("minimum", &row.minimum)?,
            spare_errors: row.spare_errors,
            redundant: row.redundant.clone(),
            rereads_beyond: count("rereads_beyond", &row.rereads_beyond)?,
            edits_beyond: count("edits_beyond", &row.edits_beyond)?,
            class_at_most: self.read_number(
                "class_at_most",
                SettingUnit::Class,
                row.class_at_most.as_ref(),
            )?,
            shows: row.shows.iter().map(|name| self.read_result_sort(name)).collect::<Result<_, _>>()?,
            results_after: count("results_after", &row.results_after)?,
            needed_under: self.read_number("needed_under", SettingUnit::Need, row.needed_under.as_ref())?,
            edited: row.edited,
            turn_since: row.turn_since,
            order: row.order,
            but_not: Vec::new(),
        })
    }

    fn read_result_sort(&self, name: &Spanned<String>) -> Result<ResultSort, PolicyError> {
        let found = ResultSort::ALL.iter().find(|(known, _)| known == name.get_ref());
        found.map(|(_, shows)| *shows).ok_or_else(|| {
            let known = ResultSort::ALL.map(|(name, _)| name).join(", ");
            self.source
                .fault_at(&name.span(), format!("shows = {:?}: expected one of {known}", name.get_ref()))
        })
    }

    fn read_action(&self, row: &StepRow) -> Result<StepAction, PolicyError> {
        self.check_word(&row.act, STEP_ACTS)?;
        let at = row.act.span();
        let wrong = |what: String| self.source.fault_at(&at, what);
        let words = row.act.get_ref().as_str();
        let needed = |key: &str, unit, given: &Option<_>| {
            self.read_number(key, unit, given.as_ref())?
                .ok_or_else(|| wrong(format!("do = {words:?} needs {key}")))
        };
        let end = |key, given: &Option<_>| {
            Ok(self.read_number(key, SettingUnit::Count, given.as_ref())?.unwrap_or(LINES_AT_EACH_END))
        };
        let act = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["pin"] => StepAction::Pin,
            ["hold"] => StepAction::Hold,
            ["inputs", "commands"] => StepAction::Inputs(InputShortening::Commands),
            ["inputs", "safe"] => StepAction::Inputs(InputShortening::Safe),
            ["inputs", "all"] => StepAction::Inputs(InputShortening::All),
            ["inputs"] => StepAction::Inputs(match self.settings.get("inputs") {
                Some(value) if *value >= COMMANDS => InputShortening::Commands,
                Some(value) if *value >= 2.0 => InputShortening::All,
                Some(value) if *value >= 1.0 => InputShortening::Safe,
                Some(_) | None => InputShortening::Off,
            }),
            ["digest"] => StepAction::Digest(None),
            ["digest", name] if digest::find_digest(name).is_some() => {
                StepAction::Digest(Some((*name).to_owned()))
            }
            ["digest", name] => {
                let names: Vec<&str> = digest::digests().map(|(name, _)| name).collect();
                return Err(wrong(match nearest_word(name, &names) {
                    Some(near) => format!("there is no digest {name:?}; did you mean \"digest {near}\"?"),
                    None => format!("there is no digest {name:?}; there are: {}", names.join(", ")),
                }));
            }
            ["head-tail-chars"] => StepAction::HeadTail {
                above: needed("above", SettingUnit::Characters, &row.above)?,
                keep: needed("keep", SettingUnit::Characters, &row.keep)?,
            },
            ["head-tail"] if row.above.is_some() || row.keep.is_some() => {
                let what = "head-tail keeps lines: write head and tail, or do = \"head-tail-chars\" with above and keep for characters";
                return Err(wrong(what.to_owned()));
            }
            ["head-tail"] => {
                StepAction::HeadTailLines { head: end("head", &row.head)?, tail: end("tail", &row.tail)? }
            }
            ["middle-out"] => {
                StepAction::MiddleOut { bytes: needed("bytes", SettingUnit::Bytes, &row.bytes)? }
            }
            ["cap"] => StepAction::Cap { share: needed("share", SettingUnit::Share, &row.share)? },
            ["names"] => StepAction::Names,
            ["seen"] => StepAction::Seen,
            ["rewrite", word] => {
                let form = RewriteForm::ALL.into_iter().find(|form| form.word() == *word);
                let forms = RewriteForm::ALL.map(RewriteForm::word).join(", ");
                StepAction::Rewrite(
                    form.ok_or_else(|| wrong(format!("there is no form {word:?}; there are: {forms}")))?,
                )
            }
            ["lines" | "matching"] => StepAction::Matching(self.read_patterns(row.lines.as_ref(), &at)?),
            ["clear"] => StepAction::Clear,
            ["drop"] => StepAction::Drop,
            ["fold"] => StepAction::Fold,
            ["make-room"] => StepAction::MakeRoom { cold: needed("share", SettingUnit::Share, &row.share)? },
            _ => return Err(wrong(format!("do = {words:?}: write one of {}", STEP_ACTS.join(", ")))),
        };
        let ends = [row.head.as_ref(), row.tail.as_ref()].map(|end| end.map(Spanned::span));
        let [head, tail] = ends;
        for (key, given, acts) in [
            ("head", head, "head-tail"),
            ("tail", tail, "head-tail"),
            ("lines", row.lines.as_ref().map(Spanned::span), "lines"),
        ] {
            if let Some(given) = given
                && words.replace("matching", "lines") != acts
            {
                let what = format!("`{key}` means something only with do = {acts:?}");
                return Err(self.source.fault_at(&given, what));
            }
        }
        Ok(act)
    }

    /// Holds the first word of what is done to those there are.
    fn check_word(&self, act: &Spanned<String>, acts: &[&str]) -> Result<(), PolicyError> {
        let words = act.get_ref();
        let first = words.split_whitespace().next().unwrap_or_default();
        if acts.contains(&first) {
            return Ok(());
        }
        let near =
            nearest_word(first, acts).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let what = format!("do = {words:?}: write one of {}{near}", acts.join(", "));
        Err(self.source.fault_at(&act.span(), what))
    }

    /// Reads the patterns of lines to keep, and holds them to the rules of regular expressions.
    fn read_patterns(
        &self,
        lines: Option<&Spanned<OneOrMany>>,
        at: &Range<usize>,
    ) -> Result<Vec<String>, PolicyError> {
        let patterns = lines.map(|lines| lines.get_ref().to_list()).unwrap_or_default();
        if patterns.is_empty() {
            let what = "do = \"lines\" needs patterns: add lines = [\"^error\", \"warning\"]";
            return Err(self.source.fault_at(at, what.to_owned()));
        }
        for pattern in &patterns {
            if let Err(fault) = regex::Regex::new(pattern) {
                let at = lines.map_or_else(|| at.clone(), Spanned::span);
                let why = fault.to_string();
                let why = why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
                let what = format!("{pattern:?} is no regular expression: {why}");
                return Err(self.source.fault_at(&at, what));
            }
        }
        Ok(patterns)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, StepAction};

    #[track_caller]
    fn check(step: &str, sentence: &str) {
        let toml = format!("[[step]]\nwhen = 'always'\n{step}\n");
        let said = Policy::from_toml("mine.toml", &toml, &[]).expect_err(step).to_string();
        assert!(said.contains(sentence), "{step}\nsaid: {said}");
    }

    #[test]
    fn a_malformed_step_is_answered_with_line_column_and_what_to_write() {
        check("do = 'cleer'", "mine.toml, line 3, column 6: do = \"cleer\": write one of pin, hold,");
        check("do = 'clear'\nabove = []", "line 4, column 9: expected a number");
        check("do = 'clear'\nonly_if = '$none'", "line 4, column 11: there is no setting \"none\"");
        check("do = 'clear'\nselect = { tokens_over = '$none' }", "line 4, column 26: there is no setting");
        check(
            "do = 'clear'\nselect = { shows = ['files'] }",
            "line 4, column 21: shows = \"files\": expected",
        );
        check(
            "do = 'clear'\nselect = { tol = 'x' }",
            "line 4, column 12: there is no key `tol`; did you mean `tool`?",
        );
        check("do = 'middle-out'", "line 3, column 6: do = \"middle-out\" needs bytes");
        check("do = 'inputs'", "do = \"inputs\" needs select");
        check("do = 'rewrite padding'", "do = \"rewrite padding\" needs when = \"birth\"");
        check("do = 'rewrite upside-down'", "there is no form \"upside-down\"; there are: padding, ansi,");
        check(
            "do = 'head-tail'\nkeep = 2000",
            "head-tail keeps lines: write head and tail, or do = \"head-tail-chars\"",
        );
    }

    #[test]
    fn a_step_and_a_rule_say_the_same_with_the_same_words() {
        let act = |toml: &str| {
            let policy = Policy::from_toml("mine.toml", toml, &[]).expect(toml);
            policy.steps.into_iter().map(|step| (step.select.tools, step.act)).next()
        };
        for words in ["do = 'head-tail'", "do = 'head-tail'\nhead = 3", "do = 'lines'\nlines = '^error'"] {
            let step = act(&format!("[[step]]\nwhen = 'always'\n{words}\nselect = {{ tool = 'Bash' }}\n"));
            assert_eq!(step, act(&format!("[[rule]]\ntool = 'Bash'\n{words}\n")), "{words}");
        }
        let lines = StepAction::HeadTailLines { head: 10.0, tail: 10.0 };
        let step = act("[[step]]\nwhen = 'always'\ndo = 'head-tail'\nselect = { tools = ['Bash'] }\n");
        assert_eq!(step, Some((vec!["Bash".to_owned()], lines)));
    }
}
