//! Models that run on the user's own machine: what they cost is time. [`local_model`] takes a server, a speed or both, as
//! `llama.cpp@800`; gives a [`Model`] whose prices are seconds per million tokens ([`CostUnit::Seconds`]). Its cache rules are
//! rows of `cache.tsv`. Reading a kept prefix costs nothing, everything else the time of reading it again, so the same sums
//! that save dollars elsewhere save waiting here.

use std::fmt;

use serde::Serialize;

use super::{CacheRules, Model, Prices};
use crate::units::Tokens;

/// The provider of all of them.
pub(crate) const LOCAL: &str = "local";

/// The servers: as people write them, and as the table of cache rules names them. The first is meant where none is named.
const SERVERS: [(&str, &str); 4] =
    [("llama.cpp", "llama-cpp"), ("ollama", "ollama"), ("vllm", "vllm"), ("lm-studio", "lm-studio")];

/// Tokens read per second where nobody says: a model of eight billion weights on a laptop's graphics. `scripts/model-speed`
/// measures a server.
const USUAL_SPEED: f64 = 500.0;

/// Writing a token takes about as long as reading ten.
const OUTPUT_FACTOR: f64 = 10.0;

/// The window where nobody says: what most open models are trained for.
const USUAL_WINDOW: Tokens = Tokens(131_072);

/// What the costs of a model are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostUnit {
    /// US dollars.
    #[default]
    Dollars,
    /// Seconds that the user waits.
    Seconds,
}

/// A local model that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LocalModelError {
    /// What was asked for.
    asked: String,
}

impl fmt::Display for LocalModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = SERVERS.map(|(name, _)| name).join(", ");
        write!(
            f,
            "{:?}: expected local:SERVER, local:SPEED or local:SERVER@SPEED, such as local:llama.cpp@800; servers are {known}, \
             the speed is in tokens per second",
            self.asked
        )
    }
}

/// Returns the model that is meant by `local`, `local:llama.cpp`, `local:800` or `local:vllm@4000`; nothing where the name is another's.
///
/// ```
/// use trimtab_core::prices::{CostUnit, local_model};
/// let model = local_model("local:llama.cpp@800").expect("a local one")?;
/// assert_eq!((model.cost_unit(), model.prices.cache_read), (CostUnit::Seconds, 0.0));
/// # Ok::<(), trimtab_core::prices::LocalModelError>(())
/// ```
///
/// # Errors
/// Names the servers there are.
pub fn local_model(name: &str) -> Option<Result<Model, LocalModelError>> {
    let rest = match name.trim().strip_prefix(LOCAL)? {
        "" => "",
        rest => rest.strip_prefix(':')?,
    };
    let wrong = || LocalModelError { asked: name.to_owned() };
    let (server, speed) = match rest.split_once('@') {
        Some((server, speed)) => (server, Some(speed)),
        None if rest.starts_with(|first: char| first.is_ascii_digit()) => ("", Some(rest)),
        None => (rest, None),
    };
    let known = SERVERS.iter().find(|(name, _)| server.is_empty() || *name == server);
    let speed = speed.map_or(Some(USUAL_SPEED), |speed| speed.parse().ok().filter(|speed| *speed > 0.0));
    let (Some((server, _)), Some(speed)) = (known, speed.filter(|speed| speed.is_finite())) else {
        return Some(Err(wrong()));
    };
    server_model(server).map(|model| Ok(Model { name: name.trim().to_owned(), ..model.with_speed(speed) }))
}

/// Returns what is known of any model that a local server runs, by the server's name: `ollama`.
pub fn server_model(server: &str) -> Option<Model> {
    let (name, row) = SERVERS.iter().find(|(name, _)| *name == server)?;
    let model = Model {
        name: format!("{LOCAL}:{name}"),
        provider: LOCAL.to_owned(),
        window: USUAL_WINDOW,
        max_input: USUAL_WINDOW,
        max_output: None,
        prices: Prices { input: 0.0, cache_read: 0.0, cache_write: 0.0, cache_write_1h: None, output: 0.0 },
        cliff: None,
        cache: CacheRules::for_model(LOCAL, row),
    };
    Some(model.with_speed(USUAL_SPEED))
}

impl Model {
    /// Returns what its prices are counted in.
    pub fn cost_unit(&self) -> CostUnit {
        if self.provider == LOCAL { CostUnit::Seconds } else { CostUnit::Dollars }
    }

    /// Returns the model at so many tokens read per second.
    fn with_speed(self, speed: f64) -> Model {
        let seconds = 1e6 / speed;
        let (input, output) = (seconds, seconds * OUTPUT_FACTOR);
        Model {
            prices: Prices { input, cache_read: 0.0, cache_write: input, cache_write_1h: None, output },
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prices::CacheLanding, usage::Usage};

    #[track_caller]
    fn check(name: &str, slots: usize, seconds: f64) {
        let model = local_model(name).expect("a local model").expect(name);
        let usage = Usage { input: 1000, cache_read: 9000, cache_write: 1000, ..Usage::default() };
        assert_eq!(model.cache.slots, Some(slots), "{name}");
        assert!((model.cost(usage) - seconds).abs() < 1e-9, "{name}: {}", model.cost(usage));
        assert_eq!((model.name.as_str(), model.cost_unit()), (name, CostUnit::Seconds));
        assert_eq!(model.cache.landing, CacheLanding::AnyPrefix);
    }

    #[test]
    fn what_is_read_again_costs_time_and_a_kept_prefix_costs_nothing() {
        check("local", 0, 4.0);
        check("local:800", 0, 2.5);
        check("local:ollama", 1, 4.0);
        check("local:vllm@4000", 0, 0.5);
        check("local:lm-studio@1000", 1, 2.0);
    }

    #[test]
    fn a_server_that_nobody_knows_is_refused_and_other_models_are_not_local() {
        for wrong in ["local:tgi", "local:@0", "local:llama.cpp@fast", "local:vllm@-1", "local:0"] {
            let said = local_model(wrong).expect("one of ours").expect_err(wrong).to_string();
            assert!(said.contains("llama.cpp, ollama, vllm, lm-studio"), "{said}");
        }
        assert_eq!(local_model("localhost-model"), None);
        assert_eq!(local_model("gpt-5"), None);
    }
}
