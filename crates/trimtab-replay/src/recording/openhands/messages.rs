//! OpenHands events as Chat messages. Takes events in order; gives messages: the calls of one response joined, and
//! each call with its result after it. Never gives a result whose call is out of view.

use std::collections::HashSet;

use trimtab_core::json::{Array, Object, Value};

use super::words;
use crate::recording::{chat, plain_messages::quote_text};

/// Who is heard in an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    System,
    User,
    Agent,
    /// What an action led to.
    World,
    /// Nothing that the model reads.
    Nobody,
}

/// The messages so far.
#[derive(Default)]
pub(super) struct OpenhandsMessages {
    all: Vec<Vec<u8>>,
    /// Answers whose calls have not all been answered. OpenHands sends a call only together with its result.
    open: Vec<OpenResponse>,
    /// The answers that were taken in, by the id of their response.
    answers: HashSet<String>,
    /// Names of the pieces of knowledge that were recalled.
    known: HashSet<String>,
    agent_spoke_last: bool,
}

struct OpenResponse {
    response: String,
    /// How many messages preceded it.
    before: usize,
    content: Option<Vec<u8>>,
    calls: Vec<OpenhandsCall>,
}

struct OpenhandsCall {
    id: String,
    json: Vec<u8>,
    result: Option<Vec<u8>>,
}

impl OpenhandsMessages {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Tells who is heard in an event.
    pub(super) fn source_of(&self, event: Value<'_>) -> EventSource {
        let by_user = event.member_is("source", "user");
        match (event.text("action").as_deref(), event.text("observation").as_deref()) {
            (Some("system"), _) => EventSource::System,
            (
                Some("change_agent_state" | "null" | "recall" | "condensation_request" | "loop_recovery"),
                _,
            )
            | (_, Some("agent_state_changed" | "null")) => EventSource::Nobody,
            (Some("message"), _) if event.get("source").is_none() && self.is_user_turn() => EventSource::User,
            (Some(_), _) if by_user => EventSource::User,
            (Some(_), _) => EventSource::Agent,
            (None, _) => EventSource::World,
        }
    }

    /// Tells whether a message without a source is the user's: at the beginning, and after one of the agent.
    fn is_user_turn(&self) -> bool {
        self.all.is_empty() || self.agent_spoke_last
    }

    /// Tells whether an action is the first of its response.
    pub(super) fn is_new(&self, event: Value<'_>) -> bool {
        response_id(event).is_none_or(|id| !self.answers.contains(&id))
    }

    /// Adds a user message that no event holds.
    pub(super) fn add_user_text(&mut self, text: &str) {
        self.all.push(chat::write_text("user", text));
    }

    /// Adds an event.
    pub(super) fn add_event(&mut self, event: Value<'_>, speaker: EventSource) {
        let is = |kind: &str| event.member_is("action", kind);
        self.agent_spoke_last = speaker == EventSource::Agent && is("message");
        match speaker {
            EventSource::System => {
                self.all.push(chat::write_text("system", &words::text_field(event, "content")));
            }
            EventSource::User if is("message") => {
                self.all.push(chat::write_text("user", &words::text_field(event, "content")));
            }
            EventSource::User => self.all.push(chat::write_text("user", &words::action_text(event))),
            EventSource::Agent if is("message") => {
                self.all.push(chat::write_text("assistant", &words::text_field(event, "content")));
            }
            // A finished run has no result, so OpenHands goes on from what was said with it.
            EventSource::Agent if is("finish") => {
                self.all.push(chat::write_text("assistant", &words::finish_text(event)));
            }
            EventSource::Agent => match response_id(event) {
                Some(response) => self.call(event, response),
                None => self.all.push(chat::write_text("assistant", &words::action_text(event))),
            },
            EventSource::World => self.add_observation(event),
            EventSource::Nobody => {}
        }
    }

