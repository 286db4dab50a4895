//! Claude Code transcripts: JSON lines linked by `parentUuid`. Takes the lines; gives a segment for the session,
//! one after each compaction, one for each rewound branch and one for each sub-agent.
//! System prompt and tools are not recorded; the usage of the requests tells their size.

mod messages;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use trimtab_core::{Format, Millis, json::Value, usage};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};
use messages::ClaudeMessages;

pub(super) const READER: RecordingReader =
    RecordingReader { name: "claude-code", about: "Claude Code transcript (JSON lines)", fits, read };

/// What Claude Code puts in the place of a result it cleared by itself.
const CLEARED: &str = "[Old tool result content cleared]";

fn fits(source: &RecordingSource<'_>) -> bool {
    source.any_of_first(|line| {
        let said = line.member_is("type", "user") || line.member_is("type", "assistant");
        said && line.get("uuid").is_some() && line.path(&["message", "role"]).is_some()
    })
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let mut main = ClaudeThread::new(SegmentStart::Session, 1);
    let mut others: Vec<(String, ClaudeThread)> = Vec::new();
    for (number, line) in source.values() {
        if !line.is_object() {
            draft.add_problem(number, "expected an object");
            continue;
        }
        let progress = line.get("data").filter(|data| data.member_is("type", "agent_progress"));
        if let Some(data) = progress {
            let agent = data.text("agentId").unwrap_or_default().into_owned();
            let Some(message) = data.get("message") else { continue };
            thread_of(agent, number, &mut others).read_line(message, number, draft);
        } else if line.is_flag_set("isSidechain") {
            let agent = side_agent(line, &others);
            thread_of(agent, number, &mut others).read_line(line, number, draft);
        } else {
            main.read_line(line, number, draft);
        }
    }
    main.close_segment(draft);
    others.into_iter().for_each(|(_, thread)| thread.close_segment(draft));
}

/// Names the sub-agent of a line: by its id, else by the first line of its chain.
fn side_agent(line: Value<'_>, others: &[(String, ClaudeThread)]) -> String {
    if let Some(agent) = line.text("agentId") {
        return agent.into_owned();
    }
    let parent = line.text("parentUuid").unwrap_or_default();
    let known = others.iter().find(|(_, thread)| thread.places.contains_key(parent.as_ref()));
    known.map_or_else(|| line.text("uuid").unwrap_or_default().into_owned(), |(agent, _)| agent.clone())
}

fn thread_of(agent: String, line: usize, others: &mut Vec<(String, ClaudeThread)>) -> &mut ClaudeThread {
    let known = others.iter().position(|(name, _)| *name == agent);
    let index = known.unwrap_or(others.len());
    if known.is_none() {
        let mut thread = ClaudeThread::new(SegmentStart::SubAgent, line);
        thread.segment.name = Some(format!("agent {agent}"));
        others.push((agent, thread));
    }
    #[expect(clippy::indexing_slicing, reason = "the index was found or pushed just now")]
    &mut others[index].1
}

/// One line of conversation, as far as it has been read.
struct ClaudeThread {
    segment: SegmentDraft,
    messages: ClaudeMessages,
    /// The message to which each line of the file belongs, or which it follows.
    places: HashMap<String, usize>,
    /// When the last line that goes into a request was written: then the request was sent.
    sent: Option<Millis>,
}

impl ClaudeThread {
    fn new(start: SegmentStart, line: usize) -> ClaudeThread {
        ClaudeThread {
            segment: SegmentDraft::new(start, Format::Anthropic, line),
            messages: ClaudeMessages::default(),
            places: HashMap::new(),
            sent: None,
        }
    }

    fn read_line(&mut self, line: Value<'_>, number: usize, draft: &mut RecordingDraft) {
        let place = match line.text("type").as_deref() {
            Some("user") => self.read_user(line, number, draft),
            Some("assistant") => self.read_answer(line, number, draft),
            Some("system") => self.read_system(line, number, draft),
            // Progress, snapshots, titles: nothing the model saw, but lines hang on them.
            _ => None,
        };
        let place = place.or_else(|| self.place_of(line)).or(self.messages.len().checked_sub(1));
        if let (Some(uuid), Some(place)) = (line.text("uuid"), place) {
            self.places.insert(uuid.into_owned(), place);
        }
    }

