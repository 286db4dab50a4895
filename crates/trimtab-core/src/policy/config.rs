//! The user's own file, `trimtab.toml` or `config.toml`. Takes its text; gives settings with their lines and rules. Never
//! reads a file by itself, never guesses a misspelt key.

use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use super::{
    PolicyError, SHIPPED,
    all_settings::{KNOBS, find_knob},
    rows::{ParsedRule, RuleRow, read_rules},
    source::{TomlSource, nearest_word, plain_value, unknown_key},
};
use crate::policy::{Folding, Markers};

/// What a file of the user's says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigFile {
    /// The file's name.
    pub file: String,
    /// The policy asked for, with its line.
    pub policy: Option<(String, usize)>,
    /// The model to count and pay for, with its line.
    pub model: Option<(String, usize)>,
    /// The budget in tokens, with its line.
    pub budget: Option<(u64, usize)>,
    /// How a policy folds, with its line.
    pub fold: Option<(Folding, usize)>,
    /// Whether cache markers are set for clients that set none, with its line.
    pub markers: Option<(Markers, usize)>,
    /// How long conversations are kept, as written, with its line.
    pub keep_for: Option<(String, usize)>,
    /// How large the store may become, as written, with its line.
    pub keep_at_most: Option<(String, usize)>,
    /// Whether secrets are shown in what is found, with its line.
    pub show_secrets: Option<(bool, usize)>,
    /// Regular expressions of further secrets, with their line.
    pub secret_patterns: Option<(Vec<String>, usize)>,
    /// Servers that requests may go to.
    pub upstreams: Vec<ConfigUpstream>,
    /// Values of settings.
    pub settings: Vec<ConfigSetting>,
    pub(super) rules: Vec<ParsedRule>,
}

/// One setting in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigSetting {
    /// Its name.
    pub name: String,
    /// The policy it is for; every one that has it, where none is named.
    pub policy: Option<String>,
    /// Its value.
    pub value: f64,
    /// Its line, counted from 1.
    pub line: usize,
}

/// A server that requests may go to, in a file: `[upstream.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigUpstream {
    /// Its name, which paths begin with.
    pub name: String,
    /// Its address.
    pub url: Option<String>,
    /// Whose interface it speaks.
    pub wire: Option<String>,
    /// What the names of models begin with that are asked of it.
    pub model_prefix: Option<String>,
    /// Its line, counted from 1.
    pub line: usize,
}

/// The rules of a file, with their places.
#[derive(Deserialize)]
struct RuleFile {
    #[serde(rename = "rule")]
    rules: Vec<Spanned<RuleRow>>,
}

/// Keys beside the settings.
const KEYS: &[&str] = &[
    "policy", "model", "budget", "fold", "markers", "rule", "upstream", "keep_for", "keep_at_most",
    "show_secrets", "secret_patterns",
];

/// Keys of an upstream.
const UPSTREAM_KEYS: &[&str] = &["url", "wire", "model_prefix"];

