//! Codex rollouts: JSON lines of Responses items. Takes the lines, of old versions too (items without a
//! `payload` around them); gives a segment for the session, one after each compaction and each rollback.
//! Items are copied as they stand, less what codex notes for itself. Tools are not recorded; usage tells their size.

use trimtab_core::{
    Format, Millis,
    json::{Array, Object, Value},
    usage,
};

use super::{
    RecordingReader, SegmentStart, chat,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    plain_messages::quote_text,
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "codex", about: "Codex rollout (JSON lines)", fits, read };

/// Keys that codex adds to items for itself; the model does not see them.
const NOTES: [&str; 4] =
    ["internal_chat_message_metadata_passthrough", "metadata", "timestamp", "record_type"];

/// Items that codex keeps but does not send.
const UNSENT: [&str; 2] = ["ghost_snapshot", "other"];

/// How the messages begin that codex puts in the user's place.
const NOT_THE_USER: [&str; 6] = [
    "<user_instructions>", "<environment_context>", "# AGENTS.md instructions", "<turn_aborted>",
    "<user_shell_command>", "<skill>",
];

/// What codex puts in the place of an output that never came.
const ABORTED: &str = "aborted";

/// The types of lines that hold something else in their `payload`.
const ENVELOPES: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];

fn fits(source: &RecordingSource<'_>) -> bool {
    let is_line = |line: Value<'_>| {
        let named = line.text("type").is_some_and(|kind| ENVELOPES.contains(&kind.as_ref()));
        named && line.get("payload").is_some_and(Value::is_object)
    };
    source.any_of_first(|line| is_line(line) || is_old_head(line))
}

/// Tells the first line of an old rollout: neither a type nor messages, but the session's id and instructions.
fn is_old_head(line: Value<'_>) -> bool {
    let is_state = line.member_is("record_type", "state");
    let is_head = ["id", "timestamp", "instructions"].iter().all(|key| line.get(key).is_some());
    is_state || (is_head && line.get("type").is_none())
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let counted = source.values().any(|(_, line)| total_of(line).is_some());
    let mut rollout = CodexRollout::new(counted);
    for (number, line) in source.values() {
        let payload = line.get("payload");
        match (line.text("type").as_deref(), payload) {
            (Some("session_meta"), Some(meta)) => rollout.read_head(meta),
            (Some("turn_context"), Some(context)) => rollout.read_context(context),
            (Some("compacted"), Some(compaction)) => rollout.read_compaction(line, compaction, number, draft),
            (Some("event_msg"), Some(event)) => rollout.read_event(line, event, number, draft),
            (Some("response_item"), Some(item)) => rollout.read_item(line, item, number, draft),
            (Some(kind), None) if ENVELOPES.contains(&kind) => {
                draft.add_problem(number, format!("a `{kind}` without a `payload`"));
            }
            (Some(_), None) => rollout.read_item(line, line, number, draft),
            (Some(_), Some(_)) => {}
            (None, _) if is_old_head(line) => {}
            (None, _) => draft.add_problem(number, "expected a line with a `type`"),
        }
    }
    draft.add_segment(rollout.segment);
}

struct CodexRollout {
    segment: SegmentDraft,
    model: Option<String>,
    /// When the last item that goes into a request was written: then the request was sent.
    sent: Option<Millis>,
    /// Whether the file reports usage. It then tells where an answer ends, else the first output does.
    counted: bool,
    /// Whether the answer to the last request may still go on.
    answering: bool,
    /// Calls of the last answer without an output: the place after them, their ids and kinds.
    open: Vec<(usize, String, &'static str)>,
    /// The session's usage so far, as reported.
    total: Option<Vec<u8>>,
    begun: bool,
}

impl CodexRollout {
    fn new(counted: bool) -> CodexRollout {
        CodexRollout {
            segment: SegmentDraft::new(SegmentStart::Session, Format::Responses, 1),
            model: None,
            sent: None,
            counted,
            answering: false,
            open: Vec::new(),
            total: None,
            begun: false,
        }
    }

    /// Reads the head of the session. A forked session carries the heads of its ancestors after its own.
    fn read_head(&mut self, meta: Value<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let instructions = meta.get("base_instructions");
        let text = instructions.and_then(|value| value.get("text")).or(instructions);
        if let Some(text) = text.filter(|text| text.is_string()) {
            self.segment.head.push(("instructions", text.raw().to_vec()));
        }
        if meta.path(&["source", "subagent"]).is_some() {
            self.segment.start = SegmentStart::SubAgent;
            self.segment.name = meta.text("agent_nickname").map(|name| format!("agent {name}"));
        }
    }

    fn read_context(&mut self, context: Value<'_>) {
        self.answering = false;
        self.model = context.owned_text("model").or(self.model.take());
    }

    fn read_item(&mut self, line: Value<'_>, item: Value<'_>, number: usize, draft: &mut RecordingDraft) {
        let Some(kind) = item.text("type") else {
            draft.add_problem(number, "an item without a `type`");
            return;
        };
        if UNSENT.contains(&kind.as_ref()) {
            return;
        }
        if by_model(item) {
            self.record_request();
        } else {
            let ends = !self.counted || kind == "message";
            self.answering &= !ends;
            self.sent = parse_time(line.get("timestamp")).or(self.sent);
        }
        if let Some(id) = item.text("call_id") {
            match output_of(&kind) {
                Some(output) => self.open.push((self.segment.messages.len() + 1, id.into_owned(), output)),
                None => self.open.retain(|(_, open, _)| *open != id),
            }
        }
        self.segment.messages.push(sent_form(item));
    }

