//! What models cost and how much they take. Takes a name as people write it, gives the row of a dated
//! table (`models.tsv`, written by `scripts/models`) with the rules of its cache (`cache.tsv`). Never fetches anything: a price that moved is a
//! new table, or a row of the user's own.

mod cache;
mod local;
mod name;
mod own_prices;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use self::name::bare_model_name;
pub use self::{
    cache::{CacheLanding, CacheRules},
    local::{CostUnit, LocalModelError, local_model, server_model},
    own_prices::{PricesError, models_with},
};
use crate::{units::Tokens, usage::Usage};

/// One model that agents are run with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The name its provider uses.
    pub name: String,
    /// Who makes it.
    pub provider: String,
    /// What input and output together may fill.
    pub window: Tokens,
    /// What of the window the input may fill.
    pub max_input: Tokens,
    /// The longest reply, where it is known.
    pub max_output: Option<Tokens>,
    /// What tokens cost.
    pub prices: Prices,
    /// Where a longer request costs more per token, if anywhere.
    pub cliff: Option<PriceCliff>,
    /// How its prompt cache behaves.
    pub cache: CacheRules,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Input that no cache knows.
    pub input: f64,
    /// Input read from the cache; that of `input` where nothing is cached.
    pub cache_read: f64,
    /// Input written to the cache for its shortest lifetime; that of `input` where writing is free.
    pub cache_write: f64,
    /// Input written to the cache for an hour, where that is sold.
    pub cache_write_1h: Option<f64>,
    /// Output.
    pub output: f64,
}

/// A length of request from which on the whole of it is more expensive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriceCliff {
    /// The longest input at the plain price.
    pub above: Tokens,
    /// What input, cache reads and cache writes are multiplied by beyond it.
    pub input_factor: f64,
    /// What output is multiplied by beyond it.
    pub output_factor: f64,
}

/// The names nearest to one that is not in the table, the nearest first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
    /// Up to three names of the table.
    pub nearest: Vec<String>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model {:?} is not in the table; did you mean {}?", self.name, self.nearest.join(", "))
    }
}

/// Returns every model of the table, by provider.
pub fn models() -> Vec<Model> {
    table_rows().filter_map(parse_row).collect()
}

/// Returns the day that the table's prices were read on, as year-month-day.
pub fn prices_date() -> &'static str {
    TABLE.split_once(" on ").and_then(|(_, rest)| rest.get(..10)).unwrap_or("")
}

/// Finds a model, past vendor prefixes, dates, variants and case.
///
/// # Errors
/// Names the nearest models if none is meant.
pub fn find_model(name: &str) -> Result<Model, UnknownModel> {
    find_model_in(name, &models())
}

/// Finds a model in a table, such as one with rows of the user's own.
///
/// # Errors
/// Names the nearest models if none is meant.
pub fn find_model_in(name: &str, table: &[Model]) -> Result<Model, UnknownModel> {
    let asked = bare_model_name(name);
    let found = name_spellings(&asked)
        .find_map(|spelling| table.iter().find(|model| bare_model_name(&model.name) == spelling).cloned());
    found.ok_or_else(|| UnknownModel { name: name.to_owned(), nearest: nearest_names(&asked, table) })
}

impl Model {
    /// Returns what a request may fill when it asks for up to `output` tokens of reply: the window less
    /// the reply, of which at least 8,192 are set aside, and never more than the input may fill.
    pub fn request_budget(&self, output: Tokens) -> Tokens {
        (self.window - output.max(SET_ASIDE_FOR_OUTPUT)).min(self.max_input)
    }

    /// Returns what a request costs as a whole, in US dollars: the dollars of a usage are computed here and nowhere else.
    ///
    /// ```
    /// use trimtab_core::{Usage, find_model};
    /// let model = find_model("claude-opus-5")?;
    /// let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
    /// assert!(model.cost(usage) >= model.prices.input + model.prices.output);
    /// # Ok::<(), trimtab_core::prices::UnknownModel>(())
    /// ```
    pub fn cost(&self, usage: Usage) -> f64 {
        let factor = self.cliff_of(usage).map_or(1.0, |cliff| cliff.output_factor);
        self.input_cost(usage) + Tokens(usage.output).in_millions() * self.prices.output * factor
    }

