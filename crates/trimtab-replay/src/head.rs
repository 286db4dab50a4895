//! What every request of a conversation begins with: `head_cost` says what the system prompt, each tool and each MCP server take, what
//! that cost over the session, and what is never called ([`ToolCalls`]). Of a recording, which holds neither, only the size that the
//! first report implies is known.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use trimtab_core::{
    BlockKind, History, Model, Point, Role, Tokens, Usage, count::Counts, facts::mcp_server, json::widen,
};

use crate::recording::Segment;

/// What the head of a conversation takes and costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadCost {
    /// Whether tools and system prompt are recorded; else their size is what the first report has beyond the messages.
    pub recorded: bool,
    /// All of it, in every request.
    pub tokens: Tokens,
    /// The system prompt.
    pub system: Tokens,
    /// The tools, the largest first.
    pub tools: Vec<HeadTool>,
    /// The MCP servers that tools come from, the largest first.
    pub servers: Vec<HeadServer>,
    /// Requests whose usage was reported.
    pub requests: usize,
    /// What it cost in these requests, in US dollars; nothing where the model's prices are not known.
    pub dollars: Option<f64>,
    /// Conversations in which calls were looked for.
    pub searched_conversations: usize,
    /// Tools that none of these calls.
    pub never_called: usize,
    /// What their definitions take.
    pub never_called_tokens: Tokens,
    /// What leaving their definitions out from the first request on would have saved, in US dollars.
    pub deferring_saves: Option<f64>,
}

/// The definition of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadTool {
    /// Its name.
    pub name: String,
    /// The MCP server that it comes from, by its name.
    pub server: Option<String>,
    /// What its definition takes.
    pub tokens: Tokens,
    /// How often it was called.
    pub calls: u64,
}

/// The tools of one MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadServer {
    /// Its name.
    pub name: String,
    /// How many tools.
    pub tools: usize,
    /// What their definitions take.
    pub tokens: Tokens,
    /// How often one of them was called.
    pub calls: u64,
}

/// Which tools were called, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCalls {
    conversations: usize,
    calls: BTreeMap<String, u64>,
}

impl ToolCalls {
    /// Adds the calls of a conversation.
    pub fn add_history(&mut self, history: &History) {
        self.conversations += 1;
        for block in history.blocks().iter().filter(|block| block.kind == BlockKind::Call) {
            if let Some(name) = history.tool_name(block) {
                *self.calls.entry(name.into_owned()).or_default() += 1;
            }
        }
    }

    fn calls_of(&self, tool: &str) -> u64 {
        self.calls.get(tool).copied().unwrap_or_default()
    }
}

/// Measures the head of a conversation, with the calls of this conversation alone.
pub(crate) fn head_cost(segment: &Segment, counts: &Counts, model: Option<&Model>) -> HeadCost {
    let history = &segment.history;
    let mut tools = Vec::new();
    let mut system = Tokens::ZERO;
    for (block, tokens) in history.blocks().iter().zip(counts.blocks()) {
        let role = history.entry_of(block).map_or(Role::Other, |entry| entry.role);
        match (block.kind, role) {
            (BlockKind::Definition, _) => tools.push(head_tool(history.tool_name(block), *tokens)),
            (_, Role::System) => system += *tokens,
            (_, _) => {}
        }
    }
    tools.sort_by(|one: &HeadTool, other| {
        (Reverse(one.tokens), &one.name).cmp(&(Reverse(other.tokens), &other.name))
    });
    let of_tools: Tokens = tools.iter().map(|tool| tool.tokens).sum();
    let recorded = !tools.is_empty() || system > Tokens::ZERO;
    let tokens = if recorded { of_tools + system } else { unrecorded_tokens(segment, counts) };
    let reported: Vec<Usage> = segment.points.iter().filter_map(|point| point.usage).collect();
    let dollars = model.map(|model| reported.iter().map(|usage| prefix_dollars(model, *usage, tokens)).sum());
    let mut head = HeadCost {
        recorded,
        tokens,
        system,
        tools,
        servers: Vec::new(),
        requests: reported.len(),
        dollars,
        searched_conversations: 0,
        never_called: 0,
        never_called_tokens: Tokens::ZERO,
        deferring_saves: None,
    };
    let mut calls = ToolCalls::default();
    calls.add_history(history);
    head.count_calls(&calls);
    head
}

fn head_tool(name: Option<Cow<'_, str>>, tokens: Tokens) -> HeadTool {
    let name = name.map_or_else(|| "(no name)".to_owned(), Cow::into_owned);
    let server = mcp_server(&name).map(str::to_owned);
    HeadTool { name, server, tokens, calls: 0 }
}

impl HeadCost {
    /// Counts how often each tool was called, in this conversation or in all that are given.
    pub fn count_calls(&mut self, calls: &ToolCalls) {
        for tool in &mut self.tools {
            tool.calls = calls.calls_of(&tool.name);
        }
        let unused = || self.tools.iter().filter(|tool| tool.calls == 0);
        self.searched_conversations = calls.conversations;
        self.never_called = unused().count();
        self.never_called_tokens = unused().map(|tool| tool.tokens).sum();
        let share = match self.tokens {
            Tokens::ZERO => 0.0,
            all => self.never_called_tokens.to_float() / all.to_float(),
        };
        self.deferring_saves = self.dollars.filter(|_| self.recorded).map(|dollars| dollars * share);
        self.servers = servers_of(&self.tools);
    }
}

