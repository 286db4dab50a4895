//! One turn of a conversation. Takes messages as Python holds them and the state of the conversation; gives the messages to
//! send. Python's lock is taken while messages are looked at and given back, and by nobody while the engine works.

use std::{
    ops::Range,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};
use trimtab_core::{
    FitError, FittedRequest, Format, Handle, History, Memory, Millis, Session, Settings, parse_as, recall,
    summary::{Rejection, SummaryAnswer, SummaryTask},
    wire::parse_after,
};
use trimtab_store::{
    Append, Appended, NewWish, Recognized, RequestId, SessionLabel, Sqlite, Store, StoreError, StoredSummary,
    WishKind,
};

use crate::{
    errors::{ErrorKind, new_exception},
    leaves::MessageLeaves,
    messages_back::{self, OutgoingMessage},
    request::{
        BuiltRequest, KnownMessage, ReadMessages, ReplacedMessage, RequestFields, json_of, read_messages,
    },
    settings::EffectiveSettings,
};

/// What is known of a conversation.
#[derive(Debug)]
pub(crate) struct ConversationState {
    session: Session,
    pub(crate) latest: Option<Arc<History>>,
    format: Option<(Format, FormatCertainty)>,
    known: Vec<KnownMessage>,
    system: Option<ReadField>,
    tools: Option<ReadField>,
    /// Under which number the store keeps what was sent last.
    last_kept: Option<RequestId>,
    /// Summaries that the store has not been given yet.
    unkept: Vec<StoredSummary>,
    /// Pins, set and taken back, that the store has not been given yet.
    unkept_pins: Vec<(Handle, WishKind)>,
}

/// Whether a message has shown the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatCertainty {
    Yes,
    NotYet,
}

/// A value beside the messages that was read.
#[derive(Debug)]
struct ReadField {
    leaves: Option<MessageLeaves>,
    json: Vec<u8>,
}

/// Whether a conversation goes on from turn to turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnContinuation {
    /// What is given back is taken as sent.
    On,
    /// As `On`; but where the plan asks for a summary now, nothing is taken as sent: it will be fitted again.
    OnUnlessFolding,
    /// Nothing is remembered.
    Once,
}

/// What a turn is asked for with.
pub(crate) struct TurnInput<'a, 'py> {
    pub(crate) messages: &'a Bound<'py, PyList>,
    pub(crate) system: Option<&'a Bound<'py, PyAny>>,
    pub(crate) tools: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_output: Option<u64>,
    pub(crate) now: Millis,
    pub(crate) going: TurnContinuation,
}

/// What came of a turn.
pub(crate) struct TurnOutcome {
    pub(crate) messages: Py<PyList>,
    /// Which message each of them was; none for one that stands for others.
    pub(crate) sources: Vec<Option<usize>>,
    pub(crate) fitted: FittedRequest,
    /// How long the engine worked.
    pub(crate) took: Duration,
}

/// What went wrong in the engine.
enum TurnError {
    Fit(FitError),
    Store(StoreError),
    /// The fitted request is not made of the messages that it should be made of.
    NotUnderstood,
}

impl From<FitError> for TurnError {
    fn from(fault: FitError) -> TurnError {
        TurnError::Fit(fault)
    }
}

impl From<trimtab_core::WireError> for TurnError {
    fn from(fault: trimtab_core::WireError) -> TurnError {
        TurnError::Fit(fault.into())
    }
}

impl From<StoreError> for TurnError {
    fn from(fault: StoreError) -> TurnError {
        TurnError::Store(fault)
    }
}

