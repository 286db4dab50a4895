//! Copilot CLI events: JSON lines. Takes the events; gives a segment for the session, one after each
//! compaction and one for each sub-agent. They are written as Chat: the file keeps messages in another shape
//! and does not tell by which wire a model was reached. Never reads hooks; tools are not recorded.

use std::borrow::Cow;

use trimtab_core::{Format, Millis, json::Value, usage};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    plain_messages::{
        CallOutput, JsonText, MessagePart, PlainMessage, RequestMark, add_result, fill_segment,
    },
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "copilot-cli", about: "Copilot CLI session events (JSON lines)", fits, read };

fn fits(source: &RecordingSource<'_>) -> bool {
    let kinds =
        ["session.start", "user.message", "assistant.message", "assistant.turn_start", "system.message"];
    source.any_of_first(|line| {
        let named = line.text("type").is_some_and(|kind| kinds.contains(&kind.as_ref()));
        named && line.get("data").is_some_and(Value::is_object)
    })
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let mut threads = vec![CopilotThread::new(SegmentStart::Session, 1)];
    for (number, line) in source.values() {
        let (Some(kind), Some(data)) = (line.text("type"), line.get("data")) else {
            draft.add_problem(number, "expected an event with `type` and `data`");
            continue;
        };
        // Sub-agents are named by the call that started them, in new versions by a separate id too.
        let names = [line.text("agentId"), data.text("parentToolCallId")];
        let starts = kind == "subagent.started";
        let call = data.text("toolCallId").filter(|_| starts);
        let index = thread_of(names.into_iter().chain([call]).flatten(), number, &mut threads);
        let Some(thread) = threads.get_mut(index) else { continue };
        if starts {
            let name = data.text("agentName").or_else(|| data.text("agentDisplayName"));
            thread.segment.name = name.map(|name| format!("agent {name}")).or(thread.segment.name.take());
        } else {
            thread.read_event(&kind, line, data, number, draft);
        }
    }
    threads.into_iter().for_each(|thread| thread.close_segment(draft));
}

/// Finds the thread of an agent; a new one begins with the prompt of the call that started it.
fn thread_of<'a>(
    names: impl Iterator<Item = Cow<'a, str>>,
    line: usize,
    threads: &mut Vec<CopilotThread>,
) -> usize {
    let names: Vec<String> = names.map(Cow::into_owned).collect();
    if names.is_empty() {
        return 0;
    }
    if let Some(known) =
        threads.iter().position(|thread| thread.names.iter().any(|name| names.contains(name)))
    {
        return known;
    }
    let mut thread = CopilotThread::new(SegmentStart::SubAgent, line);
    thread.segment.name = names.first().map(|name| format!("agent {name}"));
    let prompt = names.iter().find_map(|name| threads.iter().find_map(|thread| thread.prompt_of(name)));
    thread.said.extend(prompt.map(|prompt| PlainMessage::User(vec![prompt])));
    thread.names = names;
    threads.push(thread);
    threads.len() - 1
}

/// One line of conversation, as far as it has been read.
struct CopilotThread {
    /// The names of its agent; none for the session itself.
    names: Vec<String>,
    segment: SegmentDraft,
    said: Vec<PlainMessage>,
    asked: Vec<RequestMark>,
    /// The last answer: the model's call that gave it, and its place.
    answer: Option<(String, usize)>,
    model: Option<String>,
    /// When the last request was sent: when its turn began, else when the last line that goes into it was written.
    sent: Option<Millis>,
}

impl CopilotThread {
    fn new(start: SegmentStart, line: usize) -> CopilotThread {
        let segment = SegmentDraft::new(start, Format::Chat, line);
        let (names, said) = (Vec::new(), Vec::new());
        CopilotThread { names, segment, said, asked: Vec::new(), answer: None, model: None, sent: None }
    }

