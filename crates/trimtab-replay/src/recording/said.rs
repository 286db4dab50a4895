//! What was said, in no wire format yet. Takes the messages of agents that keep them in a shape of their own;
//! gives the messages of a wire format. Never changes a text: JSON strings are copied as they were recorded.

use trimtab_core::{
    Format, Millis,
    json::{Array, Object, Value, encode, scan},
    usage::Usage,
};

use super::{chat, draft::SegmentDraft};

/// What one side says at a time.
#[derive(Debug, Clone)]
pub(super) enum Said {
    System(Json),
    User(Vec<Piece>),
    Assistant(Vec<Piece>),
    /// The results of one answer's calls.
    Results(Vec<Answered>),
}

/// The result of a call: texts and media.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) call: String,
    pub(super) failed: bool,
    pub(super) pieces: Vec<Piece>,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(Json),
    /// An image or a document; `url` may hold the data itself.
    Media {
        mime: String,
        url: String,
    },
    Thinking {
        text: Json,
        signature: Option<String>,
    },
    Sealed(String),
    Call {
        id: String,
        name: String,
        arguments: Json,
    },
}

/// A JSON value's text.
pub(super) type Json = Vec<u8>;

impl Piece {
    /// Takes a text as it was recorded; nothing where the value is no string.
    pub(super) fn text(value: Option<Value<'_>>) -> Option<Piece> {
        value.filter(|text| text.is_string()).map(|text| Piece::Text(text.raw().to_vec()))
    }

    /// Takes words that are not in the recording.
    pub(super) fn words(text: &str) -> Piece {
        Piece::Text(quoted(text))
    }
}

/// Writes a decoded text as a JSON string.
pub(super) fn quoted(text: &str) -> Json {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    json
}

