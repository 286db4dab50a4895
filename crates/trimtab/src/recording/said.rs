//! What was said, in no wire format yet. Takes the messages of agents that keep them in a shape of their own;
//! gives the messages of a wire format. Never changes a text: JSON strings are copied as they were recorded.

use super::{Millis, Usage, draft::SegmentDraft};
use crate::{
    json::{Array, Object, encode},
    wire::Format,
};

/// One message.
#[derive(Debug, Clone)]
pub(super) enum Said {
    System(Json),
    User(Vec<Piece>),
    Assistant(Vec<Piece>),
    Result(Answered),
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) failed: bool,
    pub(super) pieces: Vec<Piece>,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(Json),
    Image { mime: String, data: String },
    Thinking { text: Json, signature: Option<String> },
    Sealed(String),
    Call { id: String, name: String, arguments: Json },
}

/// A JSON value's text.
pub(super) type Json = Vec<u8>;

/// Writes a decoded text as a JSON string.
pub(super) fn quoted(text: &str) -> Json {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    json
}

/// A request made with the first messages of a list.
pub(super) struct Asked {
    /// How many messages it carried, before they were written in a format.
    pub(super) said: usize,
    pub(super) at: Option<Millis>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Writes messages and requests into a segment, in the segment's format.
pub(super) fn fill(segment: &mut SegmentDraft, said: &[Said], asked: Vec<Asked>) {
    let mut ends = vec![0];
    for (index, message) in said.iter().enumerate() {
        let follows =
            matches!(index.checked_sub(1).and_then(|before| said.get(before)), Some(Said::Result(_)));
        write(message, follows, segment);
        ends.push(segment.messages.len());
    }
    for request in asked {
        let point = segment.point(request.at, request.model.map(Into::into));
        point.messages = ends.get(request.said).copied().unwrap_or(point.messages);
        point.usage = request.usage;
    }
}

/// Writes one message. `follows` tells that a result stands before it.
fn write(message: &Said, follows: bool, segment: &mut SegmentDraft) {
    let messages = &mut segment.messages;
    match (segment.format, message) {
        (Format::Anthropic, Said::System(text)) => segment.head = vec![("system", text.clone())],
        (Format::Anthropic, Said::Result(result)) => anthropic_result(result, follows, messages),
        (Format::Anthropic, Said::User(pieces)) => message_of("user", anthropic(pieces), messages),
        (Format::Anthropic, Said::Assistant(pieces)) => message_of("assistant", anthropic(pieces), messages),
        (Format::Responses, Said::System(text)) => segment.head = vec![("instructions", text.clone())],
        (Format::Responses, Said::Result(result)) => responses_result(result, messages),
        (Format::Responses, Said::User(pieces)) => message_of("user", responses_input(pieces), messages),
        (Format::Responses, Said::Assistant(pieces)) => {
            messages.extend(pieces.iter().filter_map(responses_item));
        }
        // No reader asks for Gemini; what an agent said to it is written as Chat.
        (Format::Chat | Format::Gemini, Said::System(text)) => {
            messages.push(Object::new().text("role", "system").raw("content", text).end());
        }
        (Format::Chat | Format::Gemini, Said::Result(result)) => chat_result(result, messages),
        (Format::Chat | Format::Gemini, Said::User(pieces)) => {
            message_of("user", chat_content(pieces), messages);
        }
        (Format::Chat | Format::Gemini, Said::Assistant(pieces)) => messages.push(chat_answer(pieces)),
    }
}

fn message_of(role: &str, content: Array, messages: &mut Vec<Json>) {
    if !content.is_empty() {
        messages.push(Object::new().text("role", role).raw("content", &content.end()).end());
    }
}

fn anthropic(pieces: &[Piece]) -> Array {
    pieces.iter().fold(Array::new(), |list, piece| {
        let block = match piece {
            // The provider refuses thinking that is not signed, so agents send it as text.
            Piece::Text(text) | Piece::Thinking { text, signature: None } => {
                Object::new().text("type", "text").raw("text", text)
            }
            Piece::Image { mime, data } => {
                let source =
                    Object::new().text("type", "base64").text("media_type", mime).text("data", data).end();
                Object::new().text("type", "image").raw("source", &source)
            }
            Piece::Thinking { text, signature: Some(signature) } => {
                Object::new().text("type", "thinking").raw("thinking", text).text("signature", signature)
            }
            Piece::Sealed(data) => Object::new().text("type", "redacted_thinking").text("data", data),
            Piece::Call { id, name, arguments } => Object::new()
                .text("type", "tool_use")
                .text("id", plain(id))
                .text("name", name)
                .raw("input", arguments),
        };
        list.raw(&block.end())
    })
}

/// Writes a result; results that follow each other share one message.
fn anthropic_result(result: &Answered, follows: bool, messages: &mut Vec<Json>) {
    let mut block = Object::new().text("type", "tool_result").text("tool_use_id", plain(&result.call));
    block = block.raw("content", &anthropic(&result.pieces).end());
    if result.failed {
        block = block.raw("is_error", b"true");
    }
    let block = block.end();
    // A message ends with its list of blocks, as `message_of` writes it.
    if let Some(last) = messages.last_mut().filter(|last| follows && last.ends_with(b"]}")) {
        last.truncate(last.len() - 2);
        last.push(b',');
        last.extend_from_slice(&block);
        last.extend_from_slice(b"]}");
        return;
    }
    message_of("user", Array::new().raw(&block), messages);
}

fn responses_input(pieces: &[Piece]) -> Array {
    pieces.iter().fold(Array::new(), |list, piece| match piece {
        Piece::Text(text) | Piece::Thinking { text, .. } => {
            list.raw(&Object::new().text("type", "input_text").raw("text", text).end())
        }
        Piece::Image { mime, data } => list
            .raw(&Object::new().text("type", "input_image").text("image_url", &data_url(mime, data)).end()),
        Piece::Sealed(_) | Piece::Call { .. } => list,
    })
}

fn responses_item(piece: &Piece) -> Option<Json> {
    Some(match piece {
        Piece::Text(text) => {
            let part = Object::new().text("type", "output_text").raw("text", text).end();
            let message = Object::new().text("type", "message").text("role", "assistant");
            message.raw("content", &Array::new().raw(&part).end()).end()
        }
        // The signature is the whole reasoning item, as the provider gave it.
        Piece::Thinking { signature: Some(item), .. } if item.starts_with('{') => item.clone().into_bytes(),
        Piece::Thinking { text, .. } => {
            let part = Object::new().text("type", "summary_text").raw("text", text).end();
            Object::new().text("type", "reasoning").raw("summary", &Array::new().raw(&part).end()).end()
        }
        Piece::Call { id, name, arguments } => {
            let call =
                Object::new().text("type", "function_call").text("call_id", plain(id)).text("name", name);
            call.text("arguments", &String::from_utf8_lossy(arguments)).end()
        }
        Piece::Image { .. } | Piece::Sealed(_) => return None,
    })
}

fn responses_result(result: &Answered, messages: &mut Vec<Json>) {
    let item = Object::new().text("type", "function_call_output").text("call_id", plain(&result.call));
    messages.push(item.raw("output", &joined(&result.pieces)).end());
    message_of("user", responses_input(&images(result)), messages);
}

fn chat_content(pieces: &[Piece]) -> Array {
    pieces.iter().fold(Array::new(), |list, piece| match piece {
        Piece::Text(text) | Piece::Thinking { text, .. } => {
            list.raw(&Object::new().text("type", "text").raw("text", text).end())
        }
        Piece::Image { mime, data } => {
            let url = Object::new().text("url", &data_url(mime, data)).end();
            list.raw(&Object::new().text("type", "image_url").raw("image_url", &url).end())
        }
        Piece::Sealed(_) | Piece::Call { .. } => list,
    })
}

fn chat_answer(pieces: &[Piece]) -> Json {
    let mut calls = Array::new();
    let mut thoughts = Array::new();
    for piece in pieces {
        match piece {
            Piece::Call { id, name, arguments } => {
                let function = Object::new()
                    .text("name", name)
                    .text("arguments", &String::from_utf8_lossy(arguments))
                    .end();
                let call = Object::new().text("id", plain(id)).text("type", "function");
                calls.push(&call.raw("function", &function).end());
            }
            Piece::Thinking { text, signature } => {
                let thought = Object::new().text("type", "reasoning.text").raw("text", text);
                let thought = match signature {
                    Some(signature) => thought.text("signature", signature),
                    None => thought,
                };
                thoughts.push(&thought.end());
            }
            Piece::Sealed(data) => {
                thoughts.push(&Object::new().text("type", "reasoning.encrypted").text("data", data).end());
            }
            Piece::Text(_) | Piece::Image { .. } => {}
        }
    }
    let texts: Vec<Piece> = pieces.iter().filter(|piece| matches!(piece, Piece::Text(_))).cloned().collect();
    let content = if texts.is_empty() { b"null".to_vec() } else { joined(&texts) };
    let mut message = Object::new().text("role", "assistant").raw("content", &content);
    if !thoughts.is_empty() {
        message = message.raw("reasoning_details", &thoughts.end());
    }
    if !calls.is_empty() {
        message = message.raw("tool_calls", &calls.end());
    }
    message.end()
}

fn chat_result(result: &Answered, messages: &mut Vec<Json>) {
    let message = Object::new().text("role", "tool").text("tool_call_id", plain(&result.call));
    messages.push(message.text("name", &result.tool).raw("content", &joined(&result.pieces)).end());
    message_of("user", chat_content(&images(result)), messages);
}

/// Returns the images of a result: formats whose results are texts get them in a message of the user.
fn images(result: &Answered) -> Vec<Piece> {
    result.pieces.iter().filter(|piece| matches!(piece, Piece::Image { .. })).cloned().collect()
}

/// Joins the texts of some pieces to one JSON string, line by line.
fn joined(pieces: &[Piece]) -> Json {
    let mut texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.get(1..text.len().saturating_sub(1)).unwrap_or_default()),
        Piece::Image { .. } | Piece::Thinking { .. } | Piece::Sealed(_) | Piece::Call { .. } => None,
    });
    let mut all = vec![b'"'];
    all.extend_from_slice(texts.next().unwrap_or_default());
    for text in texts {
        all.extend_from_slice(b"\\n");
        all.extend_from_slice(text);
    }
    all.push(b'"');
    all
}

/// Returns a call's id without the item's id that some agents join to it.
fn plain(id: &str) -> &str {
    id.split('|').next().unwrap_or(id)
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}
