//! Requests made of messages. Takes messages as Python holds them, and what stands beside them; gives the request's bytes with
//! every message at a known place. Reads a message that it has read before only where something in it is another object.

use std::ops::Range;

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyList, PyString},
};
use trimtab_core::{Format, History, WireError, parse};

use crate::{
    errors::{ErrorKind, new_exception},
    leaves::MessageLeaves,
    write::{WriteOutcome, write_value},
};

/// How many messages are looked at to tell a format, as the library does.
const MESSAGES_LOOKED_AT: usize = 40;

/// What stands beside the messages, as JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestFields {
    pub(crate) model: Option<String>,
    pub(crate) system: Option<Vec<u8>>,
    pub(crate) tools: Option<Vec<u8>>,
    pub(crate) max_output: Option<u64>,
}

/// A message that was read.
#[derive(Debug)]
pub(crate) struct KnownMessage {
    /// What must be the same for the message to be what it was; nothing if that cannot be known.
    leaves: Option<MessageLeaves>,
    /// Its place in the latest request.
    pub(crate) place: Range<usize>,
    /// Whether it is, or holds, an object of an SDK.
    pub(crate) foreign: bool,
    /// What was given back instead of it, and for which bytes.
    pub(crate) given: Option<ReplacedMessage>,
}

/// A message that was given back in place of another.
#[derive(Debug)]
pub(crate) struct ReplacedMessage {
    pub(crate) bytes: Vec<u8>,
    pub(crate) message: Py<PyAny>,
    pub(crate) leaves: Option<MessageLeaves>,
}

/// Where the bytes of a message are.
#[derive(Debug)]
enum MessageBytes {
    /// In the latest request, at the place that is known.
    Latest,
    /// Among those just written.
    New(Range<usize>),
}

/// Messages that were looked at: what is new is JSON, what is known is not touched.
#[derive(Debug)]
pub(crate) struct ReadMessages {
    sources: Vec<MessageBytes>,
    written: Vec<u8>,
    /// The format that a message shows by itself, with its number.
    signs: Vec<(usize, Format)>,
    /// The first message with a field that one of the formats does not have.
    with_content: Option<usize>,
}

/// A request, and where its messages are.
#[derive(Debug)]
pub(crate) struct BuiltRequest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) places: Vec<Range<usize>>,
    /// How many bytes precede the first message that the caller gave.
    pub(crate) head: usize,
    /// How many messages precede it that are not the caller's.
    pub(crate) lead: usize,
}

/// Writes the JSON of a value beside the messages; SDK objects in it become plain first.
pub(crate) fn json_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    add_value(value, &mut out).map_err(|fault| name_fault(value.py(), &fault, what))?;
    Ok(out)
}

/// Looks at messages: brings `known` in step with them, and writes what is new.
pub(crate) fn read_messages(
    messages: &Bound<'_, PyList>,
    known: &mut Vec<KnownMessage>,
) -> PyResult<ReadMessages> {
    let py = messages.py();
    let mut looked = ReadMessages {
        sources: Vec::with_capacity(messages.len()),
        written: Vec::new(),
        signs: Vec::new(),
        with_content: None,
    };
    for (number, message) in messages.iter().enumerate() {
        let same = known
            .get(number)
            .and_then(|known| known.leaves.as_ref())
            .is_some_and(|leaves| leaves.are_of(&message));
        if same {
            looked.sources.push(MessageBytes::Latest);
            continue;
        }
        let what = || format!("message {number}");
        let from = looked.written.len();
        let plain =
            add_value(&message, &mut looked.written).map_err(|fault| name_fault(py, &fault, &what()))?;
        let foreign = plain.is_some();
        let plain = plain.unwrap_or_else(|| message.clone());
        let Ok(dict) = plain.cast::<PyDict>() else {
            let kind = message.get_type();
            let kind = kind.name()?;
            return Err(PyTypeError::new_err(format!(
                "message {number} should be a dict, and is of type {kind}"
            )));
        };
        if looked.with_content.is_none() && dict.contains("content")? {
            looked.with_content = Some(number);
        }
        looked.signs.extend(format_sign(dict)?.map(|format| (number, format)));
        looked.sources.push(MessageBytes::New(from..looked.written.len()));
        let read =
            KnownMessage { leaves: MessageLeaves::from_message(&message), place: 0..0, foreign, given: None };
        match known.get_mut(number) {
            Some(place) => *place = read,
            None => known.push(read),
        }
    }
    known.truncate(messages.len());
    Ok(looked)
}