/// Copies a JSON text without the space between its tokens, as a program writes it that encodes it anew.
pub(super) fn compact(value: Value<'_>) -> Json {
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
pub(super) struct Asked {
    /// How many messages it carried, before they were written in a format.
    pub(super) said: usize,
    pub(super) at: Option<Millis>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Adds a result. Results that follow each other go together.
pub(super) fn add_result(said: &mut Vec<Said>, result: Answered) {
    match said.last_mut() {
        Some(Said::Results(results)) => results.push(result),
        _ => said.push(Said::Results(vec![result])),
    }
}

/// Writes messages and requests into a segment, in the segment's format.
pub(super) fn fill(segment: &mut SegmentDraft, said: &[Said], asked: Vec<Asked>) {
    let mut ends = vec![0];
    for message in said {
        write(message, segment);
        ends.push(segment.messages.len());
    }
    for request in asked {
        let point = segment.point(request.at, request.model.map(Into::into));
        point.messages = ends.get(request.said).copied().unwrap_or(point.messages);
        point.usage = request.usage;
    }
}

/// Writes what is said behind the messages of a segment: no message where there is nothing to say.
pub(super) fn write(said: &Said, segment: &mut SegmentDraft) {
    let messages = &mut segment.messages;
    match (segment.format, said) {
        (Format::Anthropic, Said::System(text)) => {
            segment.head = vec![("system", Array::new().raw(&typed_text("text", text)).end())];
        }
        (Format::Anthropic, Said::User(pieces)) => push("user", anthropic(pieces), messages),
        (Format::Anthropic, Said::Assistant(pieces)) => push("assistant", anthropic(pieces), messages),
        (Format::Anthropic, Said::Results(results)) => {
            push("user", list(results.iter().map(anthropic_result)), messages);
        }
        (Format::Responses, Said::System(text)) => segment.head = vec![("instructions", text.clone())],
        (Format::Responses, Said::User(pieces)) => push("user", responses_input(pieces), messages),
        (Format::Responses, Said::Assistant(pieces)) => {
            messages.extend(pieces.iter().filter_map(responses_item));
        }
        (Format::Responses, Said::Results(results)) => {
            messages.extend(results.iter().map(responses_result));
            push("user", responses_input(&media_of(results)), messages);
        }
        // No reader asks for Gemini; what an agent said to it is written as Chat.
        (Format::Chat | Format::Gemini, Said::System(text)) => messages.push(chat::message("system", text)),
        (Format::Chat | Format::Gemini, Said::User(pieces)) => match pieces.as_slice() {
            [Piece::Text(text)] => messages.push(chat::message("user", text)),
            pieces => push("user", chat_content(pieces), messages),
        },
        (Format::Chat | Format::Gemini, Said::Assistant(pieces)) => messages.extend(chat_answer(pieces)),
        (Format::Chat | Format::Gemini, Said::Results(results)) => {
            messages.extend(results.iter().map(chat_result));
            push("user", chat_content(&media_of(results)), messages);
        }
    }
}

fn push(role: &str, content: Array, messages: &mut Vec<Json>) {
    if !content.is_empty() {
        messages.push(chat::message(role, &content.end()));
    }
}

fn list(items: impl Iterator<Item = Json>) -> Array {
    items.fold(Array::new(), |list, item| list.raw(&item))
}

fn typed_text(kind: &str, text: &[u8]) -> Json {
    Object::new().text("type", kind).raw("text", text).end()
}

fn anthropic(pieces: &[Piece]) -> Array {
    list(pieces.iter().filter_map(anthropic_block))
}

/// Writes a block. The provider refuses empty texts and thoughts that are not signed: they are left out.
fn anthropic_block(piece: &Piece) -> Option<Json> {
    Some(match piece {
        Piece::Text(text) if text == b"\"\"" => return None,
        Piece::Text(text) => typed_text("text", text),
        Piece::Media { mime, url } => {
            let source = match url.split_once(";base64,") {
                Some((_, data)) => {
                    Object::new().text("type", "base64").text("media_type", mime).text("data", data)
                }
                None => Object::new().text("type", "url").text("url", url),
            };
            let kind = if is_image(mime) { "image" } else { "document" };
            Object::new().text("type", kind).raw("source", &source.end()).end()
        }
        Piece::Thinking { text, signature } => {
            let block = Object::new().text("type", "thinking").raw("thinking", text);
            block.text("signature", signature.as_ref()?).end()
        }
        Piece::Sealed(data) => Object::new().text("type", "redacted_thinking").text("data", data).end(),
        Piece::Call { id, name, arguments } => {
            let block = Object::new().text("type", "tool_use").text("id", id).text("name", name);
            block.raw("input", arguments).end()
        }
    })
}

fn anthropic_result(result: &Answered) -> Json {
    let has_media = result.pieces.iter().any(is_media);
    let content = if has_media { anthropic(&result.pieces).end() } else { joined(&result.pieces, "\\n") };
    let block = Object::new().text("type", "tool_result").text("tool_use_id", &result.call);
    let block = block.raw("content", &content);
    if result.failed { block.raw("is_error", b"true").end() } else { block.end() }
}

fn responses_input(pieces: &[Piece]) -> Array {
    list(pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) | Piece::Thinking { text, .. } => Some(typed_text("input_text", text)),
        Piece::Media { mime, url } => {
            let (kind, key) =
                if is_image(mime) { ("input_image", "image_url") } else { ("input_file", "file_data") };
            Some(Object::new().text("type", kind).text(key, url).end())
        }
        Piece::Sealed(_) | Piece::Call { .. } => None,
    }))
}

