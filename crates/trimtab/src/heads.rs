//! What stored sessions begin with: [`scope_calls`] tells which tools the sessions of a scope called, [`HeadTotals`] adds up what their
//! heads cost. Takes the store; never reads more than the newest sessions.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use trimtab_core::{CountMemo, Tokens};
use trimtab_replay::{HeadCost, ToolCalls, inspect};
use trimtab_store::{SessionInfo, Store};

use crate::{prices::models, store};

/// How many of the newest sessions are looked at.
const NEWEST: usize = 20;

/// What the heads of several sessions cost, by where their tools come from.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct HeadTotals {
    pub(crate) sessions: usize,
    /// What heads cost in all requests whose usage was reported and whose prices are known.
    pub(crate) dollars: f64,
    /// What leaving out tools that no session of the scope called would have saved.
    pub(crate) deferring_saves: f64,
    pub(crate) parts: BTreeMap<String, HeadPart>,
}

/// One part of the head.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct HeadPart {
    /// The most tokens that it takes in a request.
    pub(crate) tokens: Tokens,
    pub(crate) calls: u64,
    pub(crate) dollars: f64,
}

/// Returns which tools the newest of these sessions called.
pub(crate) fn scope_calls(store: &dyn Store, sessions: &[SessionInfo]) -> Result<ToolCalls> {
    let mut calls = ToolCalls::default();
    for session in sessions.iter().take(NEWEST) {
        for segment in &store::session_as_recording(store, session.id)?.segments {
            calls.add_history(&segment.history);
        }
    }
    Ok(calls)
}

impl HeadTotals {
    /// Measures the heads of the newest sessions, with the calls of all sessions of each one's project.
    pub(crate) fn measure(store: &dyn Store, sessions: &[SessionInfo]) -> Result<HeadTotals> {
        let mut by_scope: BTreeMap<Option<&str>, Vec<&SessionInfo>> = BTreeMap::new();
        for session in sessions.iter().take(NEWEST) {
            by_scope.entry(session.scope()).or_default().push(session);
        }
        let mut totals = HeadTotals::default();
        let mut memo = CountMemo::default();
        for sessions in by_scope.values() {
            let mut calls = ToolCalls::default();
            let mut heads = Vec::new();
            for session in sessions {
                let recording = store::session_as_recording(store, session.id)?;
                recording.segments.iter().for_each(|segment| calls.add_history(&segment.history));
                let name = session.id.to_string();
                heads.push(
                    inspect(&name, &recording, recording.longest_number(), None, models()?, &mut memo)?.head,
                );
            }
            for mut head in heads {
                head.count_calls(&calls);
                totals.add_head(&head);
            }
        }
        Ok(totals)
    }

    fn add_head(&mut self, head: &HeadCost) {
        if !head.recorded {
            return;
        }
        self.sessions += 1;
        self.dollars += head.dollars.unwrap_or_default();
        self.deferring_saves += head.deferring_saves.unwrap_or_default();
        let share = |tokens: Tokens| match head.tokens {
            Tokens::ZERO => 0.0,
            all => head.dollars.unwrap_or_default() * tokens.to_float() / all.to_float(),
        };
        let own = || head.tools.iter().filter(|tool| tool.server.is_none());
        let mut parts = vec![
            ("system prompt".to_owned(), head.system, 0),
            (
                "the client's own tools".to_owned(),
                own().map(|tool| tool.tokens).sum(),
                own().map(|tool| tool.calls).sum(),
            ),
        ];
        parts.extend(
            head.servers.iter().map(|server| (format!("MCP {}", server.name), server.tokens, server.calls)),
        );
        for (name, tokens, calls) in parts.into_iter().filter(|(_, tokens, _)| *tokens > Tokens::ZERO) {
            let part = self.parts.entry(name).or_default();
            part.tokens = part.tokens.max(tokens);
            // The calls of a scope are the same for each of its sessions.
            part.calls = part.calls.max(calls);
            part.dollars += share(tokens);
        }
    }

    /// Returns the parts, the largest first.
    pub(crate) fn parts_by_tokens(&self) -> Vec<(&str, &HeadPart)> {
        let mut parts: Vec<(&str, &HeadPart)> =
            self.parts.iter().map(|(name, part)| (name.as_str(), part)).collect();
        parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.tokens));
        parts
    }
}

#[cfg(test)]
mod tests {
    use trimtab_replay::{HeadServer, HeadTool};

    use super::*;

    #[test]
    fn parts_of_several_heads_are_added_up_and_the_largest_comes_first() {
        let tool = |name: &str, server: Option<&str>, tokens, calls| HeadTool {
            name: name.to_owned(),
            server: server.map(str::to_owned),
            tokens: Tokens(tokens),
            calls,
        };
        let server = HeadServer { name: "github".to_owned(), tools: 1, tokens: Tokens(600), calls: 0 };
        let head = HeadCost {
            recorded: true,
            tokens: Tokens(1_000),
            system: Tokens(100),
            tools: vec![tool("mcp__github__search", Some("github"), 600, 0), tool("Read", None, 300, 4)],
            servers: vec![server],
            requests: 2,
            dollars: Some(1.0),
            searched_conversations: 1,
            never_called: 1,
            never_called_tokens: Tokens(600),
            deferring_saves: Some(0.6),
        };
        let mut totals = HeadTotals::default();
        totals.add_head(&head);
        totals.add_head(&head);
        let parts: Vec<(&str, u64, u64)> = totals
            .parts_by_tokens()
            .into_iter()
            .map(|(name, part)| (name, part.tokens.0, part.calls))
            .collect();
        assert_eq!(
            parts,
            [("MCP github", 600, 0), ("the client's own tools", 300, 4), ("system prompt", 100, 0)]
        );
        assert!((totals.dollars - 2.0).abs() < 1e-9 && (totals.deferring_saves - 1.2).abs() < 1e-9);
        let of_server = totals.parts.get("MCP github").map(|part| part.dollars);
        assert!(of_server.is_some_and(|dollars| (dollars - 1.2).abs() < 1e-9), "{of_server:?}");
        totals.add_head(&HeadCost { recorded: false, ..head });
        assert_eq!(totals.sessions, 2, "what is not recorded says nothing");
    }
}
