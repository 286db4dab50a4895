//! What was said, in no wire format yet. Takes the messages of agents that keep them in another shape;
//! gives the messages of a wire format. Never changes a text: JSON strings are copied as they were recorded.

use trimtab_core::{
    Format, Millis,
    json::{Array, Object, Value, encode, scan},
    usage::Usage,
};

use super::{chat, draft::SegmentDraft};

/// What one side says at a time.
#[derive(Debug, Clone)]
pub(super) enum PlainMessage {
    System(JsonText),
    User(Vec<MessagePart>),
    Assistant(Vec<MessagePart>),
    /// The results of one answer's calls.
    Results(Vec<CallOutput>),
}

/// The result of a call: texts and media.
#[derive(Debug, Clone)]
pub(super) struct CallOutput {
    pub(super) call: String,
    pub(super) failed: bool,
    pub(super) pieces: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub(super) enum MessagePart {
    Text(JsonText),
    /// An image or a document; `url` may hold the data itself.
    Media {
        mime: String,
        url: String,
    },
    Thinking {
        text: JsonText,
        signature: Option<String>,
    },
    Sealed(String),
    Call {
        id: String,
        name: String,
        arguments: JsonText,
    },
}

/// A JSON value's text.
pub(super) type JsonText = Vec<u8>;

impl MessagePart {
    /// Takes a text as it was recorded; nothing where the value is no string.
    pub(super) fn from_text(value: Option<Value<'_>>) -> Option<MessagePart> {
        value.filter(|text| text.is_string()).map(|text| MessagePart::Text(text.raw().to_vec()))
    }