impl ConfigFile {
    /// Reads a file's text.
    ///
    /// ```
    /// let toml = "policy = \"per-tool\"\nprune_protect = 20000\n\n[[rule]]\ntool = \"Bash\"\nchars_over = 9000\ndo = \"digest\"\n";
    /// let config = trimtab_core::policy::ConfigFile::parse("trimtab.toml", toml)?;
    /// assert_eq!(config.settings[0].value, 20_000.0);
    /// let fault = trimtab_core::policy::ConfigFile::parse("trimtab.toml", "prune_protct = 1").unwrap_err();
    /// assert_eq!(fault.to_string(), "trimtab.toml, line 1, column 1: there is no key `prune_protct`; did you mean `prune_protect`?");
    /// # Ok::<(), trimtab_core::policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// Names the file, the line, the column and what to write instead.
    pub fn parse(file: &str, toml: &str) -> Result<ConfigFile, PolicyError> {
        let source = TomlSource { file, text: toml };
        let table = DeTable::parse(toml).map_err(|fault| source.toml_fault(&fault))?;
        let mut config = ConfigFile { file: file.to_owned(), ..ConfigFile::default() };
        for (key, value) in table.get_ref() {
            let name = key.get_ref().as_ref();
            let line = source.line_of(key.span().start);
            let wrong = |what: String| source.fault_at(&value.span(), what);
            match name {
                "policy" | "model" | "keep_for" | "keep_at_most" => {
                    let text = value.get_ref().as_str();
                    let text =
                        text.ok_or_else(|| wrong(format!("{name} is a text: write {name} = \"…\"")))?;
                    let place = match name {
                        "policy" => &mut config.policy,
                        "model" => &mut config.model,
                        "keep_for" => &mut config.keep_for,
                        _ => &mut config.keep_at_most,
                    };
                    *place = Some((text.to_owned(), line));
                }
                "show_secrets" => {
                    let shown = value.get_ref().as_bool();
                    let shown = shown.ok_or_else(|| wrong(format!("{name} is true or false")))?;
                    config.show_secrets = Some((shown, line));
                }
                "secret_patterns" => {
                    let items = value.get_ref().as_array().map(|items| items.iter());
                    let texts = items.and_then(|items| {
                        items
                            .map(|item| item.get_ref().as_str().map(str::to_owned))
                            .collect::<Option<Vec<_>>>()
                    });
                    let form = format!("{name} is a list of texts: write {name} = [\"…\", \"…\"]");
                    config.secret_patterns = Some((texts.ok_or_else(|| wrong(form))?, line));
                }
                "budget" => {
                    let tokens = plain_value(value.get_ref()).replace('_', "").parse().ok();
                    let tokens =
                        tokens.ok_or_else(|| wrong("budget is a whole number of tokens".to_owned()))?;
                    config.budget = Some((tokens, line));
                }
                "fold" => {
                    let said = value.get_ref().as_str();
                    let fold = Folding::ALL.into_iter().find(|fold| said == Some(fold.name()));
                    let names = Folding::ALL.map(|fold| format!("\"{}\"", fold.name())).join(", ");
                    config.fold = Some((fold.ok_or_else(|| wrong(format!("fold is one of {names}")))?, line));
                }
                "markers" => {
                    let said = value.get_ref().as_str();
                    let markers = Markers::ALL.into_iter().find(|markers| said == Some(markers.name()));
                    let names = Markers::ALL.map(|markers| format!("\"{}\"", markers.name())).join(" or ");
                    let markers = markers.ok_or_else(|| wrong(format!("markers is {names}")))?;
                    config.markers = Some((markers, line));
                }
                "rule" => {
                    let file: RuleFile = toml::from_str(toml).map_err(|fault| source.toml_fault(&fault))?;
                    config.rules = read_rules(source, file.rules)?;
                }
                "upstream" => config.upstreams = parse_upstreams(source, value)?,
                _ if SHIPPED.iter().any(|(policy, _)| *policy == name) => {
                    let of_policy = value.get_ref().as_table().ok_or_else(|| {
                        wrong(format!("the settings of a policy are a table: write [{name}]"))
                    })?;
                    for (key, value) in of_policy {
                        config.settings.push(parse_setting(source, key, value, Some(name))?);
                    }
                }
                _ => config.settings.push(parse_setting(source, key, value, None)?),
            }
        }
        // The reader sorts by name; people think in the order of the file.
        config.settings.sort_by_key(|setting| setting.line);
        Ok(config)
    }

    /// Returns how many rules there are.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }
}

fn parse_upstreams(
    source: TomlSource<'_>,
    value: &Spanned<toml::de::DeValue<'_>>,
) -> Result<Vec<ConfigUpstream>, PolicyError> {
    let form = "upstreams are tables: write [upstream.NAME]";
    let tables = value.get_ref().as_table().ok_or_else(|| source.fault_at(&value.span(), form.to_owned()))?;
    let mut upstreams = Vec::new();
    for (name, value) in tables {
        let members = value.get_ref().as_table();
        let members = members.ok_or_else(|| source.fault_at(&value.span(), form.to_owned()))?;
        let line = source.line_of(name.span().start);
        let mut upstream =
            ConfigUpstream { name: name.get_ref().to_string(), line, ..ConfigUpstream::default() };
        for (key, value) in members {
            let key_name = key.get_ref().as_ref();
            let place = match key_name {
                "url" => &mut upstream.url,
                "wire" => &mut upstream.wire,
                "model_prefix" => &mut upstream.model_prefix,
                _ => return Err(source.fault_at(&key.span(), unknown_key(key_name, UPSTREAM_KEYS))),
            };
            let text = value.get_ref().as_str();
            let wrong =
                || source.fault_at(&value.span(), format!("{key_name} is a text: write {key_name} = \"…\""));
            *place = Some(text.ok_or_else(wrong)?.to_owned());
        }
        upstreams.push(upstream);
    }
    Ok(upstreams)
}

fn parse_setting(
    source: TomlSource<'_>,
    key: &Spanned<toml::de::DeString<'_>>,
    value: &Spanned<toml::de::DeValue<'_>>,
    policy: Option<&str>,
) -> Result<ConfigSetting, PolicyError> {
    let name = key.get_ref().as_ref();
    let Some(knob) = find_knob(name) else {
        return Err(source.fault_at(&key.span(), unknown_key_fault(name)));
    };
    let words = plain_value(value.get_ref());
    let read =
        knob.read(&words).map_err(|what| source.fault_at(&value.span(), format!("{name} = {what}")))?;
    let line = source.line_of(key.span().start);
    Ok(ConfigSetting { name: name.to_owned(), policy: policy.map(str::to_owned), value: read, line })
}