fn servers_of(tools: &[HeadTool]) -> Vec<HeadServer> {
    let names: BTreeSet<&String> = tools.iter().filter_map(|tool| tool.server.as_ref()).collect();
    let server = |name: &String| {
        let own = || tools.iter().filter(|tool| tool.server.as_ref() == Some(name));
        HeadServer {
            name: name.clone(),
            tools: own().count(),
            tokens: own().map(|tool| tool.tokens).sum(),
            calls: own().map(|tool| tool.calls).sum(),
        }
    };
    let mut servers: Vec<HeadServer> = names.into_iter().map(server).collect();
    servers.sort_by_key(|server| Reverse(server.tokens));
    servers
}

/// Returns how many tokens the first report of a segment has beyond what is counted for its messages: tools and system prompt.
pub(crate) fn unrecorded_tokens(segment: &Segment, counts: &Counts) -> Tokens {
    let reported = |point: &&Point| point.usage.is_some_and(|usage| usage.total_input() > 0);
    let Some(first) = segment.points.iter().find(reported) else { return Tokens::ZERO };
    let next = segment.history.messages().get(first.messages);
    let end = next.map_or(usize::MAX, |entry| widen(entry.first_block));
    let counted: Tokens = counts.blocks().iter().take(end).copied().sum();
    Tokens(first.usage.map_or(0, Usage::total_input)) - counted
}

/// Returns what the first tokens of a request cost: a cache holds a request from its beginning on.
fn prefix_dollars(model: &Model, usage: Usage, tokens: Tokens) -> f64 {
    let read = tokens.0.min(usage.cache_read);
    let written = (tokens.0 - read).min(usage.cache_write);
    let rest = Usage {
        input: usage.input.saturating_sub(tokens.0 - read - written),
        cache_read: usage.cache_read - read,
        cache_write: usage.cache_write - written,
        cache_write_1h: usage.cache_write_1h.min(usage.cache_write - written),
        output: 0,
    };
    model.input_cost(usage) - model.input_cost(rest)
}

#[cfg(test)]
mod tests {
    use trimtab_core::{
        count::{CountMemo, Counter},
        find_model, parse,
        prices::Prices,
    };

    use super::*;
    use crate::recording::Recording;

    const REQUEST: &str = r#"{"model":"claude-opus-5","max_tokens":9,
        "tools":[
            {"name":"Read","description":"Reads a file.","input_schema":{"type":"object"}},
            {"name":"mcp__github__search","description":"Searches for code in every repository that there is, and in all others.","input_schema":{"type":"object"}},
            {"name":"mcp__github__issue","description":"Opens an issue.","input_schema":{"type":"object"}}],
        "system":"You help.",
        "messages":[{"role":"user","content":"Hi"},
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}"#;

    /// A model that costs 10 dollars a million to read in, 1 from the cache, 12.5 into it.
    fn model() -> Model {
        let prices = Prices {
            input: 10.0,
            cache_read: 1.0,
            cache_write: 12.5,
            cache_write_1h: Some(20.0),
            output: 50.0,
        };
        Model { prices, cliff: None, ..find_model("claude-opus-5").expect("a model") }
    }

    fn measure(usages: &[Usage]) -> HeadCost {
        let recording = Recording::of_request(parse(REQUEST.as_bytes().to_vec()).expect("a request"));
        let mut segment = recording.segments.into_iter().next().expect("a segment");
        let point = |usage: &Usage| Point { messages: 1, at: None, model: None, usage: Some(*usage) };
        segment.points = usages.iter().map(point).collect();
        let counter = Counter::for_model("claude-opus-5");
        let counts = counter.count_request(&segment.history, &mut CountMemo::default());
        head_cost(&segment, &counts, Some(&model()))
    }

    #[test]
    fn every_tool_is_told_with_its_server_and_its_calls() {
        let head = measure(&[]);
        assert!(head.recorded && head.system > Tokens::ZERO);
        let calls: BTreeMap<&str, u64> =
            head.tools.iter().map(|tool| (tool.name.as_str(), tool.calls)).collect();
        assert_eq!(
            calls,
            BTreeMap::from([("Read", 1), ("mcp__github__issue", 0), ("mcp__github__search", 0)])
        );
        assert_eq!(
            head.tools.first().map(|tool| tool.name.as_str()),
            Some("mcp__github__search"),
            "the largest first"
        );
        let [server] = head.servers.as_slice() else { panic!("{:?}", head.servers) };
        assert_eq!((server.name.as_str(), server.tools, server.calls), ("github", 2, 0));
        assert_eq!((head.never_called, head.never_called_tokens), (2, server.tokens));
        let parts: Tokens = head.tools.iter().map(|tool| tool.tokens).sum();
        assert_eq!(head.tokens, parts + head.system);
    }

    #[test]
    fn a_call_anywhere_in_the_searched_conversations_counts() {
        let mut head = measure(&[]);
        let mut calls = ToolCalls::default();
        let other = REQUEST.replace(r#""name":"Read","input""#, r#""name":"mcp__github__issue","input""#);
        calls.add_history(&parse(REQUEST.as_bytes().to_vec()).expect("a request"));
        calls.add_history(&parse(other.into_bytes()).expect("a request"));
        head.count_calls(&calls);
        assert_eq!((head.searched_conversations, head.never_called), (2, 1));
    }

    #[test]
    fn the_head_is_written_once_and_read_from_then_on() {
        let written = Usage { cache_write: 50_000, ..Usage::default() };
        let read = Usage { cache_read: 50_000, cache_write: 1_000, ..Usage::default() };
        let head = measure(&[written, read, read]);
        // Written once at 12.5, read twice at 1 dollar a million.
        let expected = head.tokens.to_float() * 14.5 / 1e6;
        let found = head.dollars.expect("a price");
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
        let saves = head.deferring_saves.expect("a price");
        let share = head.never_called_tokens.to_float() / head.tokens.to_float();
        assert!((saves - expected * share).abs() < 1e-9, "{saves}");
    }
}
