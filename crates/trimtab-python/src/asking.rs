//! A summary that a plan asks for. Takes the plan's wish and the name of a model that writes; gives the prompts to send it one
//! after the other, and says of each answer whether it can be trusted. Never calls a model: that is the caller's.
#![allow(unsafe_code, reason = "PyO3's macros write it; there is none of ours")]

use pyo3::prelude::*;
use trimtab_core::{
    Tokens, find_model,
    summary::{FoldRange, SummaryAnswer, SummaryTask, read_answer},
};

use crate::errors::{ErrorKind, new_exception};

/// The window of a summarizer that is not in the table of models: what small local models are run with.
const UNKNOWN_WINDOW: Tokens = Tokens(32_000);

/// A summary that is asked for.
#[pyclass(frozen, module = "trimtab._engine", name = "Asking")]
pub(crate) struct PyAsking {
    pub(crate) asking: SummaryTask,
    window: Tokens,
    parts: Vec<FoldRange>,
}

impl PyAsking {
    pub(crate) fn new(asking: SummaryTask, model: Option<&str>) -> PyAsking {
        let longest = asking.request().target.scale(2.0);
        let known = model.and_then(|model| find_model(model).ok());
        let window = known.map_or(UNKNOWN_WINDOW, |model| model.request_budget(longest));
        let parts = asking.parts(window);
        PyAsking { asking, window, parts }
    }
}

#[pymethods]
impl PyAsking {
    /// How many prompts are to be sent, one after the other.
    #[getter]
    fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The notes to begin with: the summary of what was folded before.
    #[getter]
    fn notes(&self) -> Option<&str> {
        self.asking.notes()
    }

    /// How many tokens the summary should have.
    #[getter]
    fn target(&self) -> u64 {
        self.asking.request().target.0
    }

    /// Returns the prompt of a part, counted from 0, which updates the notes on the parts before.
    #[pyo3(signature = (part, notes=None))]
    fn prompt(&self, py: Python<'_>, part: usize, notes: Option<&str>) -> PyResult<String> {
        let Some(range) = self.parts.get(part) else {
            let words = format!("there is no part {part}: there are {}", self.parts.len());
            return Err(new_exception(py, ErrorKind::NotFound, words));
        };
        Ok(py.detach(|| self.asking.prompt(range, notes, self.window)))
    }

    /// Returns the words of an answer to any part but the last; raises where it cannot be gone on with.
    #[pyo3(signature = (answer, *, is_reply=false))]
    fn check_part(&self, py: Python<'_>, answer: &str, is_reply: bool) -> PyResult<String> {
        let answer = read(py, answer, is_reply)?;
        self.asking.check_part(&answer).map_err(|fault| new_exception(py, ErrorKind::Summary, fault))
    }
}

/// Reads an answer: a text, or the JSON of a provider's reply.
pub(crate) fn read(py: Python<'_>, answer: &str, is_reply: bool) -> PyResult<SummaryAnswer> {
    if !is_reply {
        return Ok(SummaryAnswer::of_text(answer));
    }
    read_answer(answer.as_bytes()).map_err(|fault| new_exception(py, ErrorKind::Summary, fault))
}
