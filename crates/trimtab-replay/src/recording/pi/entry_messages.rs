//! What pi tells the model. Takes one entry of a session; gives the message that it becomes, in pi's words.
//! Never tells what the user kept from the model.

use trimtab_core::{
    Format,
    json::{Value, scan},
};

use super::{PiEntry, PiModel, broke_off};
use crate::recording::plain_messages::{CallOutput, MessagePart, PlainMessage};

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
pub(super) fn entry_message(entry: &PiEntry<'_>, speaker: &PiModel) -> Option<PlainMessage> {
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
            let pieces =
                message.items_of("content").filter_map(|block| answer_piece(block, own, speaker.format));
            Some(PlainMessage::Assistant(pieces.collect())).filter(has_pieces)
        }
        Some("toolResult") => Some(PlainMessage::Results(vec![CallOutput {
            call: plain_id(&message.text("toolCallId")?),
            failed: message.is_flag_set("isError"),
            pieces: message.items_of("content").filter_map(told_piece).collect(),
        }])),
        Some("bashExecution") if message.is_flag_set("excludeFromContext") => None,
        Some("bashExecution") => Some(user_text(&shell_text(message))),
        Some("user" | "custom" | "hookMessage") | None => {
            let bare = MessagePart::from_text(message.get("content"));
            let pieces = message.items_of("content").filter_map(told_piece).chain(bare);
            Some(PlainMessage::User(pieces.collect())).filter(has_pieces)
        }
        Some(_) => None,
    }
}

fn has_pieces(said: &PlainMessage) -> bool {
    !matches!(said, PlainMessage::User(pieces) | PlainMessage::Assistant(pieces) if pieces.is_empty())
}

/// Returns a call's id without the item's id that pi joins to it.
fn plain_id(id: &str) -> String {
    id.split('|').next().unwrap_or(id).to_owned()
}

fn user_text(text: &str) -> PlainMessage {
    PlainMessage::User(vec![MessagePart::from_words(text)])
}

/// Reads a piece of the model's input.
fn told_piece(block: Value<'_>) -> Option<MessagePart> {
    match block.text("type").as_deref() {
        Some("text") => text_piece(block.get("text")?),
        Some("image") => {
            let (mime, data) = (block.owned_text("mimeType")?, block.text("data")?);
            let url = format!("data:{mime};base64,{data}");
            Some(MessagePart::Media { mime, url })
        }
        _ => None,
    }
}

/// Reads a piece of an answer. `own` tells that the model it goes back to gave it.
fn answer_piece(block: Value<'_>, own: bool, format: Format) -> Option<MessagePart> {
    match block.text("type").as_deref() {
        Some("text") => text_piece(block.get("text")?),
        Some("thinking") => {
            let signature = block.text("thinkingSignature").filter(|signature| {
                own && !signature.trim().is_empty() && !is_broken_item(signature, format)
            });
            // For Chat the signature is the name of the field that the thought came in.
            let signature = signature.filter(|_| format != Format::Chat).map(std::borrow::Cow::into_owned);
            if block.is_flag_set("redacted") {
                return signature.map(MessagePart::Sealed);
            }
            let text = block.get("thinking").filter(|text| text.is_string())?;
            let empty = text.string().is_none_or(|text| text.trim().is_empty());
            if empty && signature.is_none() {
                return None;
            }
            // Anthropic refuses thinking that is not signed, so pi sends it as text.
            let refused = format == Format::Anthropic && signature.is_none();
            if own && !refused {
                Some(MessagePart::Thinking { text: text.raw().to_vec(), signature })
            } else {
                text_piece(text)
            }
        }
        Some("toolCall") => Some(MessagePart::Call {
            id: plain_id(&block.text("id").unwrap_or_default()),
            name: block.owned_text("name").unwrap_or_default(),
            arguments: block.get("arguments").map_or_else(|| b"{}".to_vec(), |value| value.raw().to_vec()),
        }),
        _ => None,
    }
}

/// Tells a signature that cannot be sent. For Responses it is the whole reasoning item, in JSON.
fn is_broken_item(signature: &str, format: Format) -> bool {
    let json = signature.as_bytes();
    let is_item = || {
        let tape = scan(json).ok()?;
        Some(tape.root(json)?.member_is("type", "reasoning"))
    };
    format == Format::Responses && signature.starts_with('{') && is_item() != Some(true)
}

/// Counts the signatures of an entry that are left out because they cannot be sent.
pub(super) fn broken_signatures(entry: &PiEntry<'_>, speaker: &PiModel) -> usize {
    let blocks = entry.answer().into_iter().flat_map(|answer| answer.items_of("content"));
    let signatures = blocks.filter_map(|block| block.text("thinkingSignature"));
    signatures.filter(|signature| is_broken_item(signature, speaker.format)).count()
}

/// Returns a text that is not empty: providers refuse empty ones, so pi leaves them out.
fn text_piece(text: Value<'_>) -> Option<MessagePart> {
    text.string().filter(|words| !words.trim().is_empty())?;
    MessagePart::from_text(Some(text))
}

/// Words a command that the user ran as pi tells it to the model.
fn shell_text(message: Value<'_>) -> String {
    let text = |key| message.text(key).unwrap_or_default();
    let output = text("output");
    let output = if output.is_empty() { "(no output)".to_owned() } else { format!("```\n{output}\n```") };
    let code = message.get("exitCode").filter(|code| !code.is_null()).map_or(b"0".as_slice(), Value::raw);
    let ended = if message.is_flag_set("cancelled") {
        "\n\n(command cancelled)".to_owned()
    } else if code == b"0" {
        String::new()
    } else {
        format!("\n\nCommand exited with code {}", String::from_utf8_lossy(code))
    };
    let rest = match message.text("fullOutputPath") {
        Some(path) if message.is_flag_set("truncated") => {
            format!("\n\n[Output truncated. Full output: {path}]")
        }
        _ => String::new(),
    };
    format!("Ran `{}`\n{output}{ended}{rest}", text("command"))
}
