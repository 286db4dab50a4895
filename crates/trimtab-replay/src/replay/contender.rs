//! Who takes part in a replay. Takes what people write (`steady`, `recent(keep_last=5)`, `steady+keepalive`, `peer:mask(10)`,
//! `oracle:block`) or the TOML of a policy; gives a contender with its name. Never reads a file.

use trimtab_core::policy::{Policy, PolicyError, policies};

use super::{
    keep_alive::KeepAliveTerms,
    peers::{Rival, RivalRole, rivals},
};

/// A policy of ours, another tool's, or a bound that knows the future.
#[derive(Debug, Clone)]
pub struct Contender {
    name: String,
    pub(super) plays: ContenderKind,
    /// Whether its cache is kept alive in pauses.
    pub(super) keep_alive: Option<KeepAliveTerms>,
}

/// What a contender does.
#[derive(Debug, Clone)]
pub(super) enum ContenderKind {
    Policy(Box<Policy>),
    Rival(&'static Rival, f64),
}

/// What sort of contender it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContenderFamily {
    /// A policy that `fit` can follow.
    Policy,
    /// What another tool does, as far as it is known.
    Peer,
    /// A bound: it looks at what will be used.
    Oracle,
}

/// Which values of the rivals' parameters take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobRange {
    /// Each rival's own default.
    Default,
    /// All that a rival is compared at.
    All,
}

/// A contender that cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContenderError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Nothing has that name.
    #[error("there is no policy {name:?}; there are: {known}; or name a TOML file")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// What stands in brackets is not understood.
    #[error("{asked:?}: {what}")]
    Knob {
        /// What was asked for.
        asked: String,
        /// What is wrong with it, and what is expected.
        what: String,
    },
}

/// Returns every shipped policy and every rival.
pub fn contenders(knobs: KnobRange) -> Vec<Contender> {
    let ours = policies().filter_map(|(name, toml)| {
        let policy = Policy::from_toml(name, toml, &[]).ok()?;
        Some(Contender::of_policy(name, policy))
    });
    let others = rivals().iter().flat_map(|rival| {
        let values = match knobs {
            KnobRange::Default => rival.knob.1.get(..1).unwrap_or_default(),
            KnobRange::All => rival.knob.1,
        };
        let named = |value: &f64| Contender {
            name: if knobs == KnobRange::All {
                format!("{}({value})", rival.name)
            } else {
                rival.name.to_owned()
            },
            plays: ContenderKind::Rival(rival, *value),
            keep_alive: None,
        };
        let plain = || Contender {
            name: rival.name.to_owned(),
            plays: ContenderKind::Rival(rival, 0.0),
            keep_alive: None,
        };
        if values.is_empty() { vec![plain()] } else { values.iter().map(named).collect() }
    });
    ours.chain(others).collect()
}

impl Contender {
    /// Finds a contender by what people write: a name, with its parameter or settings in brackets.
    ///
    /// ```
    /// use trimtab_replay::Contender;
    ///
    /// assert_eq!(Contender::parse("recent(keep_last=5)")?.name(), "recent(keep_last=5)");
    /// # Ok::<(), trimtab_replay::ContenderError>(())
    /// ```
    ///
    /// # Errors
    /// Says what there is, where nothing has that name, and what is expected in the brackets.
    pub fn parse(asked: &str) -> Result<Contender, ContenderError> {
        let (policy, keep_alive) = split_keep_alive(asked);
        let (name, inside) = split_name(policy)?;
        if let Some(rival) = rivals().iter().find(|rival| rival.name == name) {
            if keep_alive.is_some() {
                let what = format!("the cache is kept alive with policies only, and {name} is none");
                return Err(ContenderError::Knob { asked: asked.to_owned(), what });
            }
            return of_rival(asked, rival, inside);
        }
        let Some((_, toml)) = policies().find(|(shipped, _)| *shipped == name) else {
            return Err(ContenderError::Unknown { name: name.to_owned(), known: known_names() });
        };
        Contender::from_toml(asked, toml)
    }

    fn of_policy(name: &str, policy: Policy) -> Contender {
        Contender { name: name.to_owned(), plays: ContenderKind::Policy(Box::new(policy)), keep_alive: None }
    }