fn unknown_key_fault(name: &str) -> String {
    let settings = KNOBS.iter().map(|knob| knob.name);
    let known: Vec<&str> =
        KEYS.iter().copied().chain(settings).chain(SHIPPED.iter().map(|(policy, _)| *policy)).collect();
    match nearest_word(name, &known) {
        Some(_) => unknown_key(name, &known),
        None => format!("there is no key `{name}`; `trimtab policies` lists the settings there are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{StepAction, StepMoment};

    fn fault(toml: &str) -> String {
        match ConfigFile::parse("trimtab.toml", toml).expect_err(toml) {
            PolicyError::At { file, line, what, .. } => format!("{file}, line {line}: {what}"),
            other => other.to_string(),
        }
    }

    #[test]
    fn settings_are_for_all_policies_or_for_one() {
        let config = ConfigFile::parse(
            "t",
            "policy = 'recent'\nbudget = 50_000\nkeep_last = 9\nintelligent_pruning = false\n[ladder]\nkeep_last = 3\ninputs = 'safe'\n",
        )
        .expect("a file");
        assert_eq!(config.policy, Some(("recent".to_owned(), 1)));
        assert_eq!(config.budget, Some((50_000, 2)));
        let told: Vec<(&str, Option<&str>, f64, usize)> = config
            .settings
            .iter()
            .map(|setting| (&*setting.name, setting.policy.as_deref(), setting.value, setting.line))
            .collect();
        assert_eq!(
            told,
            [
                ("keep_last", None, 9.0, 3),
                ("intelligent_pruning", None, 0.0, 4),
                ("keep_last", Some("ladder"), 3.0, 6),
                ("inputs", Some("ladder"), 1.0, 7)
            ]
        );
    }

    #[test]
    fn an_upstream_has_an_address_a_wire_and_the_models_it_is_asked_for() {
        let toml = "[upstream.work]\nurl = 'https://gateway.example/v1'\nwire = 'openai'\n\n[upstream.deepseek]\nmodel_prefix = 'deepseek-'\n";
        let config = ConfigFile::parse("t", toml).expect("a file");
        let mut found = config.upstreams;
        found.sort_by_key(|upstream| upstream.line);
        let expected = [
            ConfigUpstream {
                name: "work".to_owned(),
                url: Some("https://gateway.example/v1".to_owned()),
                wire: Some("openai".to_owned()),
                model_prefix: None,
                line: 1,
            },
            ConfigUpstream {
                name: "deepseek".to_owned(),
                model_prefix: Some("deepseek-".to_owned()),
                line: 5,
                ..ConfigUpstream::default()
            },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_kept_and_shown_of_conversations_is_read_as_written() {
        let toml =
            "keep_for = '30d'\nkeep_at_most = '2GB'\nshow_secrets = true\nsecret_patterns = ['a', 'b']\n";
        let config = ConfigFile::parse("t", toml).expect("a file");
        assert_eq!(config.keep_for, Some(("30d".to_owned(), 1)));
        assert_eq!(config.keep_at_most, Some(("2GB".to_owned(), 2)));
        assert_eq!(config.show_secrets, Some((true, 3)));
        assert_eq!(config.secret_patterns, Some((vec!["a".to_owned(), "b".to_owned()], 4)));
    }

    #[test]
    fn how_a_policy_folds_is_one_of_three_words() {
        let config = ConfigFile::parse("t", "\nfold = 'ledger'\n").expect("a file");
        assert_eq!(config.fold, Some((Folding::Ledger, 2)));
        let config = ConfigFile::parse("t", "markers = 'off'\n").expect("a file");
        assert_eq!(config.markers, Some((Markers::AsTheyCame, 1)));
    }

    #[test]
    fn a_rule_says_what_it_selects_and_what_becomes_of_it() {
        let toml = "[[rule]]\nname = 'locks'\ntool = ['Read', 'mcp__*']\npath = '*.lock'\ntokens_over = 500\ndo = 'head-tail'\nhead = 3\n\n[[rule]]\ntool = 'Bash'\nolder_than = 4\ndo = 'lines'\nlines = '^error'\nwhen = 'over 0.5 until 0.4'\n";
        let config = ConfigFile::parse("t", toml).expect("rules");
        let [locks, bash] = config.rules.as_slice() else { panic!("{:?}", config.rules) };
        assert_eq!(locks.step.rule.as_deref(), Some("locks"));
        assert_eq!(locks.step.select.tools, ["Read", "mcp__*"]);
        assert_eq!(locks.step.select.path.as_deref(), Some("*.lock"));
        assert_eq!(locks.step.select.tokens_over, Some(500.0));
        assert_eq!(locks.step.act, StepAction::HeadTailLines { head: 3.0, tail: 10.0 });
        assert_eq!(locks.step.when, StepMoment::Always);
        assert_eq!(bash.step.rule.as_deref(), Some("2"));
        assert_eq!(bash.step.act, StepAction::Matching(vec!["^error".to_owned()]));
        assert_eq!(bash.step.when, StepMoment::Over { share: 0.5, until: Some(0.4) });
    }

    #[test]
    fn a_malformed_rule_is_answered_with_file_line_and_what_to_write() {
        for (toml, sentence) in [
            ("[[rule]]\ntol = 'Bash'\ndo = 'clear'", "line 2: there is no key `tol`; did you mean `tool`?"),
            (
                "\n[[rule]]\ntool = 'Bash'\n",
                "line 2: this rule does nothing: add do = \"…\" with one of keep, pin",
            ),
            (
                "[[rule]]\ndo = 'clear'",
                "line 1: this rule selects everything: give it a tool, a path or a size",
            ),
            (
                "[[rule]]\ntool = 'Bash'\ndo = 'cleer'",
                "line 3: do = \"cleer\": write one of keep, pin, head-tail, lines, digest, clear, drop; did you mean \"clear\"?",
            ),
            (
                "[[rule]]\ntool = 'Bash'\ndo = 'digest shel'",
                "line 3: there is no digest \"shel\"; did you mean \"digest shell\"?",
            ),
            ("[[rule]]\ntool = 'Bash'\ndo = 'lines'", "line 3: do = \"lines\" needs patterns: add lines = ["),
            (
                "[[rule]]\ntool = 'Bash'\ndo = 'lines'\nlines = ['a(']",
                "line 4: \"a(\" is no regular expression: unclosed group",
            ),
            (
                "[[rule]]\ntool = 'Bash'\ntokens_over = 'many'\ndo = 'clear'",
                "line 3: tokens_over = \"many\" is not a valid value: write a whole number of tokens",
            ),
            ("[[rule]]\ntool = 7\ndo = 'clear'", "line 2: expected a text or a list of texts: write ["),
            (
                "[[rule]]\ntool = 'Bash'\nhead = 3\ndo = 'clear'",
                "line 3: `head` means something only with do = \"head-tail\"",
            ),
            (
                "[[rule]]\ntool = 'Bash'\nwhen = 'later'\ndo = 'clear'",
                "line 3: when = \"later\": expected birth, cold, pays, always, or over SHARE",
            ),
            (
                "[rule]\ntool = 'Bash'\ndo = 'clear'",
                "line 1: this is a list: write [[rule]] or [[step]], with two brackets",
            ),
            (
                "keep_last = 'five'",
                "line 1: keep_last = \"five\" is not a valid value: write a whole number, such as 5",
            ),
            ("[ladder]\nkep_last = 5", "line 2: there is no key `kep_last`; did you mean `keep_last`?"),
            ("polcy = 'recent'", "line 1: there is no key `polcy`; did you mean `policy`?"),
            ("zzzzzzzzzzzz = 1", "line 1: there is no key `zzzzzzzzzzzz`; `trimtab policies` lists"),
            ("markers = true", "line 1: markers is \"off\" or \"auto\""),
            ("fold = 'leger'", "line 1: fold is one of \"off\", \"summary\", \"ledger\""),
            ("keep_for = 30", "line 1: keep_for is a text: write keep_for ="),
            ("show_secrets = 'no'", "line 1: show_secrets is true or false"),
            (
                "secret_patterns = 'a'",
                "line 1: secret_patterns is a list of texts: write secret_patterns = [",
            ),
            ("upstream = 5", "line 1: upstreams are tables: write [upstream.NAME]"),
            ("[upstream.a]\nurl = 5", "line 2: url is a text: write url ="),
            (
                "[upstream.a]\nmodel_prefx = 'x'",
                "line 2: there is no key `model_prefx`; did you mean `model_prefix`?",
            ),
            ("ladder = 5", "line 1: the settings of a policy are a table: write [ladder]"),
            ("a = = 1", "line 1: "),
        ] {
            let said = fault(toml);
            assert!(said.starts_with("trimtab.toml, ") && said.contains(sentence), "{toml}\nsaid: {said}");
        }
    }
}