impl ReadMessages {
    /// Tells whether nothing of these messages was read before.
    pub(crate) fn is_all_new(&self) -> bool {
        self.sources.iter().all(|source| matches!(source, MessageBytes::New(_)))
    }

    /// Refuses a message that shows another format.
    pub(crate) fn check_format(&self, py: Python<'_>, format: Format) -> PyResult<()> {
        if let (Format::Gemini, Some(number)) = (format, self.with_content) {
            let words = format!(
                "message {number} has `content`, where those of Gemini have `parts`: a conversation has one format"
            );
            return Err(new_exception(py, ErrorKind::Request, words));
        }
        let Some((number, other)) = self.signs.iter().find(|(_, sign)| *sign != format) else {
            return Ok(());
        };
        let (other, format) = (other.title(), format.title());
        let words = format!(
            "message {number} is written as {other}, the others as {format}: a conversation has one format; name it with \
             format= where this is meant"
        );
        Err(new_exception(py, ErrorKind::Request, words))
    }

    /// Tells whether there are no messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the format that one of the messages just read shows by itself.
    pub(crate) fn shown_format(&self) -> Option<Format> {
        self.signs.first().map(|(_, format)| *format)
    }

    /// Tells the format of messages of which none was read before.
    pub(crate) fn detect_format(&self, beside: &RequestFields) -> Result<Format, WireError> {
        if let Some((_, format)) = self.signs.first() {
            return Ok(*format);
        }
        let some = self.sources.iter().take(MESSAGES_LOOKED_AT).filter_map(|source| match source {
            MessageBytes::New(range) => self.written.get(range.clone()),
            MessageBytes::Latest => None,
        });
        let list = some.collect::<Vec<_>>().join(&b","[..]);
        let bare = parse([b"[", list.as_slice(), b"]"].concat())?.format();
        if bare != Format::Chat {
            return Ok(bare);
        }
        // Plain words look the same in both formats that say `messages`: what stands beside them decides.
        let mut request = b"{".to_vec();
        if let Some(model) = &beside.model {
            write_field(&mut request, "model", &serde_json::to_vec(model).unwrap_or_default());
        }
        if let Some(tools) = &beside.tools {
            write_field(&mut request, "tools", tools);
        }
        if beside.system.is_some() && beside.model.is_none() && beside.tools.is_none() && !has_system(&list) {
            write_field(&mut request, "system", b"\"\"");
        }
        request.extend_from_slice(b"\"messages\":[");
        request.extend_from_slice(&list);
        request.extend_from_slice(b"]}");
        Ok(parse(request)?.format())
    }

    /// Makes the request. Only bytes are copied: `latest` holds those of messages that were read before.
    pub(crate) fn build_request(
        &self,
        format: Format,
        beside: &RequestFields,
        known: &[KnownMessage],
        latest: Option<&History>,
    ) -> BuiltRequest {
        let (mut bytes, lead) = write_head(format, beside);
        let latest = latest.map_or(&[][..], History::bytes);
        bytes.reserve(latest.len() + self.written.len() + self.sources.len());
        let head = bytes.len();
        let mut places = Vec::with_capacity(self.sources.len());
        for (number, (source, known)) in self.sources.iter().zip(known).enumerate() {
            if number > 0 || lead > 0 {
                bytes.push(b',');
            }
            let from = bytes.len();
            bytes.extend_from_slice(match source {
                MessageBytes::Latest => latest.get(known.place.clone()).unwrap_or_default(),
                MessageBytes::New(range) => self.written.get(range.clone()).unwrap_or_default(),
            });
            places.push(from..bytes.len());
        }
        bytes.extend_from_slice(b"]}");
        BuiltRequest { bytes, places, head, lead }
    }
}

/// Tells whether a system message stands among the first: only one of the formats has such.
fn has_system(list: &[u8]) -> bool {
    let text = String::from_utf8_lossy(list);
    ["\"role\":\"system\"", "\"role\":\"developer\""].iter().any(|sign| text.contains(sign))
}

/// Adds the JSON of a value; returns the plain form of one that is, or holds, an object of an SDK.
fn add_value<'py>(value: &Bound<'py, PyAny>, out: &mut Vec<u8>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let from = out.len();
    if write_value(value, out)? == WriteOutcome::Whole {
        return Ok(None);
    }
    out.truncate(from);
    let plain = value.py().import("trimtab._kinds")?.call_method1("plain", (value,))?;
    if write_value(&plain, out)? == WriteOutcome::Foreign {
        return Err(PyTypeError::new_err("it holds a value that JSON does not know"));
    }
    Ok(Some(plain))
}