    /// Makes a contender of a policy's TOML. `asked` is its name or file, with its settings in brackets.
    ///
    /// # Errors
    /// Says what is wrong with the policy or the settings.
    pub fn from_toml(asked: &str, toml: &str) -> Result<Contender, ContenderError> {
        let (policy, keep_alive) = split_keep_alive(asked);
        let (name, inside) = split_name(policy)?;
        let wrong = |what: String| ContenderError::Knob { asked: asked.to_owned(), what };
        let mut changed = Vec::new();
        for words in inside.unwrap_or_default().split(',').filter(|words| !words.trim().is_empty()) {
            let (setting, value) = words.split_once('=').ok_or_else(|| {
                wrong(format!("expected {name}(SETTING=VALUE), as `trimtab policies` lists them"))
            })?;
            let value = value
                .trim()
                .parse()
                .map_err(|_| wrong(format!("{:?} is not a number for {}", value.trim(), setting.trim())))?;
            changed.push((setting.trim().to_owned(), value));
        }
        let policy = Policy::from_toml(name, toml, &changed)?;
        Ok(Contender { keep_alive, ..Contender::of_policy(asked.trim(), policy) })
    }

    /// Returns the name, with the parameter where one was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name without parameter and settings: contenders that share it lie on one curve.
    pub fn curve_name(&self) -> &str {
        // What keeps its cache alive is another curve.
        let is_plain = self.keep_alive.is_none();
        self.name.split('(').next().filter(|_| is_plain).unwrap_or(&self.name)
    }

    /// Returns what it does, in a sentence.
    pub fn about(&self) -> &str {
        match &self.plays {
            ContenderKind::Policy(policy) => &policy.about,
            ContenderKind::Rival(rival, _) => rival.about,
        }
    }

    /// Returns what its number means and its value, where it has one.
    pub fn knob(&self) -> Option<(&str, f64)> {
        match &self.plays {
            ContenderKind::Policy(_) => None,
            ContenderKind::Rival(rival, value) => {
                (!rival.knob.1.is_empty()).then_some((rival.knob.0, *value))
            }
        }
    }

    /// Returns what sort of contender it is.
    pub fn family(&self) -> ContenderFamily {
        match &self.plays {
            ContenderKind::Policy(_) => ContenderFamily::Policy,
            ContenderKind::Rival(rival, _) if rival.name.starts_with("oracle:") => ContenderFamily::Oracle,
            ContenderKind::Rival(..) => ContenderFamily::Peer,
        }
    }

    /// Tells whether it looks at prices or at the cache. The others show the same for every model of a provider that takes
    /// as much.
    pub(super) fn minds_prices(&self) -> bool {
        match &self.plays {
            ContenderKind::Policy(policy) => self.keep_alive.is_some() || policy.depends_on_prices(),
            ContenderKind::Rival(rival, _) => rival.role == RivalRole::PaidPlan,
        }
    }

    /// Tells whether it looks at the budget.
    pub(super) fn minds_budget(&self) -> bool {
        match &self.plays {
            ContenderKind::Policy(_) => true,
            ContenderKind::Rival(rival, _) => {
                matches!(rival.role, RivalRole::FreeWithinBudget | RivalRole::PaidPlan)
            }
        }
    }
}

impl ContenderFamily {
    /// Returns the name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            ContenderFamily::Policy => "policy",
            ContenderFamily::Peer => "peer",
            ContenderFamily::Oracle => "oracle",
        }
    }
}

fn of_rival(asked: &str, rival: &'static Rival, inside: Option<&str>) -> Result<Contender, ContenderError> {
    let wrong = |what: String| ContenderError::Knob { asked: asked.to_owned(), what };
    let value = match (inside, rival.knob) {
        (None, (_, values)) => values.first().copied().unwrap_or_default(),
        (Some(_), (_, [])) => return Err(wrong(format!("{} takes no number", rival.name))),
        (Some(words), (meaning, _)) => {
            let value = words.trim().parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| {
                wrong(format!("expected {}(NUMBER), the number being {meaning}", rival.name))
            })?
        }
    };
    let plays = ContenderKind::Rival(rival, value);
    Ok(Contender { name: asked.trim().to_owned(), plays, keep_alive: None })
}

/// Returns what is asked of a policy, without whether its cache is kept alive.
pub fn policy_words(asked: &str) -> &str {
    split_keep_alive(asked).0
}

/// Splits `policy+keepalive` and `policy+keepalive-wrap`.
fn split_keep_alive(asked: &str) -> (&str, Option<KeepAliveTerms>) {
    let asked = asked.trim();
    let endings =
        [("+keepalive", KeepAliveTerms::ByRuleAlone), ("+keepalive-wrap", KeepAliveTerms::UntilAgentEnds)];
    let found = endings.into_iter().find_map(|(ending, known)| Some((asked.strip_suffix(ending)?, known)));
    found.map_or((asked, None), |(policy, known)| (policy, Some(known)))
}

