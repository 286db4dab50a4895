//! SWE-agent trajectories: one JSON document with `history` and `trajectory`. Takes the document; gives a segment
//! for each agent in the history of each attempt, in which demonstrations are messages like others.
//!
//! `history` is followed, not the list that each step stores as `query` or `messages`: those are the history with
//! old observations shortened again for each request, so no two of them extend each other. A segment is what was
//! there to be sent; a history processor's work is a policy, and replay has its own. Only where a file
//! has no history, the last step's list replaces it.

use trimtab_core::{
    Format,
    json::{Object, Value, scan},
};

use super::{
    RecordingReader, SegmentStart, chat,
    draft::{RecordingDraft, SegmentDraft},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "swe-agent", about: "SWE-agent trajectory (.traj)", fits, read };

/// The members of a history item that SWE-agent sends.
const SENT: [&str; 6] =
    ["role", "content", "tool_calls", "thinking_blocks", "reasoning_content", "cache_control"];

fn fits(source: &RecordingSource<'_>) -> bool {
    source.any_of_first(is_trajectory)
}

fn is_trajectory(document: Value<'_>) -> bool {
    attempts(document).next().is_some()
}

/// Returns the runs of a document: those it lists, of which it repeats the best one outside, else itself.
fn attempts(document: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let listed = document.items_of("attempts");
    let itself = document.get("attempts").is_none_or(|attempts| attempts.items().next().is_none());
    listed.chain(itself.then_some(document)).filter(|attempt| is_attempt(*attempt))
}

fn is_attempt(attempt: Value<'_>) -> bool {
    let Some(steps) = attempt.get("trajectory").filter(|steps| steps.is_array()) else { return false };
    let acted = |step: Value<'_>| step.get("action").is_some() && step.get("observation").is_some();
    let spoken = || attempt.items_of("history").take(10).any(chat::is_message);
    // One broken field hides no file: some of the first steps tell.
    match steps.items().next() {
        Some(_) => steps.items().take(10).any(|step| acted(step) && step.get("response").is_some()),
        None => spoken(),
    }
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    for (line, document) in source.values() {
        if !is_trajectory(document) {
            draft.add_problem(line, "not a trajectory: expected `history` and `trajectory`");
        }
        for attempt in attempts(document) {
            read_attempt(attempt, line, draft);
        }
    }
}

fn read_attempt(attempt: Value<'_>, line: usize, draft: &mut RecordingDraft) {
    let model = configured_model(attempt);
    let mut agents: Vec<(String, SegmentDraft)> = Vec::new();
    for (index, item) in attempt_history(attempt).enumerate() {
        if !chat::is_message(item) {
            draft.add_problem(line, format!("history item {} is not a message", index + 1));
            continue;
        }
        let agent = item.text("agent").unwrap_or_default();
        let known = agents.iter().position(|(name, _)| *name == agent);
        if known.is_none() {
            let segment = begin_segment(&agent, agents.is_empty(), line);
            agents.push((agent.into_owned(), segment));
        }
        let index = known.unwrap_or(agents.len() - 1);
        let Some((_, segment)) = agents.get_mut(index) else { continue };
        // What an assistant says in a demonstration was never asked for.
        if item.member_is("role", "assistant") && !item.is_flag_set("is_demo") {
            segment.add_point(None, model.as_deref().map(Into::into));
        }
        segment.messages.push(write_message(item));
    }
    agents.into_iter().for_each(|(_, segment)| draft.add_segment(segment));
}

/// An agent sees its own messages only, so each is a segment; the first one named is the main agent.
fn begin_segment(agent: &str, first: bool, line: usize) -> SegmentDraft {
    let start = if first { SegmentStart::Session } else { SegmentStart::SubAgent };
    let mut segment = SegmentDraft::new(start, Format::Chat, line);
    segment.name = (!first).then(|| format!("agent {agent}"));
    segment
}

fn attempt_history(attempt: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let written = attempt.get("history").filter(|history| history.items().next().is_some());
    let last = attempt.items_of("trajectory").last();
    let sent = move || last.and_then(|step| step.get("query").or(step.get("messages")));
    written.or_else(sent).into_iter().flat_map(Value::items)
}

