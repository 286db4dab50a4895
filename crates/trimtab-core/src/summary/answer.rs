//! What an endpoint answered. Takes the bytes of a reply in any of the four formats; gives the text, how it ended and what was
//! used. Never judges the text: that is the check's.

use crate::{
    history::Format,
    json::{JsonError, Value, scan},
    usage::{Usage, in_answer},
};

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnding {
    /// The model had said what it wanted to say.
    Finished,
    /// It was cut off at a limit.
    CutOff,
    /// The model or a filter refused.
    Refused,
    /// Nothing tells.
    Unknown,
}

/// An answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryAnswer {
    /// What was said.
    pub text: String,
    /// How it ended.
    pub ending: AnswerEnding,
    /// What the provider reports to have used.
    pub usage: Option<Usage>,
}

impl SummaryAnswer {
    /// Makes an answer of a text of which nothing else is known, as a person or another program wrote it.
    pub fn of_text(text: &str) -> SummaryAnswer {
        SummaryAnswer { text: text.to_owned(), ending: AnswerEnding::Unknown, usage: None }
    }
}

/// A reply that is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is not JSON.
    #[error("the endpoint's reply is not JSON: {0}")]
    Json(#[from] JsonError),
    /// It is JSON of another kind.
    #[error(
        "the endpoint's reply holds no answer: neither `content` (Anthropic), `choices` (OpenAI Chat), `output` (OpenAI Responses) \
         nor `candidates` (Gemini)"
    )]
    NoAnswer,
}

/// Reads a reply.
///
/// # Errors
/// Says what is wrong where the bytes are no reply.
pub fn read_answer(reply: &[u8]) -> Result<SummaryAnswer, AnswerError> {
    let tape = scan(reply)?;
    let root = tape.root(reply).ok_or(AnswerError::NoAnswer)?;
    let read = parse_anthropic(root)
        .or_else(|| parse_chat(root))
        .or_else(|| parse_responses(root))
        .or_else(|| parse_gemini(root));
    read.ok_or(AnswerError::NoAnswer)
}

fn parse_anthropic(root: Value<'_>) -> Option<SummaryAnswer> {
    let content = root.get("content").filter(|content| content.is_array())?;
    let texts: Vec<_> = content
        .items()
        .filter(|block| block.member_is("type", "text"))
        .filter_map(|block| block.text("text"))
        .collect();
    let ending = match root.text("stop_reason").as_deref() {
        Some("end_turn" | "stop_sequence") => AnswerEnding::Finished,
        Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => AnswerEnding::CutOff,
        Some("refusal") => AnswerEnding::Refused,
        _ => AnswerEnding::Unknown,
    };
    let usage = in_answer(Format::Anthropic, root);
    Some(SummaryAnswer { text: texts.concat(), ending, usage })
}

fn parse_chat(root: Value<'_>) -> Option<SummaryAnswer> {
    let choice = root.get("choices").filter(|choices| choices.is_array())?.items().next()?;
    let message = choice.get("message")?;
    let refusal = message.get("refusal").is_some_and(Value::is_string);
    let ending = match choice.text("finish_reason").as_deref() {
        _ if refusal => AnswerEnding::Refused,
        Some("stop" | "eos") => AnswerEnding::Finished,
        Some("length") => AnswerEnding::CutOff,
        Some("content_filter") => AnswerEnding::Refused,
        _ => AnswerEnding::Unknown,
    };
    let usage = in_answer(Format::Chat, root);
    Some(SummaryAnswer { text: message.text("content").unwrap_or_default().into_owned(), ending, usage })
}

fn parse_responses(root: Value<'_>) -> Option<SummaryAnswer> {
    let output = root.get("output").filter(|output| output.is_array())?;
    let messages: Vec<Value<'_>> = output.items().filter(|item| item.member_is("type", "message")).collect();
    let parts = messages.iter().filter_map(|message| message.get("content")).flat_map(Value::items);
    let parts: Vec<Value<'_>> = parts.collect();
    let refused = parts.iter().any(|part| part.member_is("type", "refusal"));
    let texts: Vec<_> = parts
        .iter()
        .filter(|part| part.member_is("type", "output_text"))
        .filter_map(|part| part.text("text"))
        .collect();
    let filtered = root.path(&["incomplete_details", "reason"]).is_some_and(|why| why.is("content_filter"));
    let ending = match root.text("status").as_deref() {
        _ if refused || filtered => AnswerEnding::Refused,
        Some("completed") => AnswerEnding::Finished,
        Some("incomplete") => AnswerEnding::CutOff,
        _ => AnswerEnding::Unknown,
    };
    let usage = in_answer(Format::Responses, root);
    Some(SummaryAnswer { text: texts.concat(), ending, usage })
}

fn parse_gemini(root: Value<'_>) -> Option<SummaryAnswer> {
    let candidate = root.get("candidates").filter(|all| all.is_array())?.items().next()?;
    let parts = candidate.path(&["content", "parts"]).filter(|parts| parts.is_array());
    let texts: Vec<_> = parts
        .into_iter()
        .flat_map(Value::items)
        .filter(|part| !part.is_flag_set("thought"))
        .filter_map(|part| part.text("text"))
        .collect();
    let ending = match candidate.text("finishReason").as_deref() {
        Some("STOP") => AnswerEnding::Finished,
        Some("MAX_TOKENS") => AnswerEnding::CutOff,
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => AnswerEnding::Refused,
        _ => AnswerEnding::Unknown,
    };
    let usage = in_answer(Format::Gemini, root);
    Some(SummaryAnswer { text: texts.concat(), ending, usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, text: &str, ending: AnswerEnding, used: Option<(u64, u64)>) {
        let answer = read_answer(reply.as_bytes()).expect(reply);
        let usage = answer.usage.map(|usage| (usage.input, usage.output));
        assert_eq!((answer.text.as_str(), answer.ending, usage), (text, ending, used), "{reply}");
    }

    #[test]
    fn replies_of_all_formats_are_read() {
        check(
            r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Three."}]}],
                "status":"completed","usage":{"input_tokens":8,"output_tokens":2,"input_tokens_details":{"cached_tokens":3}}}"#,
            "Three.",
            AnswerEnding::Finished,
            Some((5, 2)),
        );
        check(
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"Four."}]},"finishReason":"MAX_TOKENS"}],
                "usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2}}"#,
            "Four.",
            AnswerEnding::CutOff,
            Some((7, 2)),
        );
        check(
            r#"{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"One."}],"stop_reason":"end_turn",
                "usage":{"input_tokens":10,"output_tokens":3}}"#,
            "One.",
            AnswerEnding::Finished,
            Some((10, 3)),
        );
        check(
            r#"{"choices":[{"message":{"content":"Two."},"finish_reason":"length"}],
                "usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            "Two.",
            AnswerEnding::CutOff,
            Some((5, 2)),
        );
        check(
            r#"{"choices":[{"message":{"content":null,"refusal":"No."}}]}"#,
            "",
            AnswerEnding::Refused,
            None,
        );
    }

    #[test]
    fn anything_else_is_no_answer() {
        assert!(matches!(read_answer(b"<html>"), Err(AnswerError::Json(_))));
        assert_eq!(read_answer(br#"{"error":{"message":"no"}}"#), Err(AnswerError::NoAnswer));
    }
}
