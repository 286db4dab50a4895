//! OpenHands event streams: actions and observations, alone or in the rows of an evaluation. Takes the events;
//! gives the messages that OpenHands makes of them: a segment for the session, one behind each condensation and
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
    Reader, Start,
    draft::{Draft, SegmentDraft, time},
    source::Source,
};
use messages::{Messages, Speaker};
use words::{field, text};

pub(super) const READER: Reader =
    Reader { name: "openhands", about: "OpenHands event stream or output.jsonl", fits, read };

fn fits(source: &Source<'_>) -> bool {
    source.begins(|value| is_event(value) || list_of(value).is_some())
}

fn is_event(value: Value<'_>) -> bool {
    let kind = |key| value.get(key).is_some_and(Value::is_string);
    let beside = ["source", "args", "extras", "content", "thought"];
    // The steps of other agents' trajectories have both in one object.
    kind("action") != kind("observation") && beside.iter().any(|key| value.get(key).is_some())
}

/// Finds the events in a document or row.
fn list_of(value: Value<'_>) -> Option<Value<'_>> {
    let holds = |list: &Value<'_>| list.items().take(10).any(|item| pair(item).any(is_event));
    let keys = ["trajectory", "history", "events"];
    let inside = || keys.iter().find_map(|key| value.get(key).filter(holds));
    if value.is_array() { Some(value).filter(holds) } else { inside() }
}

/// Returns an event, or both of an old row that holds actions with their observations.
fn pair(item: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    item.items().chain((!item.is_array()).then_some(item))
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    let mut bare = Stream::new(None, 1);
    for (line, value) in source.values() {
        if is_event(value) {
            bare.event(value, line);
            continue;
        }
        let Some(list) = list_of(value) else {
            draft.problem(
                line,
                "holds no events: expected `history` or `trajectory` with actions and observations",
            );
            continue;
        };
        let mut stream = Stream::new(Some(value), line);
        for (index, event) in list.items().flat_map(pair).enumerate() {
            if is_event(event) {
                stream.event(event, line);
            } else {
                draft.problem(line, format!("item {} is neither an action nor an observation", index + 1));
            }
        }
        stream.close(draft);
    }
    bare.close(draft);
}

/// One session: its agent, and the delegates that work for it.
struct Stream<'a> {
    /// The agents at work, each started by the one before it.
    agents: Vec<Agent<'a>>,
    /// Finished segments with the number of their beginning.
    done: Vec<(usize, SegmentDraft)>,
    begun: usize,
    model: Option<String>,
    /// What the session had used up at the last event that tells: prompt, cache read, cache write, output.
    spent: Option<[u64; 4]>,
}

impl<'a> Stream<'a> {
    fn new(row: Option<Value<'a>>, line: usize) -> Stream<'a> {
        let told = |keys: &[&str]| row?.path(keys)?.string().map(std::borrow::Cow::into_owned);
        let mut agent = Agent::new(Start::Session, line, 0);
        agent.segment.name = told(&["instance_id"]);
        let model = told(&["metadata", "llm_config", "model"]);
        Stream { agents: vec![agent], done: Vec::new(), begun: 1, model, spent: None }
    }

    fn event(&mut self, event: Value<'a>, line: usize) {
        let used = self.used(event);
        let ends_delegate = event.has("observation", "delegate");
        if ends_delegate && self.agents.len() > 1 {
            let delegate = self.agents.pop();
            self.done.extend(delegate.map(Agent::finish));
        }
        let Some(agent) = self.agents.last_mut() else { return };
        match event.text("action").as_deref() {
            Some("condensation") => {
                let next = agent.condense(event, line, self.begun);
                self.begun += 1;
                self.done.push(next);
            }
            Some("delegate") => {
                agent.event(event, used, self.model.as_deref());
                self.agents.push(Agent::delegate(event, line, self.begun));
                self.begun += 1;
            }
            _ => agent.event(event, used, self.model.as_deref()),
        }
    }

    /// Tells what the request behind an event used, from the sums that the session keeps.
    fn used(&mut self, event: Value<'_>) -> Option<Usage> {
        let sums = event.path(&["llm_metrics", "accumulated_token_usage"])?;
        let number = |key| sums.get(key).and_then(Value::number).unwrap_or_default();
        let now =
            ["prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens"].map(number);
        let [prompt, read, write, output] = self.spent.replace(now)?;
        let [all, all_read, all_write, all_output] = now;
        // A resumed session may count from an earlier sum: then nothing is known.
        Some(usage::split(
            all.checked_sub(prompt).filter(|prompt| *prompt > 0)?,
            all_read.checked_sub(read)?,
            all_write.checked_sub(write)?,
            all_output.checked_sub(output)?,
        ))
    }

    fn close(mut self, draft: &mut Draft) {
        self.done.extend(self.agents.into_iter().map(Agent::finish));
        self.done.sort_by_key(|(begun, _)| *begun);
        self.done.into_iter().for_each(|(_, segment)| draft.push(segment));
    }
}

/// One agent's conversation.
struct Agent<'a> {
    segment: SegmentDraft,
    begun: usize,
    /// The events it has in view, from which the messages are made again after a condensation.
    events: Vec<Value<'a>>,
    messages: Messages,
    /// The last summary and how many events stand before it.
    summary: Option<(usize, String)>,
    /// What a delegate was asked for, until it is in its messages.
    task: Option<String>,
    /// Whether user messages are followed by a recall, and how many still wait for theirs.
    recalls: bool,
    unread: usize,
    sent: Option<Millis>,
}