    fn read_event(
        &mut self,
        kind: &str,
        line: Value<'_>,
        data: Value<'_>,
        number: usize,
        draft: &mut RecordingDraft,
    ) {
        let at = parse_time(line.get("timestamp"));
        match kind {
            "session.start" => self.model = data.owned_text("selectedModel"),
            "session.model_change" => self.model = data.owned_text("newModel"),
            "system.message" => self.read_system(data),
            "user.message" | "system.notification" => {
                // What the model saw, with the date and the reminders around what the user typed.
                let seen = MessagePart::from_text(data.get("transformedContent"));
                let Some(text) = seen.or_else(|| MessagePart::from_text(data.get("content"))) else {
                    draft.add_problem(number, "a message without `content`");
                    return;
                };
                self.said.push(PlainMessage::User(vec![text]));
                self.sent = at.or(self.sent);
            }
            "assistant.turn_start" => self.sent = at.or(self.sent),
            "assistant.message" => self.read_answer(data),
            "assistant.usage" => {
                if let Some(request) = self.asked.last_mut() {
                    request.usage = usage::cached_within(data, usage::CAMEL_CASE).or(request.usage);
                }
            }
            "tool.execution_complete" => {
                self.read_result(data);
                self.sent = at.or(self.sent);
            }
            "session.compaction_complete" => self.read_compaction(data, number, draft),
            _ => {}
        }
    }

    /// Takes the system prompt. It is noted before each message of the user; the last one counts.
    fn read_system(&mut self, data: Value<'_>) {
        let Some(text) = data.get("content").filter(|text| text.is_string()) else { return };
        let text = PlainMessage::System(text.raw().to_vec());
        match self.said.first_mut() {
            Some(first @ PlainMessage::System(_)) => *first = text,
            Some(_) => {}
            None => self.said.push(text),
        }
    }

    /// Takes an answer, or another part of one: parts name the same call of the model.
    fn read_answer(&mut self, data: Value<'_>) {
        let key = ["apiCallId", "messageId"].iter().find_map(|key| data.owned_text(key));
        let pieces = answer_parts(data);
        let same =
            self.answer.as_ref().filter(|(call, _)| Some(call) == key.as_ref()).map(|(_, place)| *place);
        if let Some(PlainMessage::Assistant(answer)) = same.and_then(|place| self.said.get_mut(place)) {
            answer.extend(pieces);
            return;
        }
        let model = data.owned_text("model").or_else(|| self.model.clone());
        self.asked.push(RequestMark { said: self.said.len(), at: self.sent, model, usage: None });
        self.answer = key.map(|key| (key, self.said.len()));
        self.said.push(PlainMessage::Assistant(pieces));
    }

    /// Takes a result. A command that the user ran answers no call and is not sent as a result.
    fn read_result(&mut self, data: Value<'_>) {
        let Some(call) = data.text("toolCallId") else { return };
        if self.arguments_of(&call).is_none() {
            return;
        }
        let failed = data.get("success").is_some_and(|success| !success.is_true());
        let texts = [["result", "content"], ["error", "message"]];
        let text = MessagePart::from_text(texts.iter().find_map(|path| data.path(path)));
        let result = CallOutput { call: call.into_owned(), failed, pieces: text.into_iter().collect() };
        add_result(&mut self.said, result);
    }

    /// Finds a call by its id.
    fn arguments_of(&self, call: &str) -> Option<&JsonText> {
        let pieces = self.said.iter().rev().flat_map(|said| match said {
            PlainMessage::Assistant(pieces) => pieces.as_slice(),
            PlainMessage::System(_) | PlainMessage::User(_) | PlainMessage::Results(_) => &[],
        });
        pieces.into_iter().find_map(|piece| match piece {
            MessagePart::Call { id, arguments, .. } if id == call => Some(arguments),
            _ => None,
        })
    }

    /// Returns the prompt that a call gives to the agent it starts.
    fn prompt_of(&self, agent: &str) -> Option<MessagePart> {
        let arguments = self.arguments_of(agent)?;
        let tape = trimtab_core::json::scan(arguments).ok()?;
        MessagePart::from_text(tape.root(arguments)?.get("prompt"))
    }