/// Takes a turn.
pub(crate) fn take_turn(
    turn: &TurnInput<'_, '_>,
    state: &mut ConversationState,
    in_force: &EffectiveSettings,
    store: Option<(&Sqlite, SessionLabel<'_>)>,
) -> PyResult<TurnOutcome> {
    let py = turn.messages.py();
    let looked = read_messages(turn.messages, &mut state.known)?;
    if looked.is_all_new() {
        state.format = None;
    }
    let beside = RequestFields {
        model: in_force.settings.model.clone(),
        system: read(&mut state.system, turn.system, "system")?,
        tools: read(&mut state.tools, turn.tools, "tools")?,
        max_output: turn.max_output,
    };
    let shown = looked.shown_format();
    let format = match (in_force.settings.format, state.format, shown) {
        (Some(format), ..)
        | (None, Some((format, FormatCertainty::Yes)), _)
        | (None, _, Some(format))
        | (None, Some((format, FormatCertainty::NotYet)), None) => format,
        (None, None, None) => told_format(py, &looked, &beside)?,
    };
    if in_force.settings.format.is_none() {
        looked.check_format(py, format)?;
    }
    // Plain words look the same in two formats: the first message that shows one decides.
    let was_sure = matches!(state.format, Some((_, FormatCertainty::Yes)));
    state.format = Some((
        format,
        if was_sure || shown.is_some() { FormatCertainty::Yes } else { FormatCertainty::NotYet },
    ));
    let (now, going) = (turn.now, turn.going);
    let began = Instant::now();
    let worked = py.detach(|| fit_and_remember(state, &looked, format, &beside, store, (now, going)));
    let took = began.elapsed();
    let (fitted, sent) = worked.map_err(|fault| match fault {
        TurnError::Fit(fault) => new_exception(py, ErrorKind::Request, fault),
        TurnError::Store(fault) => new_exception(py, ErrorKind::Store, fault),
        TurnError::NotUnderstood => {
            new_exception(py, ErrorKind::Request, "the fitted request could not be taken apart")
        }
    })?;
    let messages = give_back(turn.messages, &fitted, &sent, &mut state.known)?;
    let sources = sent.iter().map(OutgoingMessage::number).collect();
    Ok(TurnOutcome { messages, sources, fitted, took })
}

/// Tells the format of messages that were not read before.
pub(crate) fn told_format(py: Python<'_>, looked: &ReadMessages, beside: &RequestFields) -> PyResult<Format> {
    if looked.is_empty() {
        let words = "there are no messages: name their format with format= where that is meant";
        return Err(new_exception(py, ErrorKind::Request, words));
    }
    looked.detect_format(beside).map_err(|fault| new_exception(py, ErrorKind::Request, fault))
}

/// Returns the JSON of a value beside the messages; one that was read before is not read again.
fn read(
    before: &mut Option<ReadField>,
    value: Option<&Bound<'_, PyAny>>,
    what: &str,
) -> PyResult<Option<Vec<u8>>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        *before = None;
        return Ok(None);
    };
    let same = before.as_ref().filter(|read| read.leaves.as_ref().is_some_and(|leaves| leaves.are_of(value)));
    if let Some(read) = same {
        return Ok(Some(read.json.clone()));
    }
    let json = json_of(value, what)?;
    *before = Some(ReadField { leaves: MessageLeaves::from_message(value), json: json.clone() });
    Ok(Some(json))
}