impl<'a> Agent<'a> {
    fn new(start: Start, line: usize, begun: usize) -> Agent<'a> {
        Agent {
            segment: SegmentDraft::new(start, Format::Chat, line),
            begun,
            events: Vec::new(),
            messages: Messages::default(),
            summary: None,
            task: None,
            recalls: false,
            unread: 0,
            sent: None,
        }
    }

    fn delegate(event: Value<'_>, line: usize, begun: usize) -> Agent<'a> {
        let mut agent = Agent::new(Start::SubAgent, line, begun);
        agent.segment.name = Some(format!("agent {}", text(event, "agent")));
        let task = field(event, "inputs").and_then(|inputs| inputs.text("task"));
        agent.task = task.map(std::borrow::Cow::into_owned);
        agent
    }

    fn event(&mut self, event: Value<'a>, used: Option<Usage>, model: Option<&str>) {
        let speaker = self.messages.speaker(event);
        match speaker {
            Speaker::Nobody => {
                let recall = event.has("action", "recall");
                self.recalls |= recall;
                self.unread = if recall { 0 } else { self.unread };
                // Counted by the offset of a summary, though it makes no message.
                if recall {
                    self.events.push(event);
                }
                return;
            }
            Speaker::Agent => self.answer(event, used, model),
            Speaker::User => {
                self.task = None;
                self.unread += 1;
            }
            Speaker::System => self.tools(event),
            Speaker::World => {}
        }
        self.messages.add(event, speaker);
        self.events.push(event);
        if speaker != Speaker::Agent {
            self.sent = time(event.get("timestamp")).or(self.sent);
        }
    }

    /// Notes the request that an action of the agent answers.
    fn answer(&mut self, event: Value<'_>, used: Option<Usage>, model: Option<&str>) {
        if let Some(task) = self.task.take() {
            self.messages.say(&task);
        }
        let response = event.path(&["tool_call_metadata", "model_response"]);
        if !self.messages.is_new(event) {
            return;
        }
        let named = response.and_then(|response| response.text("model"));
        let at = self.sent.or_else(|| time(response.and_then(|response| response.get("created"))));
        // A message that came while the model was thinking is written before the answer, but was not sent.
        let unread = if self.recalls { self.unread } else { 0 };
        let point = self.segment.point(at, named.or(model.map(Into::into)));
        point.messages = self.messages.len().saturating_sub(unread);
        point.usage = usage::openai(response.and_then(|response| response.get("usage"))).or(used);
    }

    fn tools(&mut self, event: Value<'_>) {
        let tools = field(event, "tools").filter(|tools| tools.items().next().is_some());
        if let (Some(tools), true) = (tools, self.segment.head.is_empty()) {
            self.segment.head.push(("tools", tools.raw().to_vec()));
        }
    }

    /// Forgets events and puts a summary in their place; returns the segment that ends here.
    fn condense(&mut self, event: Value<'_>, line: usize, begun: usize) -> (usize, SegmentDraft) {
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
        let mut ended = self.segment.next(Start::Compaction, line);
        ended.messages = std::mem::take(&mut self.messages).close();
        self.replay();
        (std::mem::replace(&mut self.begun, begun), ended)
    }

    /// Makes the messages again from the events in view.
    fn replay(&mut self) {
        let mut summary = self.summary.clone();
        let mut messages = Messages::default();
        for (index, event) in self.events.iter().enumerate() {
            if let Some((_, text)) = summary.take_if(|(offset, _)| *offset <= index) {
                messages.say(&text);
            }
            messages.add(*event, messages.speaker(*event));
        }
        if let Some((_, text)) = summary {
            messages.say(&text);
        }
        self.messages = messages;
    }

    fn finish(mut self) -> (usize, SegmentDraft) {
        self.segment.messages = self.messages.close();
        (self.begun, self.segment)
    }
}
