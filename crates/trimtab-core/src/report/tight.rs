//! Whether a window is too small to work in: [`TightWindow`], found before the window is full. `fit` and the proxy say it at the first
//! request of a conversation, with what to do.

use std::fmt;

use crate::{
    facts::{Priority, facts},
    history::History,
    plan::Plan,
    units::Tokens,
};

/// From this share of the budget on, what always stays leaves too little: room for a few files of 1,000 tokens in a window of 8,000.
const TIGHT: f64 = 0.5;

/// A budget of which system prompt, tools and rules take so much that little room is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TightWindow {
    /// What these count. Nothing of it is ever hidden.
    pub head: Tokens,
    /// What a request may count.
    pub budget: Tokens,
}

impl TightWindow {
    /// Finds out whether a budget is tight for what a request carries at all times; nothing where it is not, or where there is no budget.
    pub fn find(history: &History, plan: &Plan, budget: Option<Tokens>) -> Option<TightWindow> {
        let budget = budget?;
        let facts = facts(history);
        let stays = |id: &_| facts.priority(*id, 0) >= Some(Priority::AgentInstructions);
        let head = history.ids().filter(stays).map(|id| plan.tokens_of(id).0).sum();
        (head > budget.scale(TIGHT)).then_some(TightWindow { head, budget })
    }

    /// Says what can be done about it.
    pub const REMEDY: &str = "offer fewer tools, shorten the rules file, or use a model with a larger window";
}

/// As `fit` and the proxy say it.
impl fmt::Display for TightWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, budget, remedy) = (self.head.0, self.budget.0, TightWindow::REMEDY);
        write!(
            f,
            "system prompt, tools and rules take {head} of {budget} tokens and cannot be hidden: {remedy}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Memory, Millis, Policy, Settings, fit};

    #[track_caller]
    fn check(tools: usize, rules: usize, budget: Option<u64>) -> Option<TightWindow> {
        let tool = |number: usize| {
            let about = "Reads a file and gives its lines with their numbers. ".repeat(10);
            json!({"name": format!("read_{number}"), "description": about, "input_schema": {"type": "object"}})
        };
        let rules = "Never change the public API. Run the tests before you commit. ".repeat(rules);
        let rules = format!("<system-reminder>\nContents of CLAUDE.md:\n{rules}</system-reminder>");
        let said = json!([{"type": "text", "text": rules}, {"type": "text", "text": "Port the importer."}]);
        let request = json!({"model": "claude-opus-5", "max_tokens": 100, "system": "You are an agent.",
            "tools": (0..tools).map(tool).collect::<Vec<_>>(), "messages": [{"role": "user", "content": said}]});
        let settings = Settings::new(Policy::find_shipped("steady").unwrap()).with_budget(budget.map(Tokens));
        let bytes = request.to_string().into_bytes();
        let fitted = fit(bytes, &Memory::default(), &settings, Millis(0)).unwrap();
        assert!(fitted.plan.floor().is_none(), "{:?}: nothing is wrong yet", fitted.plan.floor());
        TightWindow::find(&fitted.history, &fitted.plan, fitted.budget)
    }

    #[test]
    fn a_head_that_takes_most_of_a_small_window_is_found_at_the_first_request() {
        assert_eq!(check(4, 2, Some(8000)), None);
        let of_tools = check(24, 2, Some(8000)).expect("tools take most of it");
        assert!(of_tools.head > Tokens(4000) && of_tools.budget == Tokens(8000), "{of_tools:?}");
        assert!(check(4, 250, Some(8000)).is_some(), "rules count like tools");
        assert_eq!((check(30, 300, Some(32_000)), check(30, 300, None)), (None, None));
    }
}
