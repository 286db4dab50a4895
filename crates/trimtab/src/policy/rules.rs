//! Rules of the user's own, one `[[rule]]` each. Takes spanned TOML; gives steps that stand before those of a policy, or the
//! sentence that says what to write instead. Never lets a rule pass that selects something other than it says.

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    Act, PolicyError, Select, Step, When,
    knobs::Unit,
    parse::when_words,
    source::{Source, nearest, unknown_key},
};
use crate::digest;

/// Lines that `head-tail` keeps at each end where a rule does not say: as for files (seed 001).
const LINES_AT_EACH_END: f64 = 10.0;

/// The keys of a rule.
const KEYS: &[&str] = &[
    "name", "tool", "path", "tokens_over", "chars_over", "older_than", "keep_last", "when", "do", "head",
    "tail", "lines",
];

/// What a rule can do.
const ACTS: &[&str] = &["keep", "pin", "head-tail", "lines", "digest", "clear", "drop"];

/// A rule: what it selects, and what becomes of that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(super) step: Step,
    /// Whether what it selects is left to the closing step alone.
    pub(super) keeps: bool,
}

type Key<'a, 'i> = &'a Spanned<DeString<'i>>;
type Given<'a, 'i> = &'a Spanned<DeValue<'i>>;

/// Reads the list under `rule`.
pub(super) fn rules(source: Source<'_>, list: Given<'_, '_>) -> Result<Vec<Rule>, PolicyError> {
    let Some(items) = list.get_ref().as_array() else {
        return Err(
            source.fault(&list.span(), "rules are a list: write [[rule]], with two brackets".to_owned())
        );
    };
    let mut rules = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(table) = item.get_ref().as_table() else {
            return Err(
                source.fault(&item.span(), "a rule is a table: write [[rule]] and its keys below".to_owned())
            );
        };
        rules.push(rule(source, index + 1, &item.span(), table)?);
    }
    Ok(rules)
}

fn rule(
    source: Source<'_>,
    number: usize,
    at: &std::ops::Range<usize>,
    table: &DeTable<'_>,
) -> Result<Rule, PolicyError> {
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            return Err(source.fault(&key.span(), unknown_key(key.get_ref(), KEYS)));
        }
    }
    let read = Reader { source, table };
    let select = Select {
        tools: read.texts("tool")?,
        path: read.text("path")?,
        tokens_over: read.number("tokens_over", Unit::Tokens)?,
        chars_over: read.number("chars_over", Unit::Characters)?,
        older_than: read.number("older_than", Unit::Steps)?,
        keep_last: read.number("keep_last", Unit::Count)?,
        ..Select::default()
    };
    if select == Select::default() {
        let what = "this rule selects everything: give it a tool, a path or a size, such as tool = \"Bash\"";
        return Err(source.fault(at, what.to_owned()));
    }
    let when = match read.get("when") {
        None => When::Always,
        Some((_, value)) => {
            let words = read.text("when")?.unwrap_or_default();
            when_words(&words, &|_| None).map_err(|what| source.fault(&value.span(), what))?
        }
    };
    let name = read.text("name")?.unwrap_or_else(|| number.to_string());
    let (act, keeps) = act(&read, at)?;
    Ok(Rule { step: Step { when, select, act, rule: Some(name) }, keeps })
}

