//! Prices of the user's own. Takes a TOML text with one `[[model]]` per model; gives the table in which these rows win.
//! Never guesses a price: a model that the table does not have must say what its input costs.
//!
//! ```toml
//! [[model]]
//! name = "claude-opus-5-5"     # in the table: what is not said stays
//! cache_read = 0.4
//!
//! [[model]]
//! name = "house-model"         # not in the table: the rules of its provider's cache, or the common ones
//! provider = "anthropic"
//! window = 128000
//! input = 3
//! cache_read = 0.3
//! cache_write = 3.75
//! output = 15
//! ```

use serde::Deserialize;

use super::{CacheRules, Model, PriceCliff, Prices, bare_model_name, models};
use crate::units::Tokens;

/// The window of a model of which the file says none: what most models of agents had before windows of a million.
const USUAL_WINDOW: Tokens = Tokens(200_000);

/// A file of prices that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PricesError {
    /// It is not the TOML that is expected.
    #[error("the file of prices could not be read: {0}")]
    Toml(String),
    /// A model that the table does not have, without the price of its input.
    #[error("model {0:?} is not in the table, so its row must say `input`, in US dollars per million tokens")]
    NoInput(String),
    /// A number that no price or length can be.
    #[error("model {model:?}: {what}")]
    Senseless {
        /// The model.
        model: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesFile {
    #[serde(default)]
    model: Vec<PricesRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesRow {
    name: String,
    provider: Option<String>,
    window: Option<Tokens>,
    max_input: Option<Tokens>,
    max_output: Option<Tokens>,
    input: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    cache_write_1h: Option<f64>,
    output: Option<f64>,
    /// The longest input at the plain price, and the factors beyond it.
    cliff_above: Option<Tokens>,
    cliff_input: Option<f64>,
    cliff_output: Option<f64>,
    cache_minimum: Option<Tokens>,
    cache_lifetime_seconds: Option<u32>,
}

/// Returns every model: those of the file first, then those of the shipped table that it does not name.
///
/// # Errors
/// Says which row cannot be used and why.
pub fn models_with(own: &str) -> Result<Vec<Model>, PricesError> {
    let file: PricesFile = toml::from_str(own).map_err(|fault| PricesError::Toml(fault.to_string()))?;
    let shipped = models();
    let mut table = Vec::with_capacity(shipped.len() + file.model.len());
    for row in file.model {
        let bare = bare_model_name(&row.name);
        let known = shipped.iter().find(|model| bare_model_name(&model.name) == bare);
        table.push(row.apply_over(known)?);
    }
    let named: Vec<String> = table.iter().map(|model| bare_model_name(&model.name)).collect();
    table.extend(shipped.into_iter().filter(|model| !named.contains(&bare_model_name(&model.name))));
    Ok(table)
}

impl PricesRow {
    /// Lays the row over what the table says.
    fn apply_over(self, known: Option<&Model>) -> Result<Model, PricesError> {
        let mut model = match (known, self.input) {
            (Some(known), _) => known.clone(),
            (None, Some(input)) => self.unknown_model(input),
            (None, None) => return Err(PricesError::NoInput(self.name)),
        };
        if let Some(provider) = self.provider {
            model.cache = CacheRules::for_model(&provider, &self.name);
            model.provider = provider;
        }
        if let Some(window) = self.window {
            (model.window, model.max_input) = (window, model.max_input.min(window));
        }
        model.max_input = self.max_input.unwrap_or(model.max_input);
        model.max_output = self.max_output.or(model.max_output);
        let prices = &mut model.prices;
        prices.input = self.input.unwrap_or(prices.input);
        prices.cache_read = self.cache_read.unwrap_or(prices.cache_read);
        prices.cache_write = self.cache_write.unwrap_or(prices.cache_write);
        prices.cache_write_1h = self.cache_write_1h.or(prices.cache_write_1h);
        prices.output = self.output.unwrap_or(prices.output);
        if let Some(above) = self.cliff_above {
            let factor = |given: Option<f64>| given.unwrap_or(1.0);
            let (input_factor, output_factor) = (factor(self.cliff_input), factor(self.cliff_output));
            model.cliff = Some(PriceCliff { above, input_factor, output_factor });
        }
        model.cache.minimum = self.cache_minimum.unwrap_or(model.cache.minimum);
        if let Some(seconds) = self.cache_lifetime_seconds {
            model.cache.lifetime_ms = i64::from(seconds) * 1000;
        }
        check_prices(model)
    }

    /// What is true of a model of which only the price of input is known: nothing is cheaper, nothing is more expensive.
    fn unknown_model(&self, input: f64) -> Model {
        let window = self.window.unwrap_or(USUAL_WINDOW);
        let provider = self.provider.clone().unwrap_or_else(|| "own".to_owned());
        Model {
            cache: CacheRules::for_model(&provider, &self.name),
            name: self.name.clone(),
            provider,
            window,
            max_input: window,
            max_output: None,
            prices: Prices {
                input,
                cache_read: input,
                cache_write: input,
                cache_write_1h: None,
                output: input,
            },
            cliff: None,
        }
    }
}

fn check_prices(model: Model) -> Result<Model, PricesError> {
    let Prices { input, cache_read, cache_write, cache_write_1h, output } = model.prices;
    let prices = [input, cache_read, cache_write, cache_write_1h.unwrap_or_default(), output];
    let fault = if prices.iter().any(|price| !price.is_finite() || *price < 0.0) {
        Some("a price is a number of dollars that is not negative")
    } else if model.window == Tokens::ZERO || model.max_input > model.window {
        Some("`window` must be at least 1 and at least `max_input`")
    } else {
        None
    };
    match fault {
        Some(what) => Err(PricesError::Senseless { model: model.name, what }),
        None => Ok(model),
    }
}

#[cfg(test)]
mod tests {
    use super::models_with;
    use crate::{
        prices::{CacheLanding, Model, find_model_in, models},
        units::Tokens,
    };

    #[track_caller]
    fn check(own: &str, model: &str, is: impl Fn(&Model) -> bool) {
        let table = models_with(own).unwrap();
        assert!(is(&find_model_in(model, &table).unwrap()), "{model} by {own}");
    }

    #[track_caller]
    fn refused(own: &str, because: &str) {
        let error = models_with(own).unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn a_row_wins_over_the_table_in_what_it_says() {
        let own = "[[model]]\nname = 'anthropic/claude-opus-5.5'\ncache_read = 0.4";
        check(own, "claude-opus-5-5", |model| {
            model.prices.cache_read == 0.4 && model.prices.input == 4.0 && model.window == Tokens(1_000_000)
        });
        assert_eq!(models_with(own).unwrap().len(), models().len());
    }

    #[test]
    fn an_unknown_model_needs_little_more_than_its_prices() {
        let own = "[[model]]\nname = 'house'\ninput = 3\ncache_read = 0.3\ncache_write = 3.75";
        check(own, "house", |model| {
            model.prices.cache_write == 3.75 && model.window == Tokens(200_000) && model.cliff.is_none()
        });
        let own = "[[model]]\nname = 'house'\nprovider = 'anthropic'\ninput = 3\ncache_minimum = 7";
        check(own, "house", |model| {
            model.cache.landing == CacheLanding::Breakpoints { look_back: 20 }
                && model.cache.minimum == Tokens(7)
        });
    }

    #[test]
    fn a_file_that_means_nothing_is_refused_with_the_reason() {
        refused("[[model]]\nname = 'house'", "must say `input`");
        refused("[[model]]\nname = 'house'\ninput = -1", "not negative");
        refused("[[model]]\nname = 'house'\ninput = 1\ninputs = 2", "unknown field");
        refused("[[model]]\nname = 'gpt-5'\nmax_input = 900000", "`window`");
    }

    #[test]
    fn an_empty_file_is_the_shipped_table() {
        assert_eq!(models_with("").unwrap(), models());
    }
}
