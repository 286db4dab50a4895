//! OpenHands event streams: actions and observations, alone or in the rows of an evaluation. Takes the events;
//! gives the messages that OpenHands makes of them: a segment for the session, one after each condensation and
//! one for each delegate. Tool calls are given as such for models, too, that were sent them as text.

mod messages;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;

use trimtab_core::{
    Format, Millis,
    json::Value,
    usage::{self, Usage},
};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};
use messages::{EventSource, OpenhandsMessages};
use words::{field, text_field};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "openhands", about: "OpenHands event stream or output.jsonl", fits, read };

fn fits(source: &RecordingSource<'_>) -> bool {
    source.any_of_first(|value| is_event(value) || list_of(value).is_some())
}

fn is_event(value: Value<'_>) -> bool {
    let kind = |key| value.get(key).is_some_and(Value::is_string);
    let beside = ["source", "args", "extras", "content", "thought"];
    // The steps of other agents' trajectories have both in one object.
    kind("action") != kind("observation") && beside.iter().any(|key| value.get(key).is_some())
}

/// Finds the events in a document or row.
fn list_of(value: Value<'_>) -> Option<Value<'_>> {
    let holds = |list: &Value<'_>| list.items().take(10).any(|item| events_of(item).any(is_event));
    let keys = ["trajectory", "history", "events"];
    let inside = || keys.iter().find_map(|key| value.get(key).filter(holds));
    if value.is_array() { Some(value).filter(holds) } else { inside() }
}

/// Returns an event, or both of an old row that holds actions with their observations.
fn events_of(item: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    item.items().chain((!item.is_array()).then_some(item))
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let mut bare = AgentStream::new(None, 1);
    for (line, value) in source.values() {
        if is_event(value) {
            bare.read_event(value, line);
            continue;
        }
        let Some(list) = list_of(value) else {
            draft.add_problem(
                line,
                "holds no events: expected `history` or `trajectory` with actions and observations",
            );
            continue;
        };
        let mut stream = AgentStream::new(Some(value), line);
        for (index, event) in list.items().flat_map(events_of).enumerate() {
            if is_event(event) {
                stream.read_event(event, line);
            } else {
                draft
                    .add_problem(line, format!("item {} is neither an action nor an observation", index + 1));
            }
        }
        stream.close_all(draft);
    }
    bare.close_all(draft);
}

/// One session: its agent, and the delegates that work for it.
struct AgentStream<'a> {
    /// The agents at work, each started by the one before it.
    agents: Vec<OpenhandsAgent<'a>>,
    /// Finished segments with the number of their beginning.
    done: Vec<(usize, SegmentDraft)>,
    begun: usize,
    model: Option<String>,
    /// What the session had used up at the last event that tells: prompt, cache read, cache write, output.
    spent: Option<[u64; 4]>,
}

impl<'a> AgentStream<'a> {
    fn new(row: Option<Value<'a>>, line: usize) -> AgentStream<'a> {
        let told = |keys: &[&str]| row?.path(keys)?.string().map(std::borrow::Cow::into_owned);
        let mut agent = OpenhandsAgent::new(SegmentStart::Session, line, 0);
        agent.segment.name = told(&["instance_id"]);
        let model = told(&["metadata", "llm_config", "model"]);
        AgentStream { agents: vec![agent], done: Vec::new(), begun: 1, model, spent: None }
    }

    fn read_event(&mut self, event: Value<'a>, line: usize) {
        let used = self.usage_since(event);
        let ends_delegate = event.member_is("observation", "delegate");
        if ends_delegate && self.agents.len() > 1 {
            let delegate = self.agents.pop();
            self.done.extend(delegate.map(OpenhandsAgent::into_segment));
        }
        let Some(agent) = self.agents.last_mut() else { return };
        match event.text("action").as_deref() {
            Some("condensation") => {
                let next = agent.condense_events(event, line, self.begun);
                self.begun += 1;
                self.done.push(next);
            }
            Some("delegate") => {
                agent.read_event(event, used, self.model.as_deref());
                self.agents.push(OpenhandsAgent::new_delegate(event, line, self.begun));
                self.begun += 1;
            }
            _ => agent.read_event(event, used, self.model.as_deref()),
        }
    }

    /// Tells what the request of an event used, from the sums that the session keeps.
    fn usage_since(&mut self, event: Value<'_>) -> Option<Usage> {
        let sums = event.path(&["llm_metrics", "accumulated_token_usage"])?;
        let number = |key| sums.get(key).and_then(Value::number).unwrap_or_default();
        let now =
            ["prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens"].map(number);
        let [prompt, read, write, output] = self.spent.replace(now)?;
        let [all, all_read, all_write, all_output] = now;
        // A resumed session may count from an earlier sum: then nothing is known.
        Some(usage::split_input(
            all.checked_sub(prompt).filter(|prompt| *prompt > 0)?,
            all_read.checked_sub(read)?,
            all_write.checked_sub(write)?,
            all_output.checked_sub(output)?,
        ))
    }

    fn close_all(mut self, draft: &mut RecordingDraft) {
        self.done.extend(self.agents.into_iter().map(OpenhandsAgent::into_segment));
        self.done.sort_by_key(|(begun, _)| *begun);
        self.done.into_iter().for_each(|(_, segment)| draft.add_segment(segment));
    }
}

/// One agent's conversation.
struct OpenhandsAgent<'a> {
    segment: SegmentDraft,
    begun: usize,
    /// The events it has in view, from which the messages are made again after a condensation.
    events: Vec<Value<'a>>,
    messages: OpenhandsMessages,
    /// The last summary and how many events precede it.
    summary: Option<(usize, String)>,
    /// What a delegate was asked for, until it is in its messages.
    task: Option<String>,
    /// Whether user messages are followed by a recall, and how many still wait for theirs.
    recalls: bool,
    unread: usize,
    sent: Option<Millis>,
}

