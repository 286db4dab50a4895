//! What pi tells the model. Takes one entry of a session; gives the message that it becomes, in pi's words.
//! Never tells what the user kept from the model.

use super::{Entry, Speaker, broke_off};
use crate::{
    json::Value,
    recording::said::{Answered, Piece, Said, quoted},
    wire::Format,
};

/// The words that pi puts around a summary of what was compacted.
const COMPACTED: (&str, &str) = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
);

/// The words that pi puts around a summary of a way that was left.
const LEFT: (&str, &str) = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
);

/// Says one entry as pi tells it to the model.
pub(super) fn say(entry: &Entry<'_>, speaker: &Speaker) -> Option<Said> {
    let value = entry.value;
    let around = |words: (&str, &str)| {
        let summary = value.text("summary").unwrap_or_default();
        Some(user_text(&format!("{}{summary}{}", words.0, words.1)))
    };
    let message = match value.text("type").as_deref() {
        Some("compaction") => return around(COMPACTED),
        Some("branch_summary") => return around(LEFT),
        Some("custom_message") => value,
        _ => entry.message()?,
    };
    match message.text("role").as_deref() {
        Some("assistant") if broke_off(message) => None,
        Some("assistant") => {
            let own = message.text("model").as_deref() == speaker.model.as_deref();
            let pieces = blocks(message).filter_map(|block| answer_piece(block, own, speaker.format));
            Some(Said::Assistant(pieces.collect())).filter(has_pieces)
        }
        Some("toolResult") => Some(Said::Result(Answered {
            call: message.text("toolCallId")?.into_owned(),
            tool: message.text("toolName").unwrap_or_default().into_owned(),
            failed: message.get("isError").is_some_and(Value::is_true),
            pieces: blocks(message).filter_map(told_piece).collect(),
        })),
        Some("bashExecution") if message.get("excludeFromContext").is_some_and(Value::is_true) => None,
        Some("bashExecution") => Some(user_text(&shell_text(message))),
        Some("user" | "custom" | "hookMessage") | None => {
            let bare = message.get("content").filter(|content| content.is_string());
            let bare = bare.map(|text| Piece::Text(text.raw().to_vec()));
            let pieces = blocks(message).filter_map(told_piece).chain(bare);
            Some(Said::User(pieces.collect())).filter(has_pieces)
        }
        Some(_) => None,
    }
}

fn blocks(message: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    message.get("content").into_iter().flat_map(Value::items)
}

fn has_pieces(said: &Said) -> bool {
    !matches!(said, Said::User(pieces) | Said::Assistant(pieces) if pieces.is_empty())
}

pub(super) fn call_of(piece: &Piece) -> Option<(String, String)> {
    match piece {
        Piece::Call { id, name, .. } => Some((id.clone(), name.clone())),
        Piece::Text(_) | Piece::Image { .. } | Piece::Thinking { .. } | Piece::Sealed(_) => None,
    }
}

fn user_text(text: &str) -> Said {
    Said::User(vec![Piece::Text(quoted(text))])
}

/// Reads a piece of what the model was told.
fn told_piece(block: Value<'_>) -> Option<Piece> {
    match block.text("type").as_deref() {
        Some("text") => text_piece(block.get("text")?),
        Some("image") => {
            let text = |key| block.text(key).map(std::borrow::Cow::into_owned);
            Some(Piece::Image { mime: text("mimeType")?, data: text("data")? })
        }
        _ => None,
    }
}

/// Reads a piece of an answer. `own` tells that the model it goes back to gave it.
fn answer_piece(block: Value<'_>, own: bool, format: Format) -> Option<Piece> {
    match block.text("type").as_deref() {
        Some("text") => text_piece(block.get("text")?),
        Some("thinking") => {
            let signature =
                block.text("thinkingSignature").filter(|signature| own && !signature.trim().is_empty());
            // For Chat the signature is the name of the field that the thought came in.
            let signature = signature.filter(|_| format != Format::Chat).map(std::borrow::Cow::into_owned);
            if block.get("redacted").is_some_and(Value::is_true) {
                return signature.map(Piece::Sealed);
            }
            let text = block.get("thinking").filter(|text| text.is_string())?;
            let empty = text.string().is_none_or(|text| text.trim().is_empty());
            match (own, empty && signature.is_none()) {
                (_, true) => None,
                (false, false) => text_piece(text),
                (true, false) => Some(Piece::Thinking { text: text.raw().to_vec(), signature }),
            }
        }
        Some("toolCall") => Some(Piece::Call {
            id: block.text("id")?.into_owned(),
            name: block.text("name")?.into_owned(),
            arguments: block.get("arguments").map_or_else(|| b"{}".to_vec(), |value| value.raw().to_vec()),
        }),
        _ => None,
    }
}

/// Returns a text that is not empty: providers refuse empty ones, so pi leaves them out.
fn text_piece(text: Value<'_>) -> Option<Piece> {
    let text = text.string().filter(|words| !words.trim().is_empty()).map(|_| text.raw())?;
    Some(Piece::Text(text.to_vec()))
}

/// Words a command that the user ran as pi tells it to the model.
fn shell_text(message: Value<'_>) -> String {
    let text = |key| message.text(key).unwrap_or_default();
    let output = text("output");
    let output = if output.is_empty() { "(no output)".to_owned() } else { format!("```\n{output}\n```") };
    let code = message.get("exitCode").filter(|code| !code.is_null()).map_or(b"0".as_slice(), Value::raw);
    let ended = if message.get("cancelled").is_some_and(Value::is_true) {
        "\n\n(command cancelled)".to_owned()
    } else if code == b"0" {
        String::new()
    } else {
        format!("\n\nCommand exited with code {}", String::from_utf8_lossy(code))
    };
    let rest = match message.text("fullOutputPath") {
        Some(path) if message.get("truncated").is_some_and(Value::is_true) => {
            format!("\n\n[Output truncated. Full output: {path}]")
        }
        _ => String::new(),
    };
    format!("Ran `{}`\n{output}{ended}{rest}", text("command"))
}