/// Splits `name(inside)`.
fn split_name(asked: &str) -> Result<(&str, Option<&str>), ContenderError> {
    let asked = asked.trim();
    let Some((name, rest)) = asked.split_once('(') else { return Ok((asked, None)) };
    let Some(inside) = rest.strip_suffix(')') else {
        let what = "the bracket is not closed".to_owned();
        return Err(ContenderError::Knob { asked: asked.to_owned(), what });
    };
    Ok((name.trim_end(), Some(inside)))
}

fn known_names() -> String {
    let names = policies().map(|(name, _)| name).chain(rivals().iter().map(|rival| rival.name));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str) -> Result<(String, String, ContenderFamily), String> {
        let contender = Contender::parse(asked).map_err(|error| error.to_string())?;
        Ok((contender.name().to_owned(), contender.curve_name().to_owned(), contender.family()))
    }

    #[test]
    fn a_policy_is_asked_for_by_name_and_settings() {
        assert_eq!(check("steady"), Ok(("steady".into(), "steady".into(), ContenderFamily::Policy)));
        assert_eq!(
            check(" recent(keep_last=5) "),
            Ok(("recent(keep_last=5)".into(), "recent".into(), ContenderFamily::Policy))
        );
        let ContenderKind::Policy(policy) = Contender::parse("age(max_age=2, small_tokens=9)").unwrap().plays
        else {
            panic!("a policy")
        };
        for (name, value) in [("max_age", 2.0), ("small_tokens", 9.0)] {
            assert!(policy.settings.contains(&(name.to_owned(), value)), "{:?}", policy.settings);
        }
    }

    #[test]
    fn a_policy_may_keep_its_cache_alive() {
        for (asked, known) in [
            ("steady", None),
            ("steady+keepalive", Some(KeepAliveTerms::ByRuleAlone)),
            ("recent(keep_last=5)+keepalive-wrap", Some(KeepAliveTerms::UntilAgentEnds)),
        ] {
            let contender = Contender::parse(asked).expect(asked);
            assert_eq!((contender.name(), contender.keep_alive), (asked, known));
        }
        let wrong = Contender::parse("peer:mask(10)+keepalive").expect_err("no policy").to_string();
        assert!(
            wrong.ends_with("the cache is kept alive with policies only, and peer:mask is none"),
            "{wrong}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_expected() {
        for (asked, sentence) in [
            ("sloppy", "there is no policy \"sloppy\"; there are: none, recent"),
            ("recent(5)", "\"recent(5)\": expected recent(SETTING=VALUE)"),
            ("recent(keep_last=few)", "\"few\" is not a number for keep_last"),
            ("recent(keep=5)", "policy \"recent\" has no setting \"keep\"; it has: batch, deduplication"),
            ("recent(keep_last=5", "the bracket is not closed"),
        ] {
            let said = check(asked).expect_err(asked);
            assert!(said.contains(sentence), "{asked}: {said}");
        }
    }

    #[test]
    fn a_rival_takes_its_number_in_brackets() {
        static MASK: Rival = Rival {
            name: "peer:mask",
            about: "",
            knob: ("results kept", &[10.0, 5.0]),
            role: RivalRole::Peer,
            views: |_| crate::replay::Views::default(),
        };
        let of = |inside| {
            of_rival("peer:mask", &MASK, inside).map(|contender| contender.knob().map(|knob| knob.1))
        };
        assert_eq!(of(None), Ok(Some(10.0)));
        assert_eq!(of(Some("7")), Ok(Some(7.0)));
        let wrong = of(Some("many")).expect_err("no number").to_string();
        assert_eq!(wrong, "\"peer:mask\": expected peer:mask(NUMBER), the number being results kept");
        let none = of_rival("oracle:block(3)", &PLAIN, Some("3")).expect_err("no knob").to_string();
        assert_eq!(none, "\"oracle:block(3)\": oracle:block takes no number");
    }

    static PLAIN: Rival = Rival {
        name: "oracle:block",
        about: "",
        knob: ("", &[]),
        role: RivalRole::FreeEdits,
        views: |_| crate::replay::Views::default(),
    };

    #[test]
    fn every_contender_is_found_again_by_its_name() {
        for knobs in [KnobRange::Default, KnobRange::All] {
            let all = contenders(knobs);
            assert!(all.len() >= 9);
            for contender in all {
                let name = contender.name();
                let again = Contender::parse(name).expect(name);
                assert_eq!((again.name(), again.knob()), (contender.name(), contender.knob()));
            }
        }
    }
}
