//! A conversation that goes on. Takes its messages turn by turn; gives the messages to send. Its state is in one
//! place, taken out while a turn works and put back after it: two threads cannot work with it at once, and a forked process
//! that finds it taken begins again.
#![allow(unsafe_code, reason = "PyO3's macros write it; there is none of ours")]

use std::{
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyDict, PyList},
};
use trimtab_core::{Handle, Millis, RecallHint, Usage, recall};
use trimtab_store::{SessionLabel, Sqlite, Store, StoreError, WishKind, current_project, default_path};

use crate::{
    asking::{PyAsking, read},
    errors::{ErrorKind, new_exception},
    fitted::{PyFitted, fitted_or_raise, fitted_unchecked},
    settings::{EffectiveSettings, RequestedSettings, in_force, parse_changes},
    turn::{ConversationState, StoreLocation, TurnContinuation, TurnInput, take_turn, wants_summary},
};

/// A conversation that goes on from turn to turn.
#[pyclass(frozen, module = "trimtab._engine", name = "Session")]
pub(crate) struct PySession {
    in_force: EffectiveSettings,
    place: Option<StoreLocation>,
    slot: Mutex<StateSlot>,
}

/// Where the state is while nobody works with it. The lock is only ever taken for a moment, by a thread that has Python's: so
/// no process is forked while it is taken.
#[derive(Default)]
struct StateSlot {
    held: Option<Box<SlotContent>>,
    taken_by: Option<u32>,
}

struct SlotContent {
    state: ConversationState,
    store: Option<(u32, Sqlite)>,
}

/// What was taken out, to be put back whatever happens.
struct TakenState<'a> {
    slot: &'a Mutex<StateSlot>,
    held: Option<Box<SlotContent>>,
}

impl Drop for TakenState<'_> {
    fn drop(&mut self) {
        let mut slot = lock_slot(self.slot);
        slot.held = self.held.take();
        slot.taken_by = None;
    }
}

fn lock_slot(slot: &Mutex<StateSlot>) -> MutexGuard<'_, StateSlot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (*, model=None, policy=None, budget=None, format=None, settings=None, spent=0.0, store=None, name=None, fold=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
    fn new(
        py: Python<'_>,
        model: Option<String>,
        policy: Option<String>,
        budget: Option<u64>,
        format: Option<String>,
        settings: Option<&Bound<'_, PyDict>>,
        spent: f64,
        store: Option<PathBuf>,
        name: Option<String>,
        fold: Option<&str>,
    ) -> PyResult<PySession> {
        let set = parse_changes(settings)?;
        let mut in_force =
            in_force(py, RequestedSettings { policy, model, budget, format, set, spent, fold })?;
        if let Some(path) = &store {
            in_force.settings.recall = recall_from(path);
        }
        let place = store.map(|path| StoreLocation { path, name });
        let session = PySession { in_force, place, slot: Mutex::default() };
        let mut held = session.new_state();
        session.open_store(&mut held).map_err(|fault| new_exception(py, ErrorKind::Store, fault))?;
        lock_slot(&session.slot).held = Some(held);
        Ok(session)
    }

    /// Fits the messages of the next request.
    #[pyo3(signature = (messages, *, now, system=None, tools=None, max_output=None, may_wait=false))]
    fn fit(
        &self,
        messages: &Bound<'_, PyList>,
        now: i64,
        system: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        max_output: Option<u64>,
        may_wait: bool,
    ) -> PyResult<Py<PyFitted>> {
        let py = messages.py();
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        self.open_store(held).map_err(|fault| new_exception(py, ErrorKind::Store, fault))?;
        let SlotContent { state, store } = held;
        let name = self.place.as_ref().and_then(|place| place.name.as_deref());
        let project = store.as_ref().and_then(|_| current_project());
        let label = SessionLabel { name, project: project.as_deref() };
        let store = store.as_ref().map(|(_, store)| (store, label));
        let going = if may_wait { TurnContinuation::OnUnlessFolding } else { TurnContinuation::On };
        let turn = TurnInput { messages, system, tools, max_output, now: Millis(now), going };
        let done = take_turn(&turn, state, &self.in_force, store)?;
        if may_wait && wants_summary(&done.fitted) {
            return fitted_unchecked(py, done, &self.in_force);
        }
        fitted_or_raise(py, done, &self.in_force)
    }

    /// Learns what the provider reported for the last request, in tokens of each kind.
    #[pyo3(signature = (*, input, cache_read, cache_write, cache_write_1h, output))]
    fn answered(
        &self,
        py: Python<'_>,
        input: u64,
        cache_read: u64,
        cache_write: u64,
        cache_write_1h: u64,
        output: u64,
    ) -> PyResult<()> {
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        self.open_store(held).map_err(|fault| new_exception(py, ErrorKind::Store, fault))?;
        let SlotContent { state, store } = held;
        let usage = Usage { input, cache_read, cache_write, cache_write_1h, output };
        let store = store.as_ref().map(|(_, store)| store);
        let done = py.detach(|| state.record_usage(usage, store));
        done.map_err(|fault| new_exception(py, ErrorKind::Store, fault))
    }

    /// Takes an answer to the last prompt of what was asked for, a text or a provider's reply; raises where it is not to be used.
    #[pyo3(signature = (asking, answer, *, now, is_reply=false))]
    fn folded(
        &self,
        py: Python<'_>,
        asking: &PyAsking,
        answer: &str,
        now: i64,
        is_reply: bool,
    ) -> PyResult<()> {
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        let answer = read(py, answer, is_reply)?;
        let done = held.state.accept_summary(&asking.asking, &answer, Millis(now));
        done.map_err(|fault| new_exception(py, ErrorKind::Summary, fault))
    }

    /// Learns that no summary could be had for what was asked for: it is folded by the ledger alone.
    fn no_summary(&self, py: Python<'_>, asking: &PyAsking) -> PyResult<()> {
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        held.state.no_summary(&asking.asking);
        Ok(())
    }

    /// Returns the original that a handle names: of the latest request, else of the store.
    fn recall(&self, py: Python<'_>, handle: &str) -> PyResult<String> {
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        self.open_store(held).map_err(|fault| new_exception(py, ErrorKind::Store, fault))?;
        let found = py.detach(|| {
            let latest = held.state.latest.as_ref();
            let here = latest.and_then(|latest| Some(recall(latest, handle)?.into_owned()));
            match (here, &held.store) {
                (Some(original), _) => Ok(original),
                (None, Some((_, store))) => store.recall(handle),
                (None, None) => Err(StoreError::UnknownHandle(handle.to_owned())),
            }
        });
        let original = found.map_err(|fault| not_found(py, fault))?;
        Ok(String::from_utf8_lossy(&original).into_owned())
    }

    /// Keeps a block from being hidden, from the next request on.
    fn pin(&self, py: Python<'_>, handle: &str) -> PyResult<()> {
        self.set_pin(py, handle, WishKind::Pin)
    }

    /// Takes a pin back.
    fn unpin(&self, py: Python<'_>, handle: &str) -> PyResult<()> {
        self.set_pin(py, handle, WishKind::Unpin)
    }

    /// Returns the budget that was asked for or that the policy names.
    #[getter]
    fn budget(&self) -> Option<u64> {
        self.in_force.settings.budget.map(|budget| budget.0)
    }
}

