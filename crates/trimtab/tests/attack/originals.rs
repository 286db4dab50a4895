//! What an agent sent, and what the store gives back for it. Makes long conversations whose every result is known by its id;
//! finds the handles in what reached a provider, and compares what they bring back byte for byte.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::{Value, json};
use trimtab_store::{Sqlite, Store};

use crate::{conversations::output, tally::Tally, upstream::Came};

/// Lines of a result.
const LINES: usize = 40;

/// What the tool gave in a call of a conversation.
pub(crate) fn result(conversation: usize, call: usize) -> String {
    format!("conversation {conversation}\n{}", output(conversation * 1000 + call, LINES))
}

/// A request of a conversation after so many calls.
pub(crate) fn request(conversation: usize, calls: usize) -> Vec<u8> {
    let mut messages =
        vec![json!({"role": "user", "content": format!("Task {conversation}: find the value.")})];
    for call in 0..calls {
        let id = format!("call_{conversation}_{call}");
        let arguments = json!({"path": format!("src/{call}.txt")}).to_string();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}},
        ]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result(conversation, call)}));
    }
    json!({"model": "claude-sonnet-4-5", "messages": messages}).to_string().into_bytes()
}

/// Handles that reached a provider, each with the original that the agent had sent.
#[derive(Default)]
pub(crate) struct Originals {
    by_handle: BTreeMap<String, String>,
    /// Those that the open store was asked for.
    compared: BTreeSet<String>,
    pub(crate) requests: usize,
}

impl Originals {
    /// Takes in every handle of what reached a provider.
    pub(crate) fn add(&mut self, tally: &mut Tally, came: &[Came]) {
        for came in came {
            let Ok(request) = serde_json::from_slice::<Value>(&came.body) else {
                tally.expect(false, || {
                    format!("the provider got {} bytes that are not JSON", came.body.len())
                });
                continue;
            };
            self.requests += 1;
            for message in request["messages"].as_array().into_iter().flatten() {
                self.add_message(tally, message);
            }
        }
    }

    fn add_message(&mut self, tally: &mut Tally, message: &Value) {
        let Some(id) = message["tool_call_id"].as_str() else { return };
        let numbers: Vec<usize> = id.split('_').filter_map(|word| word.parse().ok()).collect();
        let [conversation, call] = numbers[..] else { return };
        let (original, sent) = (result(conversation, call), message["content"].as_str().unwrap_or_default());
        if sent == original {
            return;
        }
        match handle_in(sent) {
            Some(handle) => drop(self.by_handle.insert(handle.to_owned(), original)),
            None => {
                tally
                    .expect(false, || format!("{id} was changed and no handle names the original: {sent:?}"));
            }
        }
    }

    /// Asks a store for every original that it was not asked for yet.
    pub(crate) fn compare(&mut self, tally: &mut Tally, store: &Path) {
        let store = match Sqlite::open(store) {
            Ok(store) => store,
            Err(fault) => return tally.expect(false, || format!("the store does not open: {fault}")),
        };
        for (handle, original) in &self.by_handle {
            if !self.compared.insert(handle.clone()) {
                continue;
            }
            match store.recall(handle) {
                Ok(found) => tally
                    .expect(found == original.as_bytes(), || format!("{handle} brings back another text")),
                Err(fault) => tally.expect(false, || format!("{handle} is lost: {fault}")),
            }
        }
    }

    /// Forgets which were asked for: the next comparison asks for all.
    pub(crate) fn compare_again(&mut self, tally: &mut Tally, store: &Path) {
        self.compared.clear();
        self.compare(tally, store);
    }

    /// Returns how many handles there are.
    pub(crate) fn handles(&self) -> usize {
        self.by_handle.len()
    }
}

/// Returns the handle that the last note of a text names.
fn handle_in(text: &str) -> Option<&str> {
    let (_, behind) = text.rsplit_once(" recall ")?;
    let (command, _) = behind.split_once(']')?;
    let handle = command.rsplit(' ').next()?;
    (handle.len() == 12 && handle.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(handle)
}
