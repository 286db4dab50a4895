//! What came of a fit. Takes the fitted request; gives its messages, its figures, and its plan as plain values. Made when asked
//! for: a turn pays for nothing that nobody reads.
#![allow(unsafe_code, reason = "PyO3's macros write it; there is none of ours")]

use std::time::Duration;

use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};
use serde::Serialize;
use trimtab_core::{FittedRequest, Role, Tokens, count::Exactness};

use crate::{
    asking::PyAsking,
    errors::{ErrorKind, new_exception, over_budget},
    settings::EffectiveSettings,
    turn::TurnOutcome,
};

/// How many classes of what cannot be hidden are named.
const CLASSES_NAMED: usize = 4;

/// Messages that fit.
#[pyclass(frozen, module = "trimtab._engine", name = "Fitted")]
pub(crate) struct PyFitted {
    messages: Py<PyList>,
    sources: Vec<Option<usize>>,
    fitted: FittedRequest,
    took: Duration,
    in_force: EffectiveSettings,
}

/// What became of a block.
#[derive(Serialize)]
struct FittedRow {
    block: u32,
    /// The number of the message, counted from 0; none for what stands beside the messages.
    message: Option<usize>,
    step: u32,
    role: &'static str,
    kind: &'static str,
    call: Option<String>,
    verdict: &'static str,
    reason: Option<String>,
    tokens: Tokens,
    sent: Tokens,
    handle: Option<String>,
}

/// Makes what Python sees of a turn; raises where it does not fit or there is nothing to fit into.
pub(crate) fn fitted_or_raise(
    py: Python<'_>,
    done: TurnOutcome,
    in_force: &EffectiveSettings,
) -> PyResult<Py<PyFitted>> {
    let TurnOutcome { messages, sources, fitted, took } = done;
    if fitted.budget.is_none() && in_force.settings.policy.name != "none" {
        let words = "no budget: the model is not known; give budget=TOKENS or model=NAME";
        return Err(new_exception(py, ErrorKind::Settings, words));
    }
    let sentence = floor_sentence(&fitted);
    let floor = fitted.plan.floor().map(|floor| floor.tokens.0);
    let fitted = fitted_unchecked(py, TurnOutcome { messages, sources, fitted, took }, in_force)?;
    match (sentence, floor) {
        (Some(sentence), Some(floor)) => Err(over_budget(py, sentence, floor, fitted.into_any())),
        (Some(_) | None, _) => Ok(fitted),
    }
}

/// Makes what Python sees of a turn, whether it fits or not.
pub(crate) fn fitted_unchecked(
    py: Python<'_>,
    done: TurnOutcome,
    in_force: &EffectiveSettings,
) -> PyResult<Py<PyFitted>> {
    let TurnOutcome { messages, sources, fitted, took } = done;
    Py::new(py, PyFitted { messages, sources, fitted, took, in_force: in_force.clone() })
}

/// Says why a request does not fit.
fn floor_sentence(fitted: &FittedRequest) -> Option<String> {
    let (floor, budget) = (fitted.plan.floor()?, fitted.budget?);
    let classes = floor.made_of.iter().take(CLASSES_NAMED);
    let made_of: Vec<String> =
        classes.map(|(class, tokens)| format!("{class} {}", group_thousands(tokens.0))).collect();
    Some(format!(
        "does not fit into {} tokens: {} cannot be hidden ({}){}; raise the budget to at least {}",
        group_thousands(budget.0),
        group_thousands(floor.tokens.0),
        made_of.join(", "),
        if fitted.exactness.guard() > 1.0 { ", and the count is an estimate" } else { "" },
        group_thousands(floor.tokens.scale(fitted.exactness.guard()).0 + 1)
    ))
}

/// Writes a number with commas between thousands.
fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[pymethods]
impl PyFitted {
    /// The messages to send.
    #[getter]
    fn messages(&self, py: Python<'_>) -> Py<PyList> {
        self.messages.clone_ref(py)
    }