impl PySession {
    /// Returns the state of a conversation of which nothing is known.
    fn new_state(&self) -> Box<SlotContent> {
        Box::new(SlotContent { state: ConversationState::new(self.in_force.settings.clone()), store: None })
    }

    fn take_state(&self, _attached: Python<'_>) -> PyResult<TakenState<'_>> {
        let mut slot = lock_slot(&self.slot);
        let here = process::id();
        let held = match (slot.held.take(), slot.taken_by) {
            (Some(held), _) => held,
            // Another thread had it when the process was forked: that thread is not here.
            (None, Some(other)) if other != here => self.new_state(),
            (None, _) => return Err(busy_error()),
        };
        slot.taken_by = Some(here);
        Ok(TakenState { slot: &self.slot, held: Some(held) })
    }

    fn set_pin(&self, py: Python<'_>, handle: &str, kind: WishKind) -> PyResult<()> {
        let handle = handle_of(py, handle)?;
        let mut taken = self.take_state(py)?;
        let Some(held) = taken.held.as_deref_mut() else { return Err(busy_error()) };
        self.open_store(held).map_err(|fault| new_exception(py, ErrorKind::Store, fault))?;
        let SlotContent { state, store } = held;
        let store = store.as_ref().map(|(_, store)| store);
        py.detach(|| state.set_pin(handle, kind, store)).map_err(|fault| not_found(py, fault))
    }

    /// Opens the store, once in every process.
    fn open_store(&self, held: &mut SlotContent) -> Result<(), StoreError> {
        let Some(place) = &self.place else { return Ok(()) };
        let here = process::id();
        match held.store.take() {
            Some((process, store)) if process == here && store.is_in_place() => {
                held.store = Some((process, store));
            }
            // Its file was deleted or replaced: what would be written to it is lost.
            Some((process, store)) if process == here => {
                drop(store);
                held.store = Some((here, Sqlite::open(&place.path)?));
            }
            other => {
                // A connection must not be used, nor closed, in a process that was forked from its own.
                std::mem::forget(other);
                held.store = Some((here, Sqlite::open(&place.path)?));
            }
        }
        Ok(())
    }
}

/// Reads a handle.
pub(crate) fn handle_of(py: Python<'_>, word: &str) -> PyResult<Handle> {
    let wrong = || new_exception(py, ErrorKind::NotFound, StoreError::NotAHandle(word.to_owned()));
    Handle::parse(word).ok_or_else(wrong)
}

fn not_found(py: Python<'_>, fault: StoreError) -> PyErr {
    match fault {
        StoreError::UnknownHandle(_) | StoreError::NotAHandle(_) => {
            new_exception(py, ErrorKind::NotFound, fault)
        }
        fault => new_exception(py, ErrorKind::Store, fault),
    }
}

fn busy_error() -> PyErr {
    PyRuntimeError::new_err("the session is at work: a message's own code asked it again")
}

/// Returns the file that conversations are kept in where none is named.
#[pyfunction]
pub(crate) fn default_store() -> Option<PathBuf> {
    default_path()
}

/// Returns how notes name the recall from a store.
fn recall_from(store: &Path) -> RecallHint {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if default_path().is_some_and(|usual| absolute(&usual) == absolute(store)) {
        return RecallHint::default();
    }
    RecallHint::Command(format!("trimtab recall --store {}", absolute(store).display()).into())
}