    /// Goes on with the system prompt and the summary, which is all the file tells of what was kept.
    fn read_compaction(&mut self, data: Value<'_>, number: usize, draft: &mut RecordingDraft) {
        let done = data.get("success").is_none_or(Value::is_true);
        let Some(summary) = MessagePart::from_text(data.get("summaryContent").filter(|_| done)) else {
            return;
        };
        let mut ended = self.segment.next(SegmentStart::Compaction, number);
        fill_segment(&mut ended, &self.said, std::mem::take(&mut self.asked));
        draft.add_segment(ended);
        self.said.retain(|said| matches!(said, PlainMessage::System(_)));
        self.said.push(PlainMessage::User(vec![summary]));
        self.answer = None;
    }

    fn close_segment(mut self, draft: &mut RecordingDraft) {
        fill_segment(&mut self.segment, &self.said, self.asked);
        draft.add_segment(self.segment);
    }
}

fn answer_parts(data: Value<'_>) -> Vec<MessagePart> {
    let mut pieces = Vec::new();
    let sealed = data.owned_text("reasoningOpaque").or_else(|| data.owned_text("encryptedContent"));
    match data.get("reasoningText").filter(|text| text.is_string()) {
        Some(text) => pieces.push(MessagePart::Thinking { text: text.raw().to_vec(), signature: sealed }),
        None => pieces.extend(sealed.map(MessagePart::Sealed)),
    }
    pieces.extend(MessagePart::from_text(data.get("content").filter(|text| !text.is(""))));
    pieces.extend(data.items_of("toolRequests").map(|request| MessagePart::Call {
        id: request.owned_text("toolCallId").unwrap_or_default(),
        name: request.owned_text("name").unwrap_or_default(),
        arguments: request.get("arguments").map_or_else(|| b"{}".to_vec(), call_arguments),
    }));
    pieces
}

