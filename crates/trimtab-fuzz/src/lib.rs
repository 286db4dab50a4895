//! What must hold for any bytes. Each function takes an input of the fuzzer and panics where trimtab breaks a promise;
//! the programs in `bin/` call one each. `./scripts/test long fuzz` builds and runs them.

#[path = "../../trimtab-core/tests/checker/mod.rs"]
#[allow(dead_code, reason = "the laws use all of it, this only a part")]
mod checker;
mod json;
mod mutate;
mod notes;
mod recordings;
mod wires;

use std::sync::LazyLock;

use trimtab_core::{Format, Model, Policy, Settings, Tokens, find_model};

pub use json::check_json;
pub use mutate::{mutate_json, mutate_lines};
pub use notes::check_notes;
pub use recordings::check_recording;
pub use wires::check_request;

/// The model that everything is counted for: its prices are looked up once.
static MODEL: LazyLock<Model> = LazyLock::new(|| find_model("claude-sonnet-4-5").expect("a known model"));

/// Returns settings with a policy and a budget.
fn settings(policy: &Policy, budget: u64, format: Format) -> Settings {
    let settings = Settings::new(policy.clone()).with_budget(Tokens(budget)).with_format(format);
    settings.with_model("claude-sonnet-4-5").with_prices(MODEL.clone())
}

/// Returns a number that is the same for the same input: chooses policy and budget without taking bytes from it.
fn number_of(data: &[u8]) -> usize {
    let hash = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 33) as usize
}