fn responses_item(piece: &Piece) -> Option<Json> {
    Some(match piece {
        Piece::Text(text) => {
            let content = Array::new().raw(&typed_text("output_text", text)).end();
            let message = Object::new().text("type", "message").text("role", "assistant");
            message.raw("content", &content).end()
        }
        // The signature is the whole reasoning item, as the provider gave it; a broken one would break the segment.
        Piece::Thinking { signature: Some(item), .. }
            if scan(item.as_bytes()).is_ok() && item.starts_with('{') =>
        {
            item.clone().into_bytes()
        }
        Piece::Thinking { text, .. } => {
            let summary = Array::new().raw(&typed_text("summary_text", text)).end();
            Object::new().text("type", "reasoning").raw("summary", &summary).end()
        }
        Piece::Call { id, name, arguments } => {
            let call = Object::new().text("type", "function_call").text("call_id", id).text("name", name);
            call.text("arguments", &String::from_utf8_lossy(arguments)).end()
        }
        Piece::Media { .. } | Piece::Sealed(_) => return None,
    })
}

fn responses_result(result: &Answered) -> Json {
    let item = Object::new().text("type", "function_call_output").text("call_id", &result.call);
    item.raw("output", &joined(&result.pieces, "\\n")).end()
}

fn chat_content(pieces: &[Piece]) -> Array {
    list(pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) | Piece::Thinking { text, .. } => Some(typed_text("text", text)),
        Piece::Media { mime, url } => {
            let (kind, key) = if is_image(mime) { ("image_url", "url") } else { ("file", "file_data") };
            Some(Object::new().text("type", kind).raw(kind, &Object::new().text(key, url).end()).end())
        }
        Piece::Sealed(_) | Piece::Call { .. } => None,
    }))
}

/// Writes an answer. A thought that is text alone is a field of the message; one with a seal is kept with it.
fn chat_answer(pieces: &[Piece]) -> Option<Json> {
    let (mut calls, mut sealed, mut thoughts) = (Array::new(), Array::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Call { id, name, arguments } => {
                calls.push(&chat::call(&quoted(id), &quoted(name), &String::from_utf8_lossy(arguments)));
            }
            Piece::Thinking { text, signature: None } => thoughts.push(Piece::Text(text.clone())),
            Piece::Thinking { text, signature: Some(signature) } => {
                let thought = Object::new().text("type", "reasoning.text").raw("text", text);
                sealed.push(&thought.text("signature", signature).end());
            }
            Piece::Sealed(data) => {
                sealed.push(&Object::new().text("type", "reasoning.encrypted").text("data", data).end());
            }
            Piece::Text(_) | Piece::Media { .. } => {}
        }
    }
    let said = pieces.iter().any(|piece| matches!(piece, Piece::Text(_)));
    let content = if said { joined(pieces, "") } else { b"null".to_vec() };
    let mut message = Object::new().text("role", "assistant").raw("content", &content);
    if !thoughts.is_empty() {
        message = message.raw("reasoning_content", &joined(&thoughts, ""));
    }
    if !sealed.is_empty() {
        message = message.raw("reasoning_details", &sealed.end());
    }
    if !calls.is_empty() {
        message = message.raw("tool_calls", &calls.end());
    }
    (!pieces.is_empty()).then(|| message.end())
}

fn chat_result(result: &Answered) -> Json {
    chat::result(&result.call, &joined(&result.pieces, "\\n"))
}

/// Returns the media of some results: formats whose results are texts get them in a message of the user.
fn media_of(results: &[Answered]) -> Vec<Piece> {
    results.iter().flat_map(|result| &result.pieces).filter(|piece| is_media(piece)).cloned().collect()
}

fn is_media(piece: &Piece) -> bool {
    matches!(piece, Piece::Media { .. })
}

fn is_image(mime: &str) -> bool {
    mime.starts_with("image/")
}

/// Joins the texts of some pieces to one JSON string.
fn joined(pieces: &[Piece], between: &str) -> Json {
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => text.get(1..text.len().saturating_sub(1)),
        Piece::Media { .. } | Piece::Thinking { .. } | Piece::Sealed(_) | Piece::Call { .. } => None,
    });
    let texts: Vec<&[u8]> = texts.collect();
    [b"\"".as_slice(), &texts.join(between.as_bytes()), b"\""].concat()
}
