//! Reads what an answer cost. Takes a copy of the answer's bytes as they arrive, streamed or whole; gives the usage that the
//! provider reports. Never holds the answer back, and never keeps more of it than one event.

use std::sync::LazyLock;

use hyper::{HeaderMap, header::CONTENT_TYPE};
use memchr::memmem::Finder;
use trimtab_core::{Format, Usage};

use super::{
    encoding::AnswerDecoder,
    envelope::{Wrapping, unwrap_answer},
    event_stream::EventStream,
};

/// The longest event or answer that is read: a Responses stream ends in an event that holds the whole answer.
const LONGEST: usize = 32 * 1024 * 1024;

/// What is looked for in every event: made once, and not for each.
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage"));
static TOO_LONG: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"context_length_exceeded\""));

/// Reads one answer.
pub(crate) struct UsageReader {
    format: Format,
    decoder: AnswerDecoder,
    events: EventReader,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UsageReading {
    pub(crate) usage: Option<Usage>,
    /// Whether the answer is that the request is too long.
    pub(crate) too_long: bool,
}

struct EventReader {
    framing: AnswerFraming,
    /// Whether answers stand in others.
    are_wrapped: bool,
    /// The line, or the answer, as far as it has come.
    open: Vec<u8>,
    lost: bool,
    reading: UsageReading,
}

/// What parts an answer into events.
enum AnswerFraming {
    /// Nothing: it is one.
    Whole,
    /// Lines of text.
    Lines,
    /// Messages of Bedrock's.
    Messages(EventStream),
}

impl UsageReader {
    pub(crate) fn new(format: Format, wrapping: Wrapping, headers: &HeaderMap) -> UsageReader {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let framing = if kind.starts_with("text/event-stream") {
            AnswerFraming::Lines
        } else if kind.starts_with("application/vnd.amazon.eventstream") {
            AnswerFraming::Messages(EventStream::default())
        } else {
            AnswerFraming::Whole
        };
        let events = EventReader {
            framing,
            are_wrapped: matches!(wrapping, Wrapping::Always(_)),
            open: Vec::new(),
            lost: false,
            reading: UsageReading::default(),
        };
        UsageReader { format, decoder: AnswerDecoder::from_headers(headers), events }
    }

    /// Looks at the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let UsageReader { format, decoder, events } = self;
        decoder.feed(bytes, |decoded| events.feed(*format, decoded));
    }

    /// Returns what was read, after the last byte.
    pub(crate) fn finish(&mut self) -> UsageReading {
        let open = std::mem::take(&mut self.events.open);
        self.events.read(self.format, &open);
        self.events.reading
    }
}

impl EventReader {
    fn feed(&mut self, format: Format, mut bytes: &[u8]) {
        if let AnswerFraming::Messages(stream) = &mut self.framing {
            let mut stream = std::mem::take(stream);
            stream.feed(bytes, LONGEST, |event| self.read_event(format, event));
            self.framing = AnswerFraming::Messages(stream);
            return;
        }
        while matches!(self.framing, AnswerFraming::Lines)
            && let Some(end) = memchr::memchr(b'\n', bytes)
        {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            let mut whole = std::mem::take(&mut self.open);
            if whole.is_empty() {
                self.read(format, line);
            } else if !self.lost {
                whole.extend_from_slice(line);
                self.read(format, &whole);
            }
            self.lost = false;
        }
        if self.open.len() + bytes.len() > LONGEST {
            self.lost = true;
            self.open.clear();
        }
        if !self.lost {
            self.open.extend_from_slice(bytes);
        }
    }

    /// Reads a line of a stream, or a whole answer.
    fn read(&mut self, format: Format, text: &[u8]) {
        match self.framing {
            AnswerFraming::Whole => self.read_event(format, text),
            AnswerFraming::Lines => {
                if let Some(data) = text.strip_prefix(b"data:") {
                    self.read_event(format, data);
                }
            }
            AnswerFraming::Messages(_) => {}
        }
    }

