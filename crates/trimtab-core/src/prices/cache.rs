//! How providers' prompt caches behave. Takes a provider and a model's name; gives the row of a dated table (`cache.tsv`).
//! Never simulates anything: these are the rules that a simulation follows.

use serde::{Deserialize, Serialize};

use super::name::bare_model_name;
use crate::units::Tokens;

/// What is known about the cache of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRules {
    /// Where a read can end.
    #[serde(flatten)]
    pub landing: CacheLanding,
    /// The shortest prefix that is cached.
    pub minimum: Tokens,
    /// Reads are whole multiples of this.
    pub step: Tokens,
    /// Milliseconds from the start of the last request that used an entry to its end.
    pub lifetime_ms: i64,
    /// Whether reasoning is bound to the exact prefix before it: editing that prefix makes the reasoning invalid.
    pub prefix_bound_reasoning: bool,
    /// Whether the provider itself leaves out the reasoning of earlier turns once the user speaks.
    pub drops_old_reasoning: bool,
    /// How many conversations a local server keeps at a time; 0: as many as fit. None at providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
}

/// Where the part of a request that is read from the cache can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "landing", rename_all = "snake_case")]
pub enum CacheLanding {
    /// Where an earlier request set a marker, looked for at so many positions at and before each marker of this request.
    Breakpoints {
        /// Positions looked at per marker, the marker's own included.
        look_back: usize,
    },
    /// Exactly where an earlier request ended.
    RequestEnds {
        /// How many of the latest ends are considered.
        latest: usize,
    },
    /// Wherever an earlier request says the same up to there.
    AnyPrefix,
    /// Where an earlier request or the reply to it ended.
    UnitEnds,
}

impl CacheRules {
    /// The lifetime of what is written at the price for an hour.
    pub const HOUR_MS: i64 = 3_600_000;

    /// The rules that are taken where nothing is known of a provider; a test holds them and the table's last row together.
    pub const COMMON: CacheRules = CacheRules {
        landing: CacheLanding::AnyPrefix,
        minimum: Tokens(1024),
        step: Tokens(1),
        lifetime_ms: 300_000,
        prefix_bound_reasoning: false,
        drops_old_reasoning: false,
        slots: None,
    };

    /// Returns the rules for a model of a provider; those of the common kind where nothing is known.
    pub fn for_model(provider: &str, model: &str) -> CacheRules {
        let model = bare_model_name(model);
        let fitting =
            table_rows().filter_map(CacheRuleRow::parse).filter(|row| row.fits_model(provider, &model));
        let best = fitting.max_by_key(|row| (row.provider != ANY, row.model.len()));
        best.map_or(CacheRules::COMMON, |row| row.rules)
    }
}

const TABLE: &str = include_str!("cache.tsv");

/// Fits every provider or model.
const ANY: &str = "*";

struct CacheRuleRow {
    provider: &'static str,
    model: &'static str,
    rules: CacheRules,
}

impl CacheRuleRow {
    fn parse(row: &'static str) -> Option<CacheRuleRow> {
        let mut columns = row.split('\t');
        let mut column = || columns.next();
        let (provider, model, landing, reach) = (column()?, column()?, column()?, column()?);
        let landing = match landing {
            "breakpoints" => CacheLanding::Breakpoints { look_back: reach.parse().ok()? },
            "ends" => CacheLanding::RequestEnds { latest: reach.parse().ok()? },
            "prefix" => CacheLanding::AnyPrefix,
            "units" => CacheLanding::UnitEnds,
            _ => return None,
        };
        let rules = CacheRules {
            landing,
            minimum: Tokens(column()?.parse().ok()?),
            step: Tokens(column()?.parse().ok()?),
            lifetime_ms: column()?.parse::<i64>().ok()?.checked_mul(1000)?,
            prefix_bound_reasoning: parse_yes_no(column()?)?,
            drops_old_reasoning: parse_yes_no(column()?)?,
            slots: column().map(str::parse).transpose().ok()?,
        };
        Some(CacheRuleRow { provider, model, rules })
    }

    /// A name fits where it is the beginning of the model's, up to a separator.
    fn fits_model(&self, provider: &str, model: &str) -> bool {
        let named =
            || model.strip_prefix(self.model).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        (self.provider == ANY || self.provider == provider) && (self.model == ANY || named())
    }
}

fn parse_yes_no(word: &str) -> Option<bool> {
    match word {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn table_rows() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#')).skip(1)
}

#[cfg(test)]
mod tests {
    use super::{CacheLanding, CacheRuleRow, CacheRules, table_rows};
    use crate::{
        prices::{find_model, models},
        units::Tokens,
    };

    #[track_caller]
    fn check(model: &str, landing: CacheLanding, minimum: u64, seconds: i64) {
        let rules = find_model(model).unwrap().cache;
        let expected = (landing, Tokens(minimum), seconds * 1000);
        assert_eq!((rules.landing, rules.minimum, rules.lifetime_ms), expected, "{model}");
    }

    #[test]
    fn every_row_is_read_and_the_last_is_the_common_one() {
        let read: Vec<_> = table_rows().map_while(CacheRuleRow::parse).collect();
        assert_eq!(read.len(), table_rows().count());
        assert_eq!(CacheRules::for_model("nobody", "nothing"), CacheRules::COMMON);
        assert_eq!(read.last().map(|row| row.rules), Some(CacheRules::COMMON));
    }

    #[test]
    fn generations_of_one_provider_differ() {
        let claude = CacheLanding::Breakpoints { look_back: 20 };
        check("claude-opus-4-6", claude, 4096, 300);
        check("claude-opus-4-8", claude, 1024, 300);
        check("claude-opus-5-5", claude, 512, 300);
        check("claude-sonnet-4-5", claude, 1024, 300);
        check("gpt-5.5", CacheLanding::AnyPrefix, 1024, 600);
        check("gpt-5", CacheLanding::AnyPrefix, 1024, 600);
        check("gpt-5.6-sol", CacheLanding::RequestEnds { latest: 80 }, 1024, 1800);
        check("gpt-6.1-sol", CacheLanding::RequestEnds { latest: 80 }, 1024, 1800);
        check("gemini-2.5-pro", CacheLanding::AnyPrefix, 2048, 300);
        check("deepseek-v4-pro", CacheLanding::UnitEnds, 64, 10_800);
        check("glm-5", CacheLanding::AnyPrefix, 1024, 300);
    }

    #[test]
    fn reasoning_is_bound_to_the_prefix_from_claude_5_1_on() {
        let bound = models().into_iter().filter(|model| model.cache.prefix_bound_reasoning);
        let names: Vec<_> = bound.map(|model| model.name).collect();
        let since: [&str; 5] = [
            "claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1",
            "claude-mythos-5-1",
        ];
        assert_eq!(names, since);
    }

    #[test]
    fn reasoning_of_earlier_turns_is_kept_from_claude_opus_4_5_on_and_dropped_by_openai() {
        let drops = |model: &str| find_model(model).unwrap().cache.drops_old_reasoning;
        assert!(
            [
                "claude-opus-4-1", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-3-7-sonnet", "gpt-5",
                "gpt-5.6-sol"
            ]
            .into_iter()
            .all(drops)
        );
        let kept = [
            "claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-5",
            "deepseek-v4-pro",
        ];
        assert!(!kept.into_iter().any(drops));
    }
}