/// Returns the arguments of a call: a value, or a text that holds one.
fn call_arguments(value: Value<'_>) -> JsonText {
    value.string().map_or_else(|| value.raw().to_vec(), |text| text.into_owned().into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::{check, lines};

    const SYSTEM: &str = r#"{"type":"system.message","data":{"role":"system","content":"Be brief."}}"#;
    const ASK: &str = r#"{"type":"user.message","timestamp":"1970-01-01T00:00:02Z","data":{"content":"Look.","transformedContent":"<date/> Look."}}"#;
    const TURN: &str =
        r#"{"type":"assistant.turn_start","timestamp":"1970-01-01T00:00:03Z","data":{"turnId":"0"}}"#;

    fn answer(fields: &str) -> String {
        format!(r#"{{"type":"assistant.message","timestamp":"1970-01-01T00:00:09Z","data":{{{fields}}}}}"#)
    }

    #[test]
    fn the_model_sees_what_was_made_of_the_users_words() {
        check(
            lines(&[
                SYSTEM,
                ASK,
                TURN,
                &answer(r#""apiCallId":"1","model":"m","content":"Done.","toolRequests":[]"#),
            ]),
            &[
                "copilot-cli", "session, chat", "  system: Be brief.", "  user: <date/> Look.",
                "  assistant: Done.", "  @2 3000ms m",
            ],
        );
    }

    #[test]
    fn parts_of_an_answer_are_joined_and_results_follow() {
        let thought = answer(r#""apiCallId":"1","content":"","reasoningText":"Hm.","reasoningOpaque":"x""#);
        let calls = answer(
            r#""apiCallId":"1","content":"","toolRequests":[{"toolCallId":"a","name":"bash","arguments":{"command":"ls"}},{"toolCallId":"b","name":"view","arguments":{}}]"#,
        );
        check(
            lines(&[
                ASK,
                &thought,
                &calls,
                r#"{"type":"hook.start","data":{"hookType":"postToolUse"}}"#,
                r#"{"type":"tool.execution_complete","timestamp":"1970-01-01T00:00:11Z","data":{"toolCallId":"b","success":false,"error":{"message":"No such file"}}}"#,
                r#"{"type":"tool.execution_complete","timestamp":"1970-01-01T00:00:12Z","data":{"toolCallId":"a","success":true,"result":{"content":"x.rs","detailedContent":"x.rs, longer"}}}"#,
                r#"{"type":"tool.execution_complete","data":{"toolCallId":"z","success":true,"result":{"content":"run by the user"}}}"#,
                r#"{"type":"system.notification","timestamp":"1970-01-01T00:00:13Z","data":{"content":"Shell 1 is done."}}"#,
                &answer(r#""apiCallId":"2","content":"Done.""#),
            ]),
            &[
                "copilot-cli",
                "session, chat",
                "  user: <date/> Look.",
                r#"  assistant: reasoning(Hm.) + bash#a {"command":"ls"} + view#b {}"#,
                "  tool: view#b = No such file",
                "  tool: bash#a = x.rs",
                "  user: Shell 1 is done.",
                "  assistant: Done.",
                "  @1 2000ms",
                "  @5 13000ms",
            ],
        );
    }

    #[test]
    fn a_sub_agent_begins_with_the_prompt_of_its_call() {
        let call = answer(
            r#""apiCallId":"1","content":"","toolRequests":[{"toolCallId":"t","name":"task","arguments":{"prompt":"Find it."}}]"#,
        );
        check(
            lines(&[
                ASK,
                &call,
                r#"{"type":"subagent.started","agentId":"x","data":{"toolCallId":"t","agentName":"explore"}}"#,
                &answer(r#""apiCallId":"2","parentToolCallId":"t","content":"Found.""#),
                r#"{"type":"user.message","agentId":"x","data":{"content":"Go on."}}"#,
                r#"{"type":"tool.execution_complete","data":{"toolCallId":"t","success":true,"result":{"content":"Found."}}}"#,
            ]),
            &[
                "copilot-cli",
                "session, chat",
                "  user: <date/> Look.",
                r#"  assistant: task#t {"prompt":"Find it."}"#,
                "  tool: task#t = Found.",
                "  @1 2000ms",
                "sub-agent (agent explore), chat",
                "  user: Find it.",
                "  assistant: Found.",
                "  user: Go on.",
                "  @1",
            ],
        );
    }

    #[test]
    fn a_compaction_goes_on_with_system_and_summary() {
        check(
            lines(&[
                SYSTEM,
                ASK,
                &answer(r#""apiCallId":"1","content":"Done.""#),
                r#"{"type":"session.compaction_complete","data":{"success":false}}"#,
                r#"{"type":"session.compaction_complete","data":{"success":true,"summaryContent":"In short."}}"#,
                ASK,
                &answer(r#""apiCallId":"2","content":"Again.""#),
            ]),
            &[
                "copilot-cli", "session, chat", "  system: Be brief.", "  user: <date/> Look.",
                "  assistant: Done.", "  @2 2000ms", "compaction, chat", "  system: Be brief.",
                "  user: In short.", "  user: <date/> Look.", "  assistant: Again.", "  @3 2000ms",
            ],
        );
    }

    #[test]
    fn cached_input_is_counted_once_and_a_bad_line_is_listed() {
        check(
            lines(&[
                ASK,
                r#"{"type":"assistant.message","da"#,
                &answer(r#""apiCallId":"1","content":"Done.""#),
                r#"{"type":"assistant.usage","data":{"inputTokens":10,"cacheReadTokens":4,"cacheWriteTokens":2,"outputTokens":3}}"#,
            ]),
            &[
                "copilot-cli",
                "session, chat",
                "  user: <date/> Look.",
                "  assistant: Done.",
                "  @1 2000ms 4+4r+2w>3",
                "line 2: not JSON: it breaks off at column 32, where a closing quote was expected",
            ],
        );
    }
}