    fn call(&mut self, event: Value<'_>, response: String) {
        let known = self.open.iter().position(|open| open.response == response);
        let message = first_choice(event);
        if known.is_none() {
            self.answers.insert(response.clone());
            let content =
                message.and_then(|message| message.get("content")).map(|content| content.raw().to_vec());
            let calls =
                message.and_then(|message| message.get("tool_calls")).into_iter().flat_map(Value::items);
            let calls = calls.map(OpenhandsCall::from_recorded).collect();
            self.open.push(OpenResponse { response, before: self.all.len(), content, calls });
        }
        let index = known.unwrap_or(self.open.len() - 1);
        let Some(open) = self.open.get_mut(index) else { return };
        let id =
            event.path(&["tool_call_metadata", "tool_call_id"]).and_then(Value::string).unwrap_or_default();
        if !open.calls.iter().any(|call| call.id == id) {
            open.calls.push(OpenhandsCall::from_event(event, &id));
        }
    }

    fn add_observation(&mut self, event: Value<'_>) {
        if event.member_is("observation", "recall") {
            let text = words::recalled_text(event, &mut self.known);
            self.all.extend(text.map(|text| chat::write_text("user", &text)));
            return;
        }
        let Some(id) = event.path(&["tool_call_metadata", "tool_call_id"]).and_then(Value::string) else {
            self.all.push(chat::write_text("user", &words::bare_observation(event)));
            return;
        };
        let calls = |open: &OpenResponse| open.calls.iter().any(|call| call.id == id);
        // The call of a result may have been forgotten: then the result goes, too.
        let Some(index) = self.open.iter().rposition(calls) else { return };
        let Some(open) = self.open.get_mut(index) else { return };
        let named = event.path(&["tool_call_metadata", "function_name"]);
        let result = Object::new().text("role", "tool").text("tool_call_id", &id);
        let result = named.into_iter().fold(result, |result, name| result.raw("name", name.raw()));
        let result = result.text("content", &words::observation_text(event)).end();
        open.calls
            .iter_mut()
            .filter(|call| call.id == id)
            .for_each(|call| call.result = Some(result.clone()));
        if open.calls.iter().all(|call| call.result.is_some()) {
            let whole = self.open.remove(index);
            self.all.extend(whole.write());
        }
    }

    /// Returns all messages, with an answer at the end whose calls were never run.
    pub(super) fn into_messages(mut self) -> Vec<Vec<u8>> {
        let last = self.open.pop().filter(|open| open.before == self.all.len());
        self.all.extend(last.into_iter().flat_map(OpenResponse::write));
        self.all
    }
}

impl OpenResponse {
    fn write(self) -> Vec<Vec<u8>> {
        let calls = self.calls.iter().fold(Array::new(), |list, call| list.raw(&call.json)).end();
        let content = self.content.unwrap_or_else(|| b"null".to_vec());
        let answer =
            Object::new().text("role", "assistant").raw("content", &content).raw("tool_calls", &calls);
        let results = self.calls.into_iter().filter_map(|call| call.result);
        std::iter::once(answer.end()).chain(results).collect()
    }
}

impl OpenhandsCall {
    fn from_recorded(call: Value<'_>) -> OpenhandsCall {
        let id = call.text("id").unwrap_or_default().into_owned();
        OpenhandsCall { id, json: call.raw().to_vec(), result: None }
    }

    /// Makes the call of an action whose response was not kept whole.
    fn from_event(event: Value<'_>, id: &str) -> OpenhandsCall {
        let name = event.path(&["tool_call_metadata", "function_name"]).and_then(Value::string);
        let arguments = event.get("args").map_or(b"{}".as_slice(), Value::raw);
        let name = quote_text(&name.unwrap_or_default());
        let json = chat::call(&quote_text(id), &name, &String::from_utf8_lossy(arguments));
        OpenhandsCall { id: id.to_owned(), json, result: None }
    }
}

fn response_id(event: Value<'_>) -> Option<String> {
    let metadata = event.get("tool_call_metadata").filter(|metadata| metadata.is_object())?;
    let id = metadata.path(&["model_response", "id"]).and_then(Value::string);
    id.or_else(|| metadata.text("tool_call_id")).map(std::borrow::Cow::into_owned)
}

fn first_choice(event: Value<'_>) -> Option<Value<'_>> {
    let choices = event.path(&["tool_call_metadata", "model_response", "choices"])?;
    let message = choices.items().next()?;
    message.get("message")
}
