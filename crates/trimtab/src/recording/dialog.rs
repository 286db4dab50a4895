//! What was said, in no wire format yet. Takes the pieces of one message; gives the messages that carry them as
//! OpenAI Chat Completions or Anthropic Messages spell them.
//! Never writes a thought without its signature to Anthropic, which refuses it.

use std::borrow::Cow;

use crate::{
    json::{Array, Object, Value},
    wire::Format,
};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
    Tools,
}

/// A piece of a message.
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    Reasoning { text: Cow<'a, str>, signature: Option<Cow<'a, str>> },
    Media(Media<'a>),
    Call { id: Cow<'a, str>, name: Cow<'a, str>, input: Vec<u8> },
    Result { id: Cow<'a, str>, text: Cow<'a, str>, failed: bool, media: Vec<Media<'a>> },
}

/// An image or a document; `url` may hold the data itself.
pub(super) struct Media<'a> {
    pub(super) mime: Cow<'a, str>,
    pub(super) url: Cow<'a, str>,
}

/// Writes what one speaker says as messages: none where there is nothing to say.
pub(super) fn write(format: Format, speaker: Speaker, pieces: &[Piece<'_>]) -> Vec<Vec<u8>> {
    if pieces.is_empty() {
        return Vec::new();
    }
    match (format, speaker) {
        (Format::Anthropic, _) => anthropic(speaker, pieces).into_iter().collect(),
        (_, Speaker::User) => vec![chat_user(pieces)],
        (_, Speaker::Model) => vec![chat_model(pieces)],
        (_, Speaker::Tools) => chat_results(pieces),
    }
}

/// Copies a JSON text without the space between its tokens, as a program writes it that encodes it anew.
pub(super) fn compact(value: Value<'_>) -> Vec<u8> {
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

fn anthropic(speaker: Speaker, pieces: &[Piece<'_>]) -> Option<Vec<u8>> {
    let role = if speaker == Speaker::Model { "assistant" } else { "user" };
    let mut blocks = Array::new();
    pieces.iter().filter_map(anthropic_block).for_each(|block| blocks.push(&block));
    (!blocks.is_empty()).then(|| Object::new().text("role", role).raw("content", &blocks.end()).end())
}

fn anthropic_block(piece: &Piece<'_>) -> Option<Vec<u8>> {
    let block = match piece {
        Piece::Text(text) if text.is_empty() => return None,
        Piece::Text(text) => Object::new().text("type", "text").text("text", text),
        Piece::Reasoning { text, signature } => Object::new()
            .text("type", "thinking")
            .text("thinking", text)
            .text("signature", signature.as_ref()?),
        Piece::Media(media) => return Some(anthropic_media(media)),
        Piece::Call { id, name, input } => {
            Object::new().text("type", "tool_use").text("id", id).text("name", name).raw("input", input)
        }
        Piece::Result { id, text, failed, media } => {
            let block = Object::new().text("type", "tool_result").text("tool_use_id", id);
            let block = if media.is_empty() {
                block.text("content", text)
            } else {
                let text = Object::new().text("type", "text").text("text", text).end();
                let blocks = media.iter().map(anthropic_media);
                block
                    .raw("content", &blocks.fold(Array::new().raw(&text), |list, item| list.raw(&item)).end())
            };
            if *failed { block.raw("is_error", b"true") } else { block }
        }
    };
    Some(block.end())
}

fn anthropic_media(media: &Media<'_>) -> Vec<u8> {
    let source = match media.url.split_once(";base64,") {
        Some((_, data)) => {
            Object::new().text("type", "base64").text("media_type", &media.mime).text("data", data)
        }
        None => Object::new().text("type", "url").text("url", &media.url),
    };
    let kind = if media.mime.starts_with("image/") { "image" } else { "document" };
    Object::new().text("type", kind).raw("source", &source.end()).end()
}

fn chat_user(pieces: &[Piece<'_>]) -> Vec<u8> {
    let message = Object::new().text("role", "user");
    if let [Piece::Text(text)] = pieces {
        return message.text("content", text).end();
    }
    let mut content = Array::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                content.push(&Object::new().text("type", "text").text("text", text).end());
            }
            Piece::Media(media) => content.push(&chat_media(media)),
            Piece::Reasoning { .. } | Piece::Call { .. } | Piece::Result { .. } => {}
        }
    }
    message.raw("content", &content.end()).end()
}

fn chat_media(media: &Media<'_>) -> Vec<u8> {
    let (kind, key) =
        if media.mime.starts_with("image/") { ("image_url", "url") } else { ("file", "file_data") };
    Object::new().text("type", kind).raw(kind, &Object::new().text(key, &media.url).end()).end()
}

fn chat_model(pieces: &[Piece<'_>]) -> Vec<u8> {
    let (mut said, mut thought, mut calls) = (String::new(), String::new(), Array::new());
    for piece in pieces {
        match piece {
            Piece::Text(text) => said.push_str(text),
            Piece::Reasoning { text, .. } => thought.push_str(text),
            Piece::Call { id, name, input } => calls.push(&chat_call(id, name, input)),
            Piece::Media(_) | Piece::Result { .. } => {}
        }
    }
    let mut message = Object::new().text("role", "assistant").text("content", &said);
    if !thought.is_empty() {
        message = message.text("reasoning_content", &thought);
    }
    if !calls.is_empty() {
        message = message.raw("tool_calls", &calls.end());
    }
    message.end()
}

fn chat_call(id: &str, name: &str, input: &[u8]) -> Vec<u8> {
    let function = Object::new().text("name", name).text("arguments", &String::from_utf8_lossy(input));
    Object::new().text("id", id).text("type", "function").raw("function", &function.end()).end()
}

/// Results are text only in this format; what they show follows as the user's.
fn chat_results(pieces: &[Piece<'_>]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut shown = Array::new();
    for piece in pieces {
        let Piece::Result { id, text, media, .. } = piece else { continue };
        messages
            .push(Object::new().text("role", "tool").text("tool_call_id", id).text("content", text).end());
        media.iter().for_each(|media| shown.push(&chat_media(media)));
    }
    if !shown.is_empty() {
        messages.push(Object::new().text("role", "user").raw("content", &shown.end()).end());
    }
    messages
}
