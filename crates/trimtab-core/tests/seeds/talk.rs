//! Conversations in the words of the seeds. Takes what was said and called; gives the request, and what a policy makes of it.

use serde_json::{Value, json};
use trimtab_core::{
    Facts, FittedRequest, Format, History, Memory, Millis, Policy, Settings, Tokens, facts, fit, parse_as,
};

/// A conversation under construction.
#[derive(Clone, Default)]
pub(crate) struct Talk {
    messages: Vec<Value>,
    calls: usize,
}

/// What a policy made of it.
pub(crate) struct Sent {
    pub(crate) fitted: FittedRequest,
    pub(crate) request: Value,
}

impl Talk {
    /// Begins with a system prompt and a task.
    pub(crate) fn new() -> Talk {
        Talk::default().says("system", "You are a helpful assistant").says("user", "Do the task.")
    }

    pub(crate) fn says(mut self, role: &str, text: &str) -> Talk {
        self.messages.push(json!({"role": role, "content": text}));
        self
    }

    /// Calls a tool; the call's id is its number, counted from 1.
    pub(crate) fn calls(self, tool: &str, arguments: Value, result: &str) -> Talk {
        self.calls_together(&[(tool, arguments, result)])
    }

    /// Calls several tools in one step.
    pub(crate) fn calls_together(mut self, calls: &[(&str, Value, &str)]) -> Talk {
        let first = self.calls + 1;
        let ids = first..first + calls.len();
        let asked: Vec<Value> = ids
            .clone()
            .zip(calls)
            .map(|(id, (tool, arguments, _))| {
                json!({"id": id.to_string(), "type": "function",
                    "function": {"name": tool, "arguments": arguments.to_string()}})
            })
            .collect();
        self.messages.push(json!({"role": "assistant", "content": null, "tool_calls": asked}));
        for (id, (_, _, result)) in ids.zip(calls) {
            self.messages.push(json!({"role": "tool", "tool_call_id": id.to_string(), "content": result}));
        }
        self.calls += calls.len();
        self
    }

    pub(crate) fn reads(self, path: &str, text: &str) -> Talk {
        self.calls("read_file", json!({"path": path}), text)
    }

    pub(crate) fn runs(self, command: &str, output: &str) -> Talk {
        self.calls("bash", json!({"command": command}), output)
    }

    pub(crate) fn request(&self) -> Value {
        json!({"model": "gpt-5", "messages": self.messages})
    }

    pub(crate) fn history(&self) -> History {
        parse_as(self.request().to_string().into_bytes(), Format::Chat).expect("a request")
    }

    pub(crate) fn facts(&self) -> Facts {
        facts(&self.history())
    }

    /// Counts the whole conversation.
    pub(crate) fn tokens(&self) -> u64 {
        self.fit("none", &[], 1_000_000).fitted.plan.before().0
    }

    pub(crate) fn fit(&self, policy: &str, changed: &[(&str, f64)], budget: u64) -> Sent {
        let changed: Vec<(String, f64)> =
            changed.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        self.fit_by(Policy::shipped_with(policy, &changed).expect(policy), budget)
    }

    pub(crate) fn fit_by(&self, policy: Policy, budget: u64) -> Sent {
        let request = self.request().to_string().into_bytes();
        let settings =
            Settings::new(policy).with_budget(Tokens(budget)).with_format(Format::Chat).with_cold_cache();
        let fitted = fit(request, &Memory::default(), &settings, Millis(0)).expect("a fit");
        let request = serde_json::from_slice(&fitted.request).expect("JSON");
        Sent { fitted, request }
    }

    /// Tells which results are whole under a policy with all the room there is, by their number.
    pub(crate) fn whole(&self, policy: &str, changed: &[(&str, f64)], budget: u64) -> Vec<usize> {
        let sent = self.fit(policy, changed, budget);
        (1..=self.calls).filter(|number| sent.result(*number) == self.result(*number)).collect()
    }

    fn result(&self, number: usize) -> Option<String> {
        result_in(&self.request(), number)
    }
}

impl Sent {
    /// Returns what stands as the result of a call, by the call's number; nothing where the exchange went.
    pub(crate) fn result(&self, number: usize) -> Option<String> {
        result_in(&self.request, number)
    }

    /// Returns the result, which must be there.
    pub(crate) fn shown(&self, number: usize) -> String {
        self.result(number).unwrap_or_else(|| panic!("result {number} went: {}", self.request))
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        self.request.to_string().contains(text)
    }
}

/// Returns what stands as the result of a call in a request.
pub(crate) fn result_in(request: &Value, number: usize) -> Option<String> {
    let messages = request["messages"].as_array().expect("messages").iter();
    let id = number.to_string();
    let mut own = messages.filter(|message| message["tool_call_id"] == id.as_str());
    own.next().map(|message| message["content"].as_str().expect("a text").to_owned())
}

/// Room for everything.
pub(crate) const ROOM: u64 = 10_000_000;

/// Lines of a file, all different, and different in every version.
pub(crate) fn source(version: usize, lines: usize) -> String {
    (0..lines).map(|line| format!("    value_{line} = compute({line}, version={version})\n")).collect()
}

/// Output of a command: lines of 50 characters.
pub(crate) fn output(lines: usize) -> String {
    (0..lines)
        .map(|line| format!("{line:06} imported one more record of many {:08}\n", line * 7919))
        .collect()
}