impl<'a> OpenhandsAgent<'a> {
    fn new(start: SegmentStart, line: usize, begun: usize) -> OpenhandsAgent<'a> {
        OpenhandsAgent {
            segment: SegmentDraft::new(start, Format::Chat, line),
            begun,
            events: Vec::new(),
            messages: OpenhandsMessages::default(),
            summary: None,
            task: None,
            recalls: false,
            unread: 0,
            sent: None,
        }
    }

    fn new_delegate(event: Value<'_>, line: usize, begun: usize) -> OpenhandsAgent<'a> {
        let mut agent = OpenhandsAgent::new(SegmentStart::SubAgent, line, begun);
        agent.segment.name = Some(format!("agent {}", text_field(event, "agent")));
        let task = field(event, "inputs").and_then(|inputs| inputs.text("task"));
        agent.task = task.map(std::borrow::Cow::into_owned);
        agent
    }

    fn read_event(&mut self, event: Value<'a>, used: Option<Usage>, model: Option<&str>) {
        let speaker = self.messages.source_of(event);
        match speaker {
            EventSource::Nobody => {
                let recall = event.member_is("action", "recall");
                self.recalls |= recall;
                self.unread = if recall { 0 } else { self.unread };
                // Counted by the offset of a summary, though it makes no message.
                if recall {
                    self.events.push(event);
                }
                return;
            }
            EventSource::Agent => self.record_request(event, used, model),
            EventSource::User => {
                self.task = None;
                self.unread += 1;
            }
            EventSource::System => self.read_tools(event),
            EventSource::World => {}
        }
        self.messages.add_event(event, speaker);
        self.events.push(event);
        if speaker != EventSource::Agent {
            self.sent = parse_time(event.get("timestamp")).or(self.sent);
        }
    }

    /// Notes the request that an action of the agent answers.
    fn record_request(&mut self, event: Value<'_>, used: Option<Usage>, model: Option<&str>) {
        if let Some(task) = self.task.take() {
            self.messages.add_user_text(&task);
        }
        let response = event.path(&["tool_call_metadata", "model_response"]);
        if !self.messages.is_new(event) {
            return;
        }
        let named = response.and_then(|response| response.text("model"));
        let at = self.sent.or_else(|| parse_time(response.and_then(|response| response.get("created"))));
        // A message that came while the model was thinking is written before the answer, but was not sent.
        let unread = if self.recalls { self.unread } else { 0 };
        let point = self.segment.add_point(at, named.or(model.map(Into::into)));
        point.messages = self.messages.len().saturating_sub(unread);
        point.usage = usage::parse_openai(response.and_then(|response| response.get("usage"))).or(used);
    }

    fn read_tools(&mut self, event: Value<'_>) {
        let tools = field(event, "tools").filter(|tools| tools.items().next().is_some());
        if let (Some(tools), true) = (tools, self.segment.head.is_empty()) {
            self.segment.head.push(("tools", tools.raw().to_vec()));
        }
    }

    /// Forgets events and puts a summary in their place; returns the segment that ends here.
    fn condense_events(&mut self, event: Value<'_>, line: usize, begun: usize) -> (usize, SegmentDraft) {
        let number = |value: Value<'_>| value.number();
        let listed: HashSet<u64> = field(event, "forgotten_event_ids")
            .into_iter()
            .flat_map(Value::items)
            .filter_map(number)
            .collect();
        let bound = |key| field(event, key).and_then(number);
        let range = bound("forgotten_events_start_id").zip(bound("forgotten_events_end_id"));
        let forgotten = |event: &Value<'_>| {
            let id = event.get("id").and_then(number);
            id.is_some_and(|id| {
                listed.contains(&id) || range.is_some_and(|(from, to)| (from..=to).contains(&id))
            })
        };
        self.events.retain(|event| !forgotten(event));
        if let Some(summary) = field(event, "summary").and_then(Value::string) {
            let offset = bound("summary_offset").and_then(|offset| usize::try_from(offset).ok());
            self.summary = Some((offset.unwrap_or(usize::MAX), summary.into_owned()));
        }
        let mut ended = self.segment.next(SegmentStart::Compaction, line);
        ended.messages = std::mem::take(&mut self.messages).into_messages();
        self.rebuild_messages();
        (std::mem::replace(&mut self.begun, begun), ended)
    }

    /// Makes the messages again from the events in view.
    fn rebuild_messages(&mut self) {
        let mut summary = self.summary.clone();
        let mut messages = OpenhandsMessages::default();
        for (index, event) in self.events.iter().enumerate() {
            if let Some((_, text)) = summary.take_if(|(offset, _)| *offset <= index) {
                messages.add_user_text(&text);
            }
            messages.add_event(*event, messages.source_of(*event));
        }
        if let Some((_, text)) = summary {
            messages.add_user_text(&text);
        }
        self.messages = messages;
    }

    fn into_segment(mut self) -> (usize, SegmentDraft) {
        self.segment.messages = self.messages.into_messages();
        (self.begun, self.segment)
    }
}