/// Says of which value a fault tells.
fn name_fault(py: Python<'_>, fault: &PyErr, what: &str) -> PyErr {
    let value = fault.value(py);
    if fault.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("{what}: {value}"));
    }
    if fault.is_instance_of::<pyo3::exceptions::PyValueError>(py) {
        return new_exception(py, ErrorKind::Request, format_args!("{what}: {value}"));
    }
    fault.clone_ref(py)
}

/// Returns the format that a message shows by itself, where it is no other's.
fn format_sign(message: &Bound<'_, PyDict>) -> PyResult<Option<Format>> {
    let text = |key: &str| -> PyResult<Option<String>> {
        let value = message.get_item(key)?;
        Ok(value.and_then(|value| value.cast_into::<PyString>().ok()).and_then(|text| text.extract().ok()))
    };
    let role = text("role")?;
    let has_role = role.is_some();
    if !message.contains("content")?
        && message.get_item("parts")?.is_some_and(|parts| parts.is_instance_of::<PyList>())
    {
        return Ok(Some(Format::Gemini));
    }
    if matches!(role.as_deref(), Some("tool" | "function")) || message.contains("tool_calls")? {
        return Ok(Some(Format::Chat));
    }
    if let Some(kind) = text("type")?
        && (!has_role || kind == "message")
    {
        let responses = kind == "message" || kind == "reasoning" || kind.contains("_call");
        return Ok(responses.then_some(Format::Responses));
    }
    let Some(Ok(contents)) = message.get_item("content")?.map(Bound::cast_into::<PyList>) else {
        return Ok(None);
    };
    for content in contents.iter().take(MESSAGES_LOOKED_AT) {
        let Ok(content) = content.cast::<PyDict>() else { continue };
        let kind = content.get_item("type")?.and_then(|kind| kind.extract::<String>().ok());
        match kind.as_deref() {
            Some("tool_use" | "tool_result" | "thinking" | "redacted_thinking") => {
                return Ok(Some(Format::Anthropic));
            }
            Some("input_text" | "output_text" | "input_image") => return Ok(Some(Format::Responses)),
            Some("image_url") => return Ok(Some(Format::Chat)),
            Some(_) | None => {}
        }
    }
    Ok(None)
}

/// Writes what precedes the messages; tells how many messages of ours are among it.
fn write_head(format: Format, beside: &RequestFields) -> (Vec<u8>, usize) {
    let mut out = b"{".to_vec();
    if let Some(model) = &beside.model {
        write_field(&mut out, "model", &serde_json::to_vec(model).unwrap_or_default());
    }
    if let Some(most) = beside.max_output {
        let most = most.to_string();
        match format {
            Format::Anthropic => write_field(&mut out, "max_tokens", most.as_bytes()),
            Format::Chat => write_field(&mut out, "max_completion_tokens", most.as_bytes()),
            Format::Responses => write_field(&mut out, "max_output_tokens", most.as_bytes()),
            Format::Gemini => {
                write_field(
                    &mut out,
                    "generationConfig",
                    format!(r#"{{"maxOutputTokens":{most}}}"#).as_bytes(),
                );
            }
        }
    }
    if let Some(tools) = &beside.tools {
        write_field(&mut out, "tools", tools);
    }
    let mut lead = 0;
    let key = match format {
        Format::Anthropic | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    };
    match (format, &beside.system) {
        (Format::Anthropic, Some(system)) => write_field(&mut out, "system", system),
        (Format::Responses, Some(system)) => write_field(&mut out, "instructions", system),
        (Format::Gemini, Some(system)) if system.starts_with(b"\"") => {
            write_field(
                &mut out,
                "systemInstruction",
                &[br#"{"parts":[{"text":"#, system.as_slice(), b"}]}"].concat(),
            );
        }
        (Format::Gemini, Some(system)) => write_field(&mut out, "systemInstruction", system),
        (Format::Anthropic | Format::Chat | Format::Responses | Format::Gemini, _) => {}
    }
    out.extend_from_slice(format!("\"{key}\":[").as_bytes());
    if let (Format::Chat, Some(system)) = (format, &beside.system) {
        out.extend_from_slice(br#"{"role":"system","content":"#);
        out.extend_from_slice(system);
        out.push(b'}');
        lead = 1;
    }
    (out, lead)
}

/// Adds a field and the comma after it.
fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(format!("\"{name}\":").as_bytes());
    out.extend_from_slice(value);
    out.push(b',');
}
