//! The library as Python sees it: the module `trimtab._engine`. Takes messages, names and numbers; gives messages and plain
//! values. Never decides anything: what is sent instead of what is the library's to say.
#![allow(unsafe_code, reason = "PyO3's macros write it; there is none of ours")]

mod asking;
mod errors;
mod fitted;
mod leaves;
mod messages_back;
mod read;
mod request;
mod session;
mod settings;
mod turn;
mod write;

use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use trimtab_core::{CacheHint, Millis};

use crate::{
    fitted::PyFitted,
    settings::{RequestedSettings, parse_changes},
    turn::{ConversationState, TurnContinuation, TurnInput, take_turn},
};

// Requests of several megabytes come and go: an allocator that keeps its pages is worth more than any tuning.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Fits messages that stand for themselves: nothing is remembered.
#[pyfunction]
#[pyo3(signature = (messages, *, model=None, policy=None, budget=None, format=None, settings=None, spent=0.0, system=None, tools=None, max_output=None, fold=None, pin=None, cold=false, now=0))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
fn fit(
    messages: &Bound<'_, PyList>,
    model: Option<String>,
    policy: Option<String>,
    budget: Option<u64>,
    format: Option<String>,
    settings: Option<&Bound<'_, PyDict>>,
    spent: f64,
    system: Option<&Bound<'_, PyAny>>,
    tools: Option<&Bound<'_, PyAny>>,
    max_output: Option<u64>,
    fold: Option<&str>,
    pin: Option<Vec<String>>,
    cold: bool,
    now: i64,
) -> PyResult<Py<PyFitted>> {
    let py = messages.py();
    let set = parse_changes(settings)?;
    let mut in_force =
        settings::in_force(py, RequestedSettings { policy, model, budget, format, set, spent, fold })?;
    if cold {
        in_force.settings.cache = CacheHint::Cold;
    }
    let turn =
        TurnInput { messages, system, tools, max_output, now: Millis(now), going: TurnContinuation::Once };
    let pins = pin.unwrap_or_default();
    let pins = pins.iter().map(|word| session::handle_of(py, word)).collect::<PyResult<_>>()?;
    let done = take_turn(
        &turn,
        &mut ConversationState::with_pins(in_force.settings.clone(), pins),
        &in_force,
        None,
    )?;
    fitted::fitted_or_raise(py, done, &in_force)
}

/// The module `trimtab._engine`.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use crate::{
        asking::PyAsking,
        fit,
        fitted::PyFitted,
        read::{PyConversation, changes_files, count_text, policies, read_usage, replay},
        session::{PySession, default_store},
    };
}