    /// Reads an event. Most hold no report: they are not parsed.
    fn read_event(&mut self, format: Format, data: &[u8]) {
        if TOO_LONG.find(data).is_some() {
            self.reading.too_long = true;
        }
        if USAGE.find(data).is_none() {
            return;
        }
        let data = if self.are_wrapped { unwrap_answer(data) } else { data };
        let Some(usage) = Usage::of_answer(format, data) else { return };
        self.reading.usage = Some(match (format, self.reading.usage) {
            (Format::Anthropic, Some(before)) => before.or_larger(usage),
            (Format::Anthropic | Format::Chat | Format::Responses | Format::Gemini, _) => usage,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{super::event_stream::write_message, *};

    #[track_caller]
    fn check(format: Format, streamed: bool, answer: &str, expected: Option<[u64; 4]>) {
        let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
        check_kind(format, Wrapping::None, kind, answer.as_bytes(), expected);
    }

    #[track_caller]
    fn check_kind(format: Format, wrapping: Wrapping, kind: &str, answer: &[u8], expected: Option<[u64; 4]>) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        for size in [1, 7, 100_000] {
            let mut reader = UsageReader::new(format, wrapping, &headers);
            answer.chunks(size).for_each(|bytes| reader.feed(bytes));
            let usage = reader.finish().usage;
            let found = usage.map(|usage| [usage.input, usage.cache_read, usage.cache_write, usage.output]);
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn anthropic_reports_at_both_ends_of_a_stream() {
        let stream = "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":20,\"output_tokens\":1}}}\r\n\r\n\
            event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"about \\\"usage\\\"\"}}\n\n\
            event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":45}}\n\n";
        check(Format::Anthropic, true, stream, Some([3, 100, 20, 45]));
        check(
            Format::Anthropic,
            false,
            r#"{"usage":{"input_tokens":9,"output_tokens":2}}"#,
            Some([9, 0, 0, 2]),
        );
    }

    #[test]
    fn chat_reports_in_the_last_chunk() {
        let stream = "data: {\"choices\":[],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\ndata: [DONE]\n\n";
        check(Format::Chat, true, stream, Some([36, 64, 0, 7]));
    }

    #[test]
    fn responses_report_when_they_are_completed() {
        let stream = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":50,\"output_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":40}}}}\n\n";
        check(Format::Responses, true, stream, Some([10, 40, 0, 5]));
    }

    #[test]
    fn gemini_reports_in_every_chunk() {
        let stream = "data: {\"usageMetadata\":{\"promptTokenCount\":30,\"candidatesTokenCount\":1}}\r\n\r\ndata: {\"usageMetadata\":{\"promptTokenCount\":30,\"cachedContentTokenCount\":10,\"candidatesTokenCount\":4,\"thoughtsTokenCount\":6}}\r\n\r\n";
        check(Format::Gemini, true, stream, Some([20, 10, 0, 10]));
        let list =
            r#"[{"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":1}},{"candidates":[]}]"#;
        check(Format::Gemini, false, list, Some([30, 0, 0, 1]));
    }

    #[test]
    fn code_assist_reports_in_an_envelope() {
        let wrapped = Wrapping::Always("request");
        let answer = r#"{"response":{"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":4}},"traceId":"t"}"#;
        check_kind(Format::Gemini, wrapped, "application/json", answer.as_bytes(), Some([30, 0, 0, 4]));
        let stream = format!("data: {answer}\r\n\r\n");
        check_kind(Format::Gemini, wrapped, "text/event-stream", stream.as_bytes(), Some([30, 0, 0, 4]));
    }

    #[test]
    fn bedrock_reports_at_both_ends_of_its_own_stream() {
        let stream = [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
            r#"{"type":"content_block_delta","delta":{"text":"words"}}"#,
            r#"{"type":"message_delta","usage":{"output_tokens":45}}"#,
        ]
        .map(write_message)
        .concat();
        let kind = "application/vnd.amazon.eventstream";
        check_kind(Format::Anthropic, Wrapping::None, kind, &stream, Some([3, 100, 0, 45]));
    }

    #[test]
    fn an_answer_without_a_report_has_no_usage() {
        check(Format::Chat, true, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", None);
        check(Format::Anthropic, false, "usage", None);
    }
}