    /// Returns what the input of a request costs, in US dollars.
    pub fn input_cost(&self, usage: Usage) -> f64 {
        let Prices { input, cache_read, cache_write, cache_write_1h, .. } = self.prices;
        let factor = self.cliff_of(usage).map_or(1.0, |cliff| cliff.input_factor);
        let hour = usage.cache_write_1h.min(usage.cache_write);
        let parts = [
            (usage.input, input),
            (usage.cache_read, cache_read),
            (usage.cache_write - hour, cache_write),
            (hour, cache_write_1h.unwrap_or(cache_write)),
        ];
        parts.into_iter().map(|(tokens, price)| Tokens(tokens).in_millions() * price).sum::<f64>() * factor
    }

    /// Returns the cliff where a request lies beyond it.
    fn cliff_of(&self, usage: Usage) -> Option<PriceCliff> {
        self.cliff.filter(|cliff| Tokens(usage.total_input()) > cliff.above)
    }
}

const TABLE: &str = include_str!("models.tsv");

/// Set aside for the reply when a request asks for less or says nothing.
const SET_ASIDE_FOR_OUTPUT: Tokens = Tokens(8192);

/// Endings that say how a model is run, not which it is.
const VARIANTS: [&str; 8] =
    ["-preview", "-exp", "-thinking", "-minimal", "-low", "-medium", "-high", "-xhigh"];

/// Returns the lines below the comments and the heading.
fn table_rows() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#')).skip(1)
}

/// Reads a row; a test holds that every shipped row is read.
fn parse_row(row: &str) -> Option<Model> {
    let mut columns = row.split('\t');
    let mut column = || columns.next();
    let (name, provider) = (column()?, column()?);
    Some(Model {
        name: name.to_owned(),
        provider: provider.to_owned(),
        window: Tokens(column()?.parse().ok()?),
        max_input: Tokens(column()?.parse().ok()?),
        max_output: parse_optional(column()?)?.map(Tokens),
        prices: Prices {
            input: column()?.parse().ok()?,
            cache_read: column()?.parse().ok()?,
            cache_write: column()?.parse().ok()?,
            cache_write_1h: parse_optional(column()?)?,
            output: column()?.parse().ok()?,
        },
        cliff: match (parse_optional(column()?)?, parse_optional(column()?)?, parse_optional(column()?)?) {
            (Some(above), Some(input_factor), Some(output_factor)) => {
                Some(PriceCliff { above: Tokens(above), input_factor, output_factor })
            }
            (None, None, None) => None,
            (Some(_) | None, Some(_) | None, Some(_) | None) => return None,
        },
        cache: CacheRules::for_model(provider, name),
    })
}

/// Reads a column that may be empty; the outer `None` is a fault.
fn parse_optional<T: std::str::FromStr>(column: &str) -> Option<Option<T>> {
    if column.is_empty() { Some(None) } else { column.parse().ok().map(Some) }
}

/// Returns the bare name, then what is left of it without its variants, then with `-preview`.
fn name_spellings(bare: &str) -> impl Iterator<Item = String> {
    let plain = VARIANTS.iter().find_map(|variant| bare.strip_suffix(variant)).unwrap_or(bare);
    [bare.to_owned(), plain.to_owned(), format!("{plain}-preview")].into_iter()
}

/// Returns the three names that share the most pairs of letters with `asked`.
fn nearest_names(asked: &str, table: &[Model]) -> Vec<String> {
    let mut ranked: Vec<_> =
        table.iter().map(|model| (likeness(asked, &bare_model_name(&model.name)), &model.name)).collect();
    // The order of the table decides between equals.
    ranked.sort_by_key(|&(likeness, _)| std::cmp::Reverse(likeness));
    ranked.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

/// Returns twice the shared pairs of letters in thousandths of all pairs (Dice's coefficient).
fn likeness(a: &str, b: &str) -> usize {
    let pairs = |name: &str| -> Vec<(u8, u8)> { name.bytes().zip(name.bytes().skip(1)).collect() };
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let shared = a
        .iter()
        .filter(|pair| {
            let at = b.iter().position(|other| other == *pair);
            at.map(|at| b.swap_remove(at)).is_some()
        })
        .count();
    (2000 * shared).checked_div(all).unwrap_or(0)
}

#[cfg(test)]
mod tests;