    /// Takes words that are not in the recording.
    pub(super) fn from_words(text: &str) -> MessagePart {
        MessagePart::Text(quote_text(text))
    }
}

/// Writes a decoded text as a JSON string.
pub(super) fn quote_text(text: &str) -> JsonText {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    json
}

/// Copies a JSON text without the space between its tokens, as a program writes it that encodes it again.
pub(super) fn compact_json(value: Value<'_>) -> JsonText {
    let (mut quoted, mut escaped) = (false, false);
    let kept = |byte: &&u8| {
        let keep = quoted || !byte.is_ascii_whitespace();
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        keep
    };
    value.raw().iter().filter(kept).copied().collect()
}

/// A request made with the first messages of a list.
pub(super) struct RequestMark {
    /// How many messages it carried, before they were written in a format.
    pub(super) said: usize,
    pub(super) at: Option<Millis>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Adds a result. Results that follow each other go together.
pub(super) fn add_result(said: &mut Vec<PlainMessage>, result: CallOutput) {
    match said.last_mut() {
        Some(PlainMessage::Results(results)) => results.push(result),
        _ => said.push(PlainMessage::Results(vec![result])),
    }
}

/// Writes messages and requests into a segment, in the segment's format.
pub(super) fn fill_segment(segment: &mut SegmentDraft, said: &[PlainMessage], asked: Vec<RequestMark>) {
    let mut ends = vec![0];
    for message in said {
        write_message(message, segment);
        ends.push(segment.messages.len());
    }
    for request in asked {
        let point = segment.add_point(request.at, request.model.map(Into::into));
        point.messages = ends.get(request.said).copied().unwrap_or(point.messages);
        point.usage = request.usage;
    }
}

/// Writes what is said after the messages of a segment: no message where there is nothing to say.
pub(super) fn write_message(said: &PlainMessage, segment: &mut SegmentDraft) {
    let messages = &mut segment.messages;
    match (segment.format, said) {
        (Format::Anthropic, PlainMessage::System(text)) => {
            segment.head = vec![("system", Array::new().raw(&typed_text("text", text)).end())];
        }
        (Format::Anthropic, PlainMessage::User(pieces)) => {
            push_message("user", anthropic_blocks(pieces), messages);
        }
        (Format::Anthropic, PlainMessage::Assistant(pieces)) => {
            push_message("assistant", anthropic_blocks(pieces), messages);
        }
        (Format::Anthropic, PlainMessage::Results(results)) => {
            push_message("user", json_list(results.iter().map(anthropic_result)), messages);
        }
        (Format::Responses, PlainMessage::System(text)) => {
            segment.head = vec![("instructions", text.clone())];
        }
        (Format::Responses, PlainMessage::User(pieces)) => {
            push_message("user", responses_input(pieces), messages);
        }
        (Format::Responses, PlainMessage::Assistant(pieces)) => {
            messages.extend(pieces.iter().filter_map(responses_item));
        }
        (Format::Responses, PlainMessage::Results(results)) => {
            messages.extend(results.iter().map(responses_result));
            push_message("user", responses_input(&media_of(results)), messages);
        }
        // No reader asks for Gemini; what an agent said to it is written as Chat.
        (Format::Chat | Format::Gemini, PlainMessage::System(text)) => {
            messages.push(chat::write_message("system", text));
        }
        (Format::Chat | Format::Gemini, PlainMessage::User(pieces)) => match pieces.as_slice() {
            [MessagePart::Text(text)] => messages.push(chat::write_message("user", text)),
            pieces => push_message("user", chat_content(pieces), messages),
        },
        (Format::Chat | Format::Gemini, PlainMessage::Assistant(pieces)) => {
            messages.extend(chat_answer(pieces));
        }
        (Format::Chat | Format::Gemini, PlainMessage::Results(results)) => {
            messages.extend(results.iter().map(chat_result));
            push_message("user", chat_content(&media_of(results)), messages);
        }
    }
}

fn push_message(role: &str, content: Array, messages: &mut Vec<JsonText>) {
    if !content.is_empty() {
        messages.push(chat::write_message(role, &content.end()));
    }
}

fn json_list(items: impl Iterator<Item = JsonText>) -> Array {
    items.fold(Array::new(), |list, item| list.raw(&item))
}

fn typed_text(kind: &str, text: &[u8]) -> JsonText {
    Object::new().text("type", kind).raw("text", text).end()
}

fn anthropic_blocks(pieces: &[MessagePart]) -> Array {
    json_list(pieces.iter().filter_map(anthropic_block))
}

/// Writes a block. The provider refuses empty texts and thoughts that are not signed: they are left out.
fn anthropic_block(piece: &MessagePart) -> Option<JsonText> {
    Some(match piece {
        MessagePart::Text(text) if text == b"\"\"" => return None,
        MessagePart::Text(text) => typed_text("text", text),
        MessagePart::Media { mime, url } => {
            let source = match url.split_once(";base64,") {
                Some((_, data)) => {
                    Object::new().text("type", "base64").text("media_type", mime).text("data", data)
                }
                None => Object::new().text("type", "url").text("url", url),
            };
            let kind = if is_image(mime) { "image" } else { "document" };
            Object::new().text("type", kind).raw("source", &source.end()).end()
        }
        MessagePart::Thinking { text, signature } => {
            let block = Object::new().text("type", "thinking").raw("thinking", text);
            block.text("signature", signature.as_ref()?).end()
        }
        MessagePart::Sealed(data) => Object::new().text("type", "redacted_thinking").text("data", data).end(),
        MessagePart::Call { id, name, arguments } => {
            let block = Object::new().text("type", "tool_use").text("id", id).text("name", name);
            block.raw("input", arguments).end()
        }
    })
}

fn anthropic_result(result: &CallOutput) -> JsonText {
    let has_media = result.pieces.iter().any(is_media);
    let content =
        if has_media { anthropic_blocks(&result.pieces).end() } else { join_texts(&result.pieces, "\\n") };
    let block = Object::new().text("type", "tool_result").text("tool_use_id", &result.call);
    let block = block.raw("content", &content);
    if result.failed { block.raw("is_error", b"true").end() } else { block.end() }
}

fn responses_input(pieces: &[MessagePart]) -> Array {
    json_list(pieces.iter().filter_map(|piece| match piece {
        MessagePart::Text(text) | MessagePart::Thinking { text, .. } => Some(typed_text("input_text", text)),
        MessagePart::Media { mime, url } => {
            let (kind, key) =
                if is_image(mime) { ("input_image", "image_url") } else { ("input_file", "file_data") };
            Some(Object::new().text("type", kind).text(key, url).end())
        }
        MessagePart::Sealed(_) | MessagePart::Call { .. } => None,
    }))
}

fn responses_item(piece: &MessagePart) -> Option<JsonText> {
    Some(match piece {
        MessagePart::Text(text) => {
            let content = Array::new().raw(&typed_text("output_text", text)).end();
            let message = Object::new().text("type", "message").text("role", "assistant");
            message.raw("content", &content).end()
        }
        // The signature is the whole reasoning item, as the provider gave it; a broken one would break the segment.
        MessagePart::Thinking { signature: Some(item), .. }
            if scan(item.as_bytes()).is_ok() && item.starts_with('{') =>
        {
            item.clone().into_bytes()
        }
        MessagePart::Thinking { text, .. } => {
            let summary = Array::new().raw(&typed_text("summary_text", text)).end();
            Object::new().text("type", "reasoning").raw("summary", &summary).end()
        }
        MessagePart::Call { id, name, arguments } => {
            let call = Object::new().text("type", "function_call").text("call_id", id).text("name", name);
            call.text("arguments", &String::from_utf8_lossy(arguments)).end()
        }
        MessagePart::Media { .. } | MessagePart::Sealed(_) => return None,
    })
}

fn responses_result(result: &CallOutput) -> JsonText {
    let item = Object::new().text("type", "function_call_output").text("call_id", &result.call);
    item.raw("output", &join_texts(&result.pieces, "\\n")).end()
}

fn chat_content(pieces: &[MessagePart]) -> Array {
    json_list(pieces.iter().filter_map(|piece| match piece {
        MessagePart::Text(text) | MessagePart::Thinking { text, .. } => Some(typed_text("text", text)),
        MessagePart::Media { mime, url } => {
            let (kind, key) = if is_image(mime) { ("image_url", "url") } else { ("file", "file_data") };
            Some(Object::new().text("type", kind).raw(kind, &Object::new().text(key, url).end()).end())
        }
        MessagePart::Sealed(_) | MessagePart::Call { .. } => None,
    }))
}

/// Writes an answer. A thought that is text alone is a field of the message; one with a seal is kept with it.
fn chat_answer(pieces: &[MessagePart]) -> Option<JsonText> {
    let (mut calls, mut sealed, mut thoughts) = (Array::new(), Array::new(), Vec::new());
    for piece in pieces {
        match piece {
            MessagePart::Call { id, name, arguments } => {
                calls.push(&chat::call(
                    &quote_text(id),
                    &quote_text(name),
                    &String::from_utf8_lossy(arguments),
                ));
            }
            MessagePart::Thinking { text, signature: None } => thoughts.push(MessagePart::Text(text.clone())),
            MessagePart::Thinking { text, signature: Some(signature) } => {
                let thought = Object::new().text("type", "reasoning.text").raw("text", text);
                sealed.push(&thought.text("signature", signature).end());
            }
            MessagePart::Sealed(data) => {
                sealed.push(&Object::new().text("type", "reasoning.encrypted").text("data", data).end());
            }
            MessagePart::Text(_) | MessagePart::Media { .. } => {}
        }
    }
    let said = pieces.iter().any(|piece| matches!(piece, MessagePart::Text(_)));
    let content = if said { join_texts(pieces, "") } else { b"null".to_vec() };
    let mut message = Object::new().text("role", "assistant").raw("content", &content);
    if !thoughts.is_empty() {
        message = message.raw("reasoning_content", &join_texts(&thoughts, ""));
    }
    if !sealed.is_empty() {
        message = message.raw("reasoning_details", &sealed.end());
    }
    if !calls.is_empty() {
        message = message.raw("tool_calls", &calls.end());
    }
    (!pieces.is_empty()).then(|| message.end())
}

fn chat_result(result: &CallOutput) -> JsonText {
    chat::write_result(&result.call, &join_texts(&result.pieces, "\\n"))
}

/// Returns the media of some results: formats whose results are texts get them in a message of the user.
fn media_of(results: &[CallOutput]) -> Vec<MessagePart> {
    results.iter().flat_map(|result| &result.pieces).filter(|piece| is_media(piece)).cloned().collect()
}

fn is_media(piece: &MessagePart) -> bool {
    matches!(piece, MessagePart::Media { .. })
}

fn is_image(mime: &str) -> bool {
    mime.starts_with("image/")
}

/// Joins the texts of some pieces to one JSON string.
fn join_texts(pieces: &[MessagePart], between: &str) -> JsonText {
    let texts = pieces.iter().filter_map(|piece| match piece {
        MessagePart::Text(text) => text.get(1..text.len().saturating_sub(1)),
        MessagePart::Media { .. }
        | MessagePart::Thinking { .. }
        | MessagePart::Sealed(_)
        | MessagePart::Call { .. } => None,
    });
    let texts: Vec<&[u8]> = texts.collect();
    [b"\"".as_slice(), &texts.join(between.as_bytes()), b"\""].concat()
}
