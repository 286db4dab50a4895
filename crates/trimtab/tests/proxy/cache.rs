//! A provider's cache where markers are needed, by the rules of the price table. Takes requests as they reach the provider; gives the
//! usage that it reports. Shares no code with the program: it knows only what a marker is.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Mutex,
};

use serde_json::{Value, json};
use trimtab_core::{
    Usage, find_model,
    prices::{CacheLanding, Model},
};

use crate::{
    ok,
    upstream::{Came, Script},
};

/// The most markers that the provider accepts.
const MOST: usize = 4;

/// What is in the cache: where some request set a marker.
pub(crate) struct MarkedCache {
    model: Model,
    entries: Mutex<HashSet<u64>>,
}

/// A block as the provider sees it.
struct SeenBlock {
    words: String,
    marked: bool,
}

impl MarkedCache {
    pub(crate) fn new(model: &str) -> MarkedCache {
        MarkedCache { model: find_model(model).unwrap(), entries: Mutex::default() }
    }

    /// Returns the usage of a request; a fault where it has more markers than the provider accepts.
    pub(crate) fn usage(&self, request: &Value) -> Result<Usage, String> {
        let CacheLanding::Breakpoints { look_back } = self.model.cache.landing else { panic!("no markers") };
        let blocks = seen_blocks(request);
        let markers: Vec<usize> =
            blocks.iter().enumerate().filter(|(_, block)| block.marked).map(|(place, _)| place).collect();
        if markers.len() > MOST {
            return Err(format!("a maximum of 4 blocks with cache_control, found {}", markers.len()));
        }
        let (mut hash, mut tokens) = (DefaultHasher::new(), 0);
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for block in &blocks {
            block.words.hash(&mut hash);
            tokens += u64::try_from(block.words.len()).unwrap() / 4 + 1;
            ends.push((hash.finish(), tokens));
        }
        let mut entries = self.entries.lock().unwrap();
        let minimum = self.model.cache.minimum.0;
        let is_kept = |place: usize| entries.contains(&ends[place].0) && ends[place].1 >= minimum;
        let found = markers.iter().filter_map(|&marker| {
            let nearest = (marker + 1).saturating_sub(look_back);
            (nearest..=marker).rev().find(|&place| is_kept(place))
        });
        let read = found.max().map_or(0, |place| ends[place].1);
        let written = markers.last().map_or(0, |&place| ends[place].1);
        let written = if written < minimum { 0 } else { written.saturating_sub(read) };
        entries.extend(markers.iter().map(|&place| ends[place].0));
        Ok(Usage {
            input: tokens - read - written,
            cache_read: read,
            cache_write: written,
            ..Usage::default()
        })
    }

    /// Returns what a request costs.
    pub(crate) fn dollars(&self, request: &Value) -> f64 {
        self.model.input_cost(self.usage(request).unwrap())
    }

    /// Answers a request as Anthropic does, or a router in the format of Chat.
    pub(crate) fn answer(&self, came: &Came) -> Script {
        let request: Value = serde_json::from_slice(&came.body).unwrap();
        let usage = match self.usage(&request) {
            Ok(usage) => usage,
            Err(fault) => return crate::refuse("400 Bad Request", &fault),
        };
        let Usage { input, cache_read, cache_write, .. } = usage;
        let report = if came.head[0].contains("/chat/completions") {
            json!({"prompt_tokens": usage.total_input(), "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": cache_read, "cache_write_tokens": cache_write}})
        } else {
            json!({"input_tokens": input, "cache_read_input_tokens": cache_read,
                "cache_creation_input_tokens": cache_write, "output_tokens": 7})
        };
        ok(&json!({"usage": report}).to_string())
    }
}

/// Lists tools, system and messages in the provider's order, a text as the one block that it is.
fn seen_blocks(request: &Value) -> Vec<SeenBlock> {
    let mut blocks = Vec::new();
    let mut add = |role: &str, content: &Value| match content {
        Value::Array(items) => blocks.extend(items.iter().map(|item| SeenBlock {
            words: format!("{role} {}", without_markers(item)),
            marked: is_marked(item),
        })),
        Value::String(_) => {
            let words = format!("{role} {}", json!({"type": "text", "text": content}));
            blocks.push(SeenBlock { words, marked: false });
        }
        _ => {}
    };
    add("tools", &request["tools"]);
    add("system", &request["system"]);
    for message in request["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        add(role, &message["content"]);
        add(role, &message["tool_calls"]);
    }
    blocks
}

fn is_marked(item: &Value) -> bool {
    item["cache_control"]["type"] == "ephemeral"
}

fn without_markers(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("cache_control");
    }
    item
}
