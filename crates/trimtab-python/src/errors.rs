//! Faults as Python raises them. Takes the library's errors; gives exceptions of the classes in `trimtab/_errors.py`, with the
//! library's own sentences. Never invents a sentence where the library has one.

use std::fmt::Display;

use pyo3::{IntoPyObjectExt, prelude::*, types::PyType};

/// The exceptions of the package.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorKind {
    /// The messages cannot be read as a conversation.
    Request,
    /// A policy, setting, model or budget is not what it should be.
    Settings,
    /// The store cannot do what is asked of it.
    Store,
    /// A summary is not to be used.
    Summary,
    /// Nothing has the handle, path or step that was asked for.
    NotFound,
}

impl ErrorKind {
    fn class_name(self) -> &'static str {
        match self {
            ErrorKind::Request => "RequestError",
            ErrorKind::Settings => "SettingsError",
            ErrorKind::Store => "StoreError",
            ErrorKind::Summary => "SummaryError",
            ErrorKind::NotFound => "NotFoundError",
        }
    }
}

/// Makes an exception of a fault.
pub(crate) fn new_exception(py: Python<'_>, kind: ErrorKind, fault: impl Display) -> PyErr {
    match exception_class(py, kind.class_name()) {
        Ok(class) => PyErr::from_type(class, fault.to_string()),
        Err(fault) => fault,
    }
}

/// Makes the exception of a request that cannot be made to fit; it carries the best that could be done.
pub(crate) fn over_budget(py: Python<'_>, sentence: String, floor: u64, fitted: Py<PyAny>) -> PyErr {
    let made = exception_class(py, "BudgetError").and_then(|class| {
        let arguments = (sentence, floor, fitted).into_py_any(py)?;
        class.call1(arguments.cast_bound(py)?)
    });
    made.map_or_else(|fault| fault, PyErr::from_value)
}

fn exception_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("trimtab._errors")?.getattr(name)?.cast_into()?)
}