fn act(read: &Reader<'_, '_>, at: &std::ops::Range<usize>) -> Result<(Act, bool), PolicyError> {
    let Some((_, value)) = read.get("do") else {
        let what = format!("this rule does nothing: add do = \"…\" with one of {}", ACTS.join(", "));
        return Err(read.source.fault(at, what));
    };
    let wrong = |what: String| read.source.fault(&value.span(), what);
    let words = read.text("do")?.unwrap_or_default();
    let act = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["keep"] => return Ok((Act::Pin, true)),
        ["pin"] => Act::Pin,
        ["clear"] => Act::Clear,
        ["drop"] => Act::Drop,
        ["digest"] => Act::Digest(None),
        ["digest", name] if digest::find_digest(name).is_some() => Act::Digest(Some((*name).to_owned())),
        ["digest", name] => {
            let names: Vec<&str> = digest::digests().map(|(name, _)| name).collect();
            return Err(wrong(match nearest(name, &names) {
                Some(near) => format!("there is no digest {name:?}; did you mean \"digest {near}\"?"),
                None => format!("there is no digest {name:?}; there are: {}", names.join(", ")),
            }));
        }
        ["head-tail"] => Act::HeadTailLines {
            head: read.number("head", Unit::Count)?.unwrap_or(LINES_AT_EACH_END),
            tail: read.number("tail", Unit::Count)?.unwrap_or(LINES_AT_EACH_END),
        },
        ["lines"] => Act::Matching(patterns(read, &value.span())?),
        _ => {
            let first = words.split_whitespace().next().unwrap_or_default();
            let near =
                nearest(first, ACTS).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(wrong(format!("do = {words:?}: write one of {}{near}", ACTS.join(", "))));
        }
    };
    for (key, acts) in [("head", "head-tail"), ("tail", "head-tail"), ("lines", "lines")] {
        if let Some((given, _)) = read.get(key)
            && words != acts
        {
            let what = format!("`{key}` means something only with do = {acts:?}");
            return Err(read.source.fault(&given.span(), what));
        }
    }
    Ok((act, false))
}

/// Reads the patterns of lines to keep, and holds them to the rules of regular expressions.
fn patterns(read: &Reader<'_, '_>, at: &std::ops::Range<usize>) -> Result<Vec<String>, PolicyError> {
    let patterns = read.texts("lines")?;
    if patterns.is_empty() {
        let what = "do = \"lines\" needs patterns: add lines = [\"^error\", \"warning\"]";
        return Err(read.source.fault(at, what.to_owned()));
    }
    for pattern in &patterns {
        if let Err(fault) = regex::Regex::new(pattern) {
            let at = read.get("lines").map_or_else(|| at.clone(), |(_, value)| value.span());
            let why = fault.to_string();
            let why = why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            let what = format!("{pattern:?} is no regular expression: {why}");
            return Err(read.source.fault(&at, what));
        }
    }
    Ok(patterns)
}

struct Reader<'a, 'i> {
    source: Source<'a>,
    table: &'a DeTable<'i>,
}

impl<'a, 'i> Reader<'a, 'i> {
    fn get(&self, name: &str) -> Option<(Key<'a, 'i>, Given<'a, 'i>)> {
        self.table.iter().find(|(key, _)| key.get_ref().as_ref() == name)
    }

    fn text(&self, name: &str) -> Result<Option<String>, PolicyError> {
        let Some((_, value)) = self.get(name) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.source.fault(&value.span(), format!("{name} is a text: write {name} = \"…\""))),
        }
    }

    /// Reads a text or a list of texts.
    fn texts(&self, name: &str) -> Result<Vec<String>, PolicyError> {
        let Some((_, value)) = self.get(name) else { return Ok(Vec::new()) };
        let wrong = || {
            let what = format!("{name} is a text or a list of texts: write {name} = [\"…\", \"…\"]");
            self.source.fault(&value.span(), what)
        };
        if let Some(text) = value.get_ref().as_str() {
            return Ok(vec![text.to_owned()]);
        }
        let items = value.get_ref().as_array().ok_or_else(wrong)?;
        items.iter().map(|item| item.get_ref().as_str().map(str::to_owned).ok_or_else(wrong)).collect()
    }

    fn number(&self, name: &str, unit: Unit) -> Result<Option<f64>, PolicyError> {
        let Some((_, value)) = self.get(name) else { return Ok(None) };
        let words = plain(value.get_ref());
        let read = unit.read(&words);
        read.map(Some).map_err(|what| self.source.fault(&value.span(), format!("{name} = {what}")))
    }
}

/// Returns a plain value as its words; a text is given as it stands.
pub(super) fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => format!("a {}", value.type_str()),
    }
}