fn write_message(item: Value<'_>) -> Vec<u8> {
    let missing = |key: &str| item.get(key).is_none_or(Value::is_null);
    let copy = chat::copy_members(item, |key| {
        let optional = key != "content" && missing(key);
        (SENT.contains(&key) || key == "tool_call_id") && !optional
    });
    let call = item.get("tool_call_ids").and_then(|calls| calls.items().next());
    let Some(call) = call.filter(|_| missing("tool_call_id")) else { return copy };
    let Some(members) = copy.strip_prefix(b"{") else { return copy };
    // The results of a step are one message, which answers the first call.
    let mut answer = Object::new().raw("tool_call_id", call.raw()).end();
    answer.pop();
    answer.push(b',');
    answer.extend_from_slice(members);
    answer
}

/// Returns the model of the configuration, which newer versions store as a text of JSON.
fn configured_model(attempt: Value<'_>) -> Option<String> {
    let named = |config: Value<'_>| {
        let name = config.path(&["agent", "model", "name"])?.string()?;
        // A replay repeats recorded actions: no model answered.
        (name != "replay" && !name.starts_with("human")).then(|| name.into_owned())
    };
    let config = attempt.get("replay_config")?;
    let Some(text) = config.string() else { return named(config) };
    let tape = scan(text.as_bytes()).ok()?;
    named(tape.root(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::check;

    #[test]
    fn a_demonstration_is_sent_but_was_not_asked_for() {
        check(
            r#"{"environment":"e","trajectory":[{"action":"ls","observation":"a","response":"ls","thought":"","state":""}],
            "history":[{"role":"system","content":"S","agent":"main"},
            {"role":"user","content":"Demo","is_demo":true,"agent":"main"},
            {"role":"assistant","content":"like so","is_demo":true,"agent":"main"},
            {"role":"user","content":"Fix it.","agent":"main"},{"mark":1},
            {"role":"assistant","content":"ls","thought":"t","action":"ls","agent":"main"},
            {"role":"user","content":"a","agent":"main","message_type":"observation"}],
            "replay_config":"{\"agent\":{\"model\":{\"name\":\"m-1\"}}}"}"#,
            &[
                "swe-agent",
                "session, chat",
                "  system: S",
                "  user: Demo",
                "  assistant: like so",
                "  user: Fix it.",
                "  assistant: ls",
                "  user: a",
                "  @4 m-1",
                "line 1: history item 5 is not a message",
            ],
        );
    }

    #[test]
    fn a_result_answers_the_first_of_its_calls() {
        check(
            r#"{"trajectory":[{"action":"ls","observation":"a","response":"ls"}],"info":{},
            "replay_config":{"agent":{"model":{"name":"replay"}}},
            "history":[{"role":"user","content":"Fix it.","tool_calls":null},
            {"role":"assistant","content":"Look.","action":"ls","tool_calls":[{"id":"c1","type":"function",
            "function":{"name":"bash","arguments":"{}"}}],"thinking_blocks":[{"type":"thinking","thinking":"hm"}]},
            {"role":"tool","content":"a","tool_call_ids":["c1"]}]}"#,
            &[
                "swe-agent",
                "session, chat",
                "  user: Fix it.",
                "  assistant: reasoning(hm) + Look. + bash#c1 {}",
                "  tool: bash#c1 = a",
                "  @1",
            ],
        );
    }

    #[test]
    fn other_agents_and_attempts_are_segments() {
        check(
            r#"{"attempts":[{"trajectory":[],"history":[{"role":"user","content":"One","agent":"primary"},
            {"role":"user","content":"Sub","agent":"helper"},{"role":"assistant","content":"sure","agent":"helper"},
            {"role":"assistant","content":"done","agent":"primary"}]},
            {"trajectory":[{"action":"","observation":"","response":"r","query":[{"role":"user","content":"Two"}]}]}],
            "trajectory":[],"history":[{"role":"user","content":"One"}]}"#,
            &[
                "swe-agent",
                "session, chat",
                "  user: One",
                "  assistant: done",
                "  @1",
                "sub-agent (agent helper), chat",
                "  user: Sub",
                "  assistant: sure",
                "  @1",
                "session, chat",
                "  user: Two",
                "  @1",
            ],
        );
    }
}