    /// Notes that the model speaks: a request was made, unless this is another item of the same answer.
    fn record_request(&mut self) {
        if std::mem::replace(&mut self.answering, true) {
            return;
        }
        for (place, id, output) in self.open.drain(..).rev() {
            let item = Object::new().text("type", output).text("call_id", &id).text("output", ABORTED);
            self.segment.messages.insert(place, item.end());
        }
        self.segment.add_point(self.sent, self.model.as_deref().map(Into::into));
    }

    fn read_event(&mut self, line: Value<'_>, event: Value<'_>, number: usize, draft: &mut RecordingDraft) {
        match event.text("type").as_deref() {
            Some("token_count") => self.record_usage(line),
            Some("turn_aborted" | "task_started" | "task_complete") => self.answering = false,
            Some("thread_rolled_back") => {
                let turns = event.get("num_turns").and_then(Value::number).unwrap_or_default();
                self.roll_back(usize::try_from(turns).unwrap_or(usize::MAX), number, draft);
            }
            _ => {}
        }
    }

    /// Takes the usage of the request just answered. A report that repeats the last total is about none.
    fn record_usage(&mut self, line: Value<'_>) {
        let Some(total) = total_of(line) else { return };
        if self.total.as_deref() == Some(total.raw()) {
            return;
        }
        self.total = Some(total.raw().to_vec());
        self.answering = false;
        let Some(point) = self.segment.points.last_mut().filter(|point| point.usage.is_none()) else {
            return;
        };
        point.usage = usage::parse_openai(line.path(&["payload", "info", "last_token_usage"]));
    }

    fn read_compaction(
        &mut self,
        line: Value<'_>,
        compaction: Value<'_>,
        number: usize,
        draft: &mut RecordingDraft,
    ) {
        let before = self.begin_segment(SegmentStart::Compaction, number, draft);
        self.sent = parse_time(line.get("timestamp")).or(self.sent);
        if let Some(history) = compaction.get("replacement_history").filter(|history| history.is_array()) {
            self.segment.messages = history.items().map(sent_form).collect();
            return;
        }
        // Old versions note the summary alone: codex keeps the user's words and puts the summary after them.
        self.segment.messages = before.into_iter().filter(|item| ask_written(item, is_told)).collect();
        let summary = compaction.get("message").map_or_else(|| quote_text(""), |text| text.raw().to_vec());
        self.segment.messages.push(user_message(&summary));
    }

    /// Takes back the last turns of the user, as codex does when the user goes back.
    fn roll_back(&mut self, turns: usize, number: usize, draft: &mut RecordingDraft) {
        let mut kept = self.begin_segment(SegmentStart::Branch, number, draft);
        let prompts: Vec<usize> = (0..kept.len()).filter(|at| with_at(&kept, *at, is_prompt)).collect();
        let first = prompts.len().saturating_sub(turns);
        kept.truncate(prompts.get(first).copied().unwrap_or(kept.len()));
        self.segment.messages = kept;
    }

    /// Closes the segment so far and begins another one; returns the messages so far.
    fn begin_segment(
        &mut self,
        start: SegmentStart,
        line: usize,
        draft: &mut RecordingDraft,
    ) -> Vec<Vec<u8>> {
        let ended = self.segment.next(start, line);
        let messages = ended.messages.clone();
        draft.add_segment(ended);
        self.answering = false;
        self.open.clear();
        messages
    }
}

fn total_of(line: Value<'_>) -> Option<Value<'_>> {
    line.path(&["payload", "info", "total_token_usage"])
}

fn by_model(item: Value<'_>) -> bool {
    match item.text("type").as_deref() {
        Some("message") => item.member_is("role", "assistant"),
        Some(kind) => kind == "reasoning" || kind == "compaction" || kind.ends_with("_call"),
        None => false,
    }
}

/// Returns the type of the output that a call of this type waits for.
fn output_of(kind: &str) -> Option<&'static str> {
    match kind {
        "custom_tool_call" => Some("custom_tool_call_output"),
        "tool_search_call" => Some("tool_search_output"),
        kind if kind.ends_with("_call") => Some("function_call_output"),
        _ => None,
    }
}

/// Copies an item without what codex notes for itself.
fn sent_form(item: Value<'_>) -> Vec<u8> {
    chat::copy_members(item, |key| !NOTES.contains(&key))
}

fn user_message(text: &[u8]) -> Vec<u8> {
    let part = Object::new().text("type", "input_text").raw("text", text).end();
    let message = Object::new().text("type", "message").text("role", "user");
    message.raw("content", &Array::new().raw(&part).end()).end()
}

/// Tells whether an item was said to the model, by the user or by codex.
fn is_told(item: Value<'_>) -> bool {
    item.member_is("type", "message") && !by_model(item)
}

/// Tells whether an item is what the user typed.
fn is_prompt(item: Value<'_>) -> bool {
    let text = item.get("content").and_then(|content| content.items().next()?.text("text"));
    let typed = text.is_none_or(|text| !NOT_THE_USER.iter().any(|start| text.starts_with(start)));
    is_told(item) && item.member_is("role", "user") && typed
}

/// Asks about an item that was written before.
fn ask_written(item: &[u8], ask: fn(Value<'_>) -> bool) -> bool {
    trimtab_core::json::scan(item).ok().and_then(|tape| tape.root(item).map(ask)).unwrap_or(false)
}

fn with_at(items: &[Vec<u8>], at: usize, ask: fn(Value<'_>) -> bool) -> bool {
    items.get(at).is_some_and(|item| ask_written(item, ask))
}

#[cfg(test)]
mod tests;
