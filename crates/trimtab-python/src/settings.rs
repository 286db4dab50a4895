//! What a fit is made with. Takes names and numbers as Python gives them; gives the policy with its settings, the model and the
//! budget, by the rules of the command line. Never reads the environment or a file of settings: what is passed is all there is.

use std::{fs, path::Path};

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyString},
};
use trimtab_core::{
    Format, Policy, RecallHint, Settings, Tokens, find_model,
    policy::{Circumstances, Folding, find_knob, policies},
};

use crate::errors::{ErrorKind, new_exception};

/// The policy where none is named.
const DEFAULT_POLICY: &str = "steady";

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct RequestedSettings<'a> {
    pub(crate) policy: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) budget: Option<u64>,
    pub(crate) format: Option<String>,
    /// Settings of the policy that are changed.
    pub(crate) set: Vec<(String, f64)>,
    /// What the session has cost so far, in dollars.
    pub(crate) spent: f64,
    /// What becomes of steps that fold: given, ledger or never.
    pub(crate) fold: Option<&'a str>,
}

/// What is in force.
#[derive(Debug, Clone)]
pub(crate) struct EffectiveSettings {
    pub(crate) settings: Settings,
    /// The settings that were asked for by name.
    pub(crate) set: Vec<String>,
}

/// Resolves what is in force.
pub(crate) fn in_force(py: Python<'_>, asked: RequestedSettings<'_>) -> PyResult<EffectiveSettings> {
    let known = asked.model.as_deref().and_then(|model| find_model(model).ok());
    let wrong = |fault: String| new_exception(py, ErrorKind::Settings, fault);
    let name = asked.policy.as_deref().unwrap_or(DEFAULT_POLICY);
    let toml = policy_text(name).map_err(wrong)?;
    let circumstances =
        Circumstances { window: known.as_ref().map(|model| model.window), spent: asked.spent };
    let policy = Policy::from_toml_adapted(name, &toml, &asked.set, &circumstances)
        .map_err(|fault| wrong(fault.to_string()))?;
    let folding = match asked.fold {
        None | Some("given") => Folding::WhenGiven,
        Some("ledger") => Folding::Ledger,
        Some("never") => Folding::Off,
        Some(other) => {
            return Err(wrong(format!(
                "fold should be \"given\", \"ledger\" or \"never\", and is {other:?}"
            )));
        }
    };
    let format = asked.format.as_deref().map(|name| format_named(py, name)).transpose()?;
    // Where the model's window leaves less than the policy allows, the library takes that.
    let most = policy
        .max_context()
        .filter(|most| known.as_ref().is_none_or(|model| model.request_budget(Tokens::ZERO) > *most));
    let budget = asked.budget.map(Tokens).or(most);
    let mut settings = Settings::new(policy).with_budget(budget).with_prices(known).with_folding(folding);
    (settings.model, settings.format) = (asked.model, format);
    // Where nothing is kept, no note promises a recall.
    settings.recall = RecallHint::Nothing;
    let set = asked.set.into_iter().map(|(name, _)| name).collect();
    Ok(EffectiveSettings { settings, set })
}

/// Reads settings as Python gives them: numbers, truths, or words with a unit.
pub(crate) fn parse_changes(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, f64)>> {
    let Some(settings) = settings else { return Ok(Vec::new()) };
    let py = settings.py();
    let mut changes = Vec::new();
    for (name, value) in settings.iter() {
        let name: String = name.extract()?;
        let number = if let Ok(truth) = value.cast::<PyBool>() {
            f64::from(u8::from(truth.is_true()))
        } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
            value.extract()?
        } else if let Ok(words) = value.cast::<PyString>() {
            let words = words.to_str()?;
            let read = find_knob(&name).map_or_else(
                || words.parse().map_err(|_| format!("{words:?} is neither a number nor true or false")),
                |knob| knob.read(words),
            );
            read.map_err(|fault| new_exception(py, ErrorKind::Settings, format_args!("{name}: {fault}")))?
        } else {
            let kind = value.get_type();
            let kind = kind.name()?;
            return Err(PyTypeError::new_err(format!(
                "setting {name} should be a number, a truth or words with a unit, and is of type {kind}"
            )));
        };
        changes.push((name, number));
    }
    Ok(changes)
}

/// Finds a format by its name.
pub(crate) fn format_named(py: Python<'_>, name: &str) -> PyResult<Format> {
    Format::find_by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        new_exception(
            py,
            ErrorKind::Settings,
            format_args!("there is no format {name:?}; there are: {}", names.join(", ")),
        )
    })
}

/// Returns the TOML of a policy that ships, or of a file.
fn policy_text(name: &str) -> Result<String, String> {
    if let Some((_, toml)) = policies().find(|(shipped, _)| *shipped == name) {
        return Ok(toml.to_owned());
    }
    if Path::new(name).extension().is_some_and(|kind| kind == "toml") {
        return fs::read_to_string(name)
            .map_err(|fault| format!("{name}: the policy cannot be read: {fault}"));
    }
    let unknown = Policy::find_shipped(name).err().map(|unknown| unknown.to_string());
    Err(format!("{}; or name a file that ends in .toml", unknown.unwrap_or_default()))
}
