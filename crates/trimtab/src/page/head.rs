//! The head of a session's requests: what the system prompt and each tool take, by MCP server, and what that costs in every request.

use std::collections::BTreeMap;

use anyhow::Result;
use maud::{Markup, html};
use trimtab_core::{BlockKind, Role, Usage};
use trimtab_store::SessionId;

use super::{
    PageServer,
    conversation::SessionContext,
    shell::{self, BarPlace, SessionTab, cut_text, number, session_head},
};
use crate::{
    look::{
        FigureTile, TableColumn, TileTone, dollars, percent, table, table_below_heading, tiles, tokens_short,
    },
    output::{count_with_noun, group_thousands},
    proxy::metrics::float,
    terminal::escape_name,
};

/// Tools that are listed.
const LISTED: usize = 300;

/// What a tool takes and how often it was called.
#[derive(Debug, Default, Clone, Copy)]
struct ToolSums {
    tools: u64,
    tokens: u64,
    calls: u64,
}

impl PageServer {
    pub(super) fn head_page(&self, id: SessionId) -> Result<Markup> {
        let scope = self.scope()?;
        let info = scope.own_session(id)?;
        let context = self.conversations.read(&scope, id)?;
        let main = html! {
            (session_head(id, &self.session_title(&scope, &info), Some(SessionTab::Head)))
            (head_part(&context))
        };
        Ok(shell::whole_page("Head", BarPlace::Sessions, &main))
    }
}

fn head_part(context: &SessionContext) -> Markup {
    let (mut system, mut all) = (0, 0);
    let mut tools: BTreeMap<String, ToolSums> = BTreeMap::new();
    let latest = &context.latest;
    let blocks = latest.history.blocks().iter().zip(latest.facts.rows()).zip(latest.counts.blocks());
    for ((block, fact), tokens) in blocks {
        all += tokens.0;
        let name = || {
            latest
                .history
                .tool_name(block)
                .map_or_else(|| "without a name".to_owned(), std::borrow::Cow::into_owned)
        };
        match (fact.role, block.kind) {
            (Role::System, _) => system += tokens.0,
            (_, BlockKind::Definition) => {
                let tool = tools.entry(name()).or_default();
                (tool.tools, tool.tokens) = (1, tool.tokens + tokens.0);
            }
            (_, BlockKind::Call) => tools.entry(name()).or_default().calls += 1,
            (Role::Tools | Role::User | Role::Assistant | Role::Tool | Role::Other, _) => {}
        }
    }
    // A tool that is called and not defined is the provider's own, or of an earlier request.
    tools.retain(|_, tool| tool.tools > 0);
    let of_tools: u64 = tools.values().map(|tool| tool.tokens).sum();
    let unused: Vec<&ToolSums> = tools.values().filter(|tool| tool.calls == 0).collect();
    let unused_tokens: u64 = unused.iter().map(|tool| tool.tokens).sum();
    let mut servers: BTreeMap<&str, ToolSums> = BTreeMap::new();
    for (name, tool) in &tools {
        let sums = servers.entry(server_of(name)).or_default();
        sums.tools += 1;
        sums.tokens += tool.tokens;
        sums.calls += tool.calls;
    }
    let price = TokenPrice { context, all };
    let mut listed: Vec<(&str, ToolSums)> = tools.iter().map(|(name, tool)| (name.as_str(), *tool)).collect();
    listed.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.tokens));
    let mut of_servers: Vec<(&str, ToolSums)> = servers.into_iter().collect();
    of_servers.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.tokens));
    let tone = if unused_tokens > of_tools / 2 && of_tools > 0 { TileTone::Bad } else { TileTone::Plain };
    html! {
        (tiles(&[
            FigureTile::new(group_thousands(system), "tokens of the system prompt").with_note(price.words(system)).with_name("system_tokens"),
            FigureTile::new(group_thousands(of_tools), format!("tokens of {}", count_with_noun(tools.len(), "tool", "tools")))
                .with_note(price.words(of_tools)).with_name("tool_tokens"),
            FigureTile::new(group_thousands(unused_tokens), format!("tokens of {} that were never called", count_with_noun(unused.len(), "tool", "tools")))
                .with_note(price.words(unused_tokens)).with_tone(tone),
        ]))
        p { "Every request carries all of this. trimtab never changes it: the agent's own configuration does." }
        @if tools.is_empty() { p { "The latest request defines no tools." } }
        @else {
            (table("By MCP server", &columns("server"), &rows(&of_servers, &price)))
            h2 { "Tools" }
            (table_below_heading("Tools, the largest first", &columns("tool"), &rows(&listed, &price)))
        }
        @if let Some(text) = first_system_words(context) {
            h2 { "System prompt" }
            details { summary { "How it begins" } pre.text dir="auto" tabindex="0" { (text) } }
        }
    }
}

/// Prices tokens that every request of a session repeats.
struct TokenPrice<'a> {
    context: &'a SessionContext,
    /// Tokens of all blocks of the latest request.
    all: u64,
}

impl TokenPrice<'_> {
    /// Returns dollars for every request: read from the cache.
    fn of_a_request(&self, tokens: u64) -> Option<f64> {
        let usage = Usage { cache_read: tokens, ..Usage::default() };
        Some(self.context.model.as_ref()?.input_cost(usage))
    }

    fn words(&self, tokens: u64) -> String {
        let share = percent(float(tokens) / float(self.all.max(1)));
        match self.of_a_request(tokens) {
            Some(cost) => format!(
                "{share} of the latest request; {} for 1,000 requests that read it from the cache",
                dollars(cost * 1000.0)
            ),
            None => format!("{share} of the latest request; the model's prices are not known"),
        }
    }
}

fn columns(first: &str) -> Vec<TableColumn<'_>> {
    vec![
        TableColumn::text(first),
        TableColumn::number("tools"),
        TableColumn::number("tokens"),
        TableColumn::number("share").with_about("Of the latest request"),
        TableColumn::number("dollars per 1,000 requests").with_about("Read from the cache each time"),
        TableColumn::number("calls").with_about("In the latest request"),
    ]
}

fn rows(listed: &[(&str, ToolSums)], price: &TokenPrice<'_>) -> Vec<Vec<Markup>> {
    let row = |(name, sums): &(&str, ToolSums)| {
        vec![
            html! { code.title dir="auto" { (escape_name(name)) } },
            number(sums.tools),
            html! { (tokens_short(sums.tokens)) },
            html! { (percent(float(sums.tokens) / float(price.all.max(1)))) },
            html! { @match price.of_a_request(sums.tokens) { Some(cost) => (dollars(cost * 1000.0)), None => span.soft { "–" } } },
            html! { @if sums.calls == 0 { span.bad { "never" } } @else { (number(sums.calls)) } },
        ]
    };
    listed.iter().take(LISTED).map(row).collect()
}

/// Returns the MCP server of a tool, by its name: `mcp__github__search` is of `github`.
fn server_of(tool: &str) -> &str {
    let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    server.unwrap_or("the agent's own")
}

fn first_system_words(context: &SessionContext) -> Option<String> {
    let history = &context.latest.history;
    let mut blocks = history.blocks().iter().zip(context.latest.facts.rows());
    let (block, _) = blocks.find(|(_, fact)| fact.role == Role::System)?;
    let (start, is_cut) = cut_text(&history.block_text(block), 3_000);
    Some(crate::terminal::escape_text(&start).into_owned() + if is_cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_tells_its_server() {
        assert_eq!(server_of("mcp__github__search_code"), "github");
        assert_eq!(server_of("Bash"), "the agent's own");
        assert_eq!(server_of("mcp__odd"), "the agent's own");
    }
}