/// Fits the request, keeps what is hidden, and remembers what is sent.
fn fit_and_remember(
    state: &mut ConversationState,
    looked: &ReadMessages,
    format: Format,
    beside: &RequestFields,
    store: Option<(&Sqlite, SessionLabel<'_>)>,
    (now, going): (Millis, TurnContinuation),
) -> Result<(FittedRequest, Vec<OutgoingMessage>), TurnError> {
    let BuiltRequest { bytes, places, head, lead } =
        looked.build_request(format, beside, &state.known, state.latest.as_deref());
    for (known, place) in state.known.iter_mut().zip(&places) {
        known.place = place.clone();
    }
    state.session.settings_mut().format = Some(format);
    let mut recognized = None;
    if going != TurnContinuation::Once {
        if let Some((store, label)) = store {
            recognized = Some(recall_from(store, label, state, &bytes, format)?);
        }
        for (handle, kind) in &state.unkept_pins {
            pin_in(state.session.memory_mut(), *handle, *kind);
        }
    }
    let mut fitted = state.session.fit(bytes, now)?;
    state.latest = Some(Arc::clone(&fitted.history));
    let waits = going == TurnContinuation::OnUnlessFolding && wants_summary(&fitted);
    if going == TurnContinuation::Once || fitted.plan.floor().is_some() || waits {
        let sent =
            messages_back::find_messages(&fitted, &places, head, lead).ok_or(TurnError::NotUnderstood)?;
        return Ok((fitted, sent));
    }
    let mut number = None;
    // What is hidden is kept before anything is given away.
    while let (Some((store, _)), Some(known)) = (store, &mut recognized) {
        match store.append_request(&Append::new(&fitted.history, &fitted.plan, known, now))? {
            Appended::Stored { request, session } => {
                for summary in state.unkept.drain(..) {
                    store.add_summary(session, &summary)?;
                }
                for (handle, kind) in state.unkept_pins.drain(..) {
                    match store.add_wish(&NewWish { session: Some(session), handle, kind, at: now }) {
                        // It is a block of another conversation, or was unpinned meanwhile: there is nothing to do.
                        Ok(_) | Err(StoreError::NotInSession { .. } | StoreError::NotPinned(_)) => {}
                        Err(fault) => return Err(fault.into()),
                    }
                }
                number = Some(request);
                break;
            }
            Appended::SaidBefore { verdicts, seen } => {
                verdicts
                    .into_iter()
                    .for_each(|(hash, sent)| state.session.memory_mut().remember(hash, sent.clone()));
                known.seen = seen;
                let bytes = fitted.history.bytes().to_vec();
                fitted = state.session.fit(bytes, now)?;
            }
        }
    }
    let sent = messages_back::find_messages(&fitted, &places, head, lead).ok_or(TurnError::NotUnderstood)?;
    state.session.sent(&fitted);
    state.last_kept = number;
    Ok((fitted, sent))
}

/// Tells whether the plan would fold now, and has no summary to do it with.
pub(crate) fn wants_summary(fitted: &FittedRequest) -> bool {
    fitted.plan.fold_wanted() && fitted.plan.fold_request().is_some()
}

/// Learns what the store knows of the conversation.
fn recall_from(
    store: &Sqlite,
    label: SessionLabel<'_>,
    state: &mut ConversationState,
    bytes: &[u8],
    format: Format,
) -> Result<Recognized, TurnError> {
    let history = match state.latest.as_ref().filter(|latest| latest.format() == format) {
        Some(latest) => parse_after(latest, bytes.to_vec())?,
        None => parse_as(bytes.to_vec(), format)?,
    };
    let known = store.recognize(&history, label)?;
    // Another process may have asked for something since.
    let memory = state.session.memory_mut();
    memory.set_wishes(known.memory.wishes().clone());
    if memory.is_empty() {
        *memory = known.memory.clone();
        let kept = known.session.map(|session| store.summaries(session)).transpose()?;
        for summary in kept.unwrap_or_default() {
            memory.remember_summary(summary.through, &summary.text);
        }
    } else {
        known
            .memory
            .verdicts()
            .for_each(|(hash, sent)| state.session.memory_mut().remember(hash, sent.clone()));
    }
    Ok(known)
}

/// Makes the list of messages to send: the very same objects where nothing changed.
fn give_back<'py>(
    messages: &Bound<'py, PyList>,
    fitted: &FittedRequest,
    sent: &[OutgoingMessage],
    known: &mut [KnownMessage],
) -> PyResult<Py<PyList>> {
    let py = messages.py();
    let list = PyList::empty(py);
    for message in sent {
        match message {
            OutgoingMessage::Same(number) => list.append(messages.get_item(*number)?)?,
            OutgoingMessage::Changed { number: Some(number), bytes } => {
                let known = known.get_mut(*number);
                list.append(changed_message(&messages.get_item(*number)?, fitted, bytes, known)?)?;
            }
            OutgoingMessage::Changed { number: None, bytes } => {
                list.append(load_message(py, fitted, bytes)?)?;
            }
        }
    }
    Ok(list.unbind())
}