    fn place_of(&self, line: Value<'_>) -> Option<usize> {
        self.places.get(line.text("parentUuid")?.as_ref()).copied()
    }

    fn read_user(&mut self, line: Value<'_>, number: usize, draft: &mut RecordingDraft) -> Option<usize> {
        let Some(content) = message_content(line) else {
            draft.add_problem(number, "a user line without `message.content`");
            return None;
        };
        self.branch_if_rewound(line, number, draft);
        self.sent = parse_time(line.get("timestamp")).or(self.sent);
        Some(self.messages.add_user(content))
    }

    fn read_answer(&mut self, line: Value<'_>, number: usize, draft: &mut RecordingDraft) -> Option<usize> {
        let message = line.get("message")?;
        let made_up = message.member_is("model", "<synthetic>");
        if made_up || line.is_flag_set("isApiErrorMessage") {
            return None;
        }
        let Some(content) = message_content(line) else {
            draft.add_problem(number, "an assistant line without `message.content`");
            return None;
        };
        let before = self.messages.len();
        let id = message.owned_text("id");
        let (place, new) = self.messages.add_answer(id, content);
        if new {
            let at = self.sent.or_else(|| parse_time(line.get("timestamp")));
            self.segment.add_point(at, message.text("model")).messages = before;
        }
        if let Some(point) = self.segment.points.iter_mut().rfind(|point| point.messages == place) {
            point.usage = usage::parse_anthropic(message.get("usage")).or(point.usage);
        }
        Some(place)
    }

    fn read_system(&mut self, line: Value<'_>, number: usize, draft: &mut RecordingDraft) -> Option<usize> {
        match line.text("subtype").as_deref() {
            Some("compact_boundary") => {
                self.begin_segment(SegmentStart::Compaction, number, draft);
                self.messages = ClaudeMessages::default();
                self.places.clear();
            }
            Some("microcompact_boundary") => {
                self.begin_segment(SegmentStart::Compaction, number, draft);
                let metadata = line.get("microcompactMetadata");
                let calls = metadata.into_iter().flat_map(|metadata| metadata.items_of("compactedToolIds"));
                let calls: Vec<String> = calls.filter_map(Value::string).map(Cow::into_owned).collect();
                self.messages.clear_results(&calls, CLEARED);
            }
            _ => {}
        }
        None
    }

    /// Starts a branch where a human's line goes on from a message that has been answered already.
    fn branch_if_rewound(&mut self, line: Value<'_>, number: usize, draft: &mut RecordingDraft) {
        let Some(parent) = self.place_of(line) else { return };
        if is_result(line) || !self.messages.answered_since(parent + 1) {
            return;
        }
        self.begin_segment(SegmentStart::Branch, number, draft);
        self.messages.truncate(parent + 1);
        self.places.retain(|_, place| *place <= parent);
    }

    /// Closes the segment so far and begins another one with the same messages.
    fn begin_segment(&mut self, start: SegmentStart, line: usize, draft: &mut RecordingDraft) {
        let mut ended = self.segment.next(start, line);
        ended.messages = self.messages.write();
        draft.add_segment(ended);
    }

    fn close_segment(mut self, draft: &mut RecordingDraft) {
        self.segment.messages = self.messages.write();
        draft.add_segment(self.segment);
    }
}

fn message_content(line: Value<'_>) -> Option<Value<'_>> {
    line.path(&["message", "content"]).filter(|content| content.is_string() || content.is_array())
}

fn is_result(line: Value<'_>) -> bool {
    let mut blocks = message_content(line).into_iter().flat_map(Value::items);
    blocks.any(|block| block.member_is("type", "tool_result"))
}