    /// Which of the messages that came each message to send was, counted from 0; none for one that stands for others.
    #[getter]
    fn sources(&self) -> Vec<Option<usize>> {
        self.sources.clone()
    }

    /// What the request counts as it is sent.
    #[getter]
    fn tokens(&self) -> u64 {
        self.fitted.plan.after().0
    }

    /// How many tokens the original request had.
    #[getter]
    fn tokens_before(&self) -> u64 {
        self.fitted.plan.before().0
    }

    /// The most that the request may count.
    #[getter]
    fn budget(&self) -> Option<u64> {
        self.fitted.budget.map(|budget| budget.0)
    }

    /// Whether counts are exact.
    #[getter]
    fn exact(&self) -> bool {
        self.fitted.exactness == Exactness::Exact
    }

    /// How long the engine worked, in seconds; the rest of a call is spent at the border to Python.
    #[getter]
    fn seconds(&self) -> f64 {
        self.took.as_secs_f64()
    }

    /// The wire format of the messages.
    #[getter]
    fn format(&self) -> &'static str {
        self.fitted.history.format().name()
    }

    /// Whether the policy asks for a summary of what is old.
    #[getter]
    fn fold_wanted(&self) -> bool {
        self.fitted.plan.fold_wanted()
    }

    /// The summary that the policy asks for, to be had from a model of this name.
    #[pyo3(signature = (model=None))]
    fn asking(&self, py: Python<'_>, model: Option<&str>) -> Option<PyAsking> {
        py.detach(|| Some(PyAsking::new(self.fitted.summary_task()?, model)))
    }

    /// The request as it was fitted.
    #[getter]
    fn request<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.fitted.request)
    }

    /// What became of every block.
    #[getter]
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = py.detach(|| self.fitted_rows());
        to_python(py, &rows)
    }

    /// What was done, as `trimtab fit --report` writes it.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let policy = &self.in_force.settings.policy;
        let set = &self.in_force.set;
        let rows = policy.settings.iter().map(|(name, value)| trimtab_core::report::SettingRow {
            name: name.clone(),
            value: trimtab_core::policy::find_knob(name)
                .map_or_else(|| value.to_string(), |knob| knob.format_value(*value)),
            from: if set.contains(name) { "settings" } else { "default" }.to_owned(),
        });
        let rows: Vec<trimtab_core::report::SettingRow> = rows.collect();
        let report = py.detach(|| {
            let report = trimtab_core::report::fit_report(policy, &rows, &self.fitted, &[]);
            serde_json::to_vec(&report)
        });
        load_json(py, report)
    }
}

impl PyFitted {
    fn fitted_rows(&self) -> Vec<FittedRow> {
        let FittedRequest { history, plan, .. } = &self.fitted;
        let first = history.entries().len() - history.messages().len();
        let rows = plan.decisions().iter().filter_map(|decision| {
            let block = history.block(decision.block)?;
            let entry = history.entry_of(block);
            let (tokens, sent) = plan.tokens_of(decision.block);
            Some(FittedRow {
                block: decision.block.0,
                message: usize::try_from(block.entry.0).ok().and_then(|entry| entry.checked_sub(first)),
                step: entry.map_or(0, |entry| entry.step),
                role: entry.map_or(Role::Other, |entry| entry.role).name(),
                kind: block.kind.name(),
                call: history.call_id(block).map(std::borrow::Cow::into_owned),
                verdict: decision.verdict.word(),
                reason: decision.reason().as_ref().map(ToString::to_string),
                tokens,
                sent,
                handle: decision.handle.clone(),
            })
        });
        rows.collect()
    }
}

/// Makes plain Python values of what can be written as JSON.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    load_json(py, serde_json::to_vec(value))
}

/// Reads JSON that the library wrote.
pub(crate) fn load_json(py: Python<'_>, json: serde_json::Result<Vec<u8>>) -> PyResult<Bound<'_, PyAny>> {
    let json = json.map_err(|fault| new_exception(py, ErrorKind::Request, fault))?;
    py.import("json")?.call_method1("loads", (PyBytes::new(py, &json),))
}