/// Returns a changed message: what was given back for it before, where that still is what it was.
fn changed_message<'py>(
    original: &Bound<'py, PyAny>,
    fitted: &FittedRequest,
    bytes: &Range<usize>,
    known: Option<&mut KnownMessage>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = original.py();
    let content = fitted.request.get(bytes.clone()).unwrap_or_default();
    if let Some(given) = known.as_ref().and_then(|known| known.given.as_ref())
        && given.bytes == content
        && given.leaves.as_ref().is_some_and(|leaves| leaves.are_of(given.message.bind(py)))
    {
        return Ok(given.message.bind(py).clone());
    }
    let mut message = load_message(py, fitted, bytes)?;
    let Some(known) = known else { return Ok(message) };
    if known.foreign {
        message = py.import("trimtab._kinds")?.call_method1("rebuilt", (original, message))?;
    }
    let leaves = MessageLeaves::from_message(&message);
    known.given =
        Some(ReplacedMessage { bytes: content.to_vec(), message: message.clone().unbind(), leaves });
    Ok(message)
}

fn load_message<'py>(
    py: Python<'py>,
    fitted: &FittedRequest,
    bytes: &Range<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let content = fitted.request.get(bytes.clone()).unwrap_or_default();
    // Bytes would be decoded strictly; the text may hold spelled halves of surrogate pairs, which json reads.
    py.import("json")?.call_method1("loads", (PyBytes::new(py, content),))
}

impl ConversationState {
    /// Begins a conversation.
    pub(crate) fn new(settings: Settings) -> ConversationState {
        ConversationState {
            session: Session::new(settings),
            latest: None,
            format: None,
            known: Vec::new(),
            system: None,
            tools: None,
            last_kept: None,
            unkept: Vec::new(),
            unkept_pins: Vec::new(),
        }
    }

    /// Learns from what the provider reported for the last request.
    pub(crate) fn record_usage(
        &mut self,
        usage: trimtab_core::Usage,
        store: Option<&Sqlite>,
    ) -> Result<(), StoreError> {
        self.session.answered(usage);
        match (store, self.last_kept) {
            (Some(store), Some(number)) => store.record_usage(number, &usage),
            (Some(_) | None, _) => Ok(()),
        }
    }
}

/// Sets or takes back a pin.
fn pin_in(memory: &mut Memory, handle: Handle, kind: WishKind) {
    match kind {
        WishKind::Pin => memory.pin(handle),
        WishKind::Unpin => memory.unpin(handle),
        // The store alone takes undos: it knows what is hidden.
        WishKind::Undo(_) => {}
    }
}

impl ConversationState {
    /// Pins a block from the next request on, or takes that back; with a store it is kept with that request.
    pub(crate) fn set_pin(
        &mut self,
        handle: Handle,
        kind: WishKind,
        store: Option<&Sqlite>,
    ) -> Result<(), StoreError> {
        let named = handle.to_string();
        let is_here = self.latest.as_ref().is_some_and(|latest| recall(latest, &named).is_some());
        match store {
            None if !is_here => return Err(StoreError::UnknownHandle(named)),
            None => {}
            Some(store) => {
                if !is_here {
                    store.recall(&named)?;
                }
                self.unkept_pins.push((handle, kind));
            }
        }
        pin_in(self.session.memory_mut(), handle, kind);
        Ok(())
    }

    /// Returns the state of messages of which these blocks are pinned.
    pub(crate) fn with_pins(settings: Settings, pins: Vec<Handle>) -> ConversationState {
        let mut state = ConversationState::new(settings);
        pins.into_iter().for_each(|handle| state.session.memory_mut().pin(handle));
        state
    }

    /// Takes a summary for what a plan asked for; it is kept with the next request.
    pub(crate) fn accept_summary(
        &mut self,
        asking: &SummaryTask,
        answer: &SummaryAnswer,
        now: Millis,
    ) -> Result<(), Rejection> {
        let text = asking.check_answer(answer)?;
        self.session.summarized(asking, answer)?;
        self.unkept.push(StoredSummary { at: now, through: asking.request().range.covers(), text });
        Ok(())
    }

    /// Learns that no summary could be had for what a plan asked for.
    pub(crate) fn no_summary(&mut self, asking: &SummaryTask) {
        self.session.memory_mut().no_summary(asking.request());
    }
}

/// Where a store is, and under which name conversations are kept in it.
#[derive(Debug, Clone)]
pub(crate) struct StoreLocation {
    pub(crate) path: PathBuf,
    pub(crate) name: Option<String>,
}
