//! Fields for a provider's cache, over made-up conversations in every format: nothing of the client's is changed, what is sent is valid and
//! says the same, and a request that goes on is marked where the one before was.

mod requests;

use serde_json::Value;
use trimtab_core::{
    Format, Role, Tokens,
    account::ReturnCounts,
    chain, find_model,
    json::widen,
    markers::{AddedFields, CacheFields, MarkerField, MarkerTerms, choose_fields},
    parse_as,
    wire::request_of,
};

use crate::{checker, for_each_conversation, read};

/// What is inserted for a model whose provider accepts all that it has.
fn fields(request: &str, format: Format, blocks_after_edit: Option<usize>) -> AddedFields {
    let (marker, model) = match format {
        Format::Anthropic => (MarkerField::CacheControl, "claude-opus-5"),
        Format::Chat => (MarkerField::CacheControl, "claude-opus-4-6"),
        Format::Responses | Format::Gemini => (MarkerField::Breakpoint, "gpt-5.6-sol"),
    };
    let mut model = find_model(model).expect("a model");
    // Made-up conversations are short.
    model.cache.minimum = Tokens(1);
    let history = read(request, format);
    let terms = MarkerTerms {
        accepts: CacheFields { marker: Some(marker), key: true },
        model: Some(&model),
        tokens: Tokens(10_000),
        returns: ReturnCounts { in_time: 9, late: 0 },
        blocks_after_edit,
    };
    choose_fields(&history, &history, &terms)
}

/// Returns how many members of a name a value holds, however deep.
fn count(value: &Value, name: &str) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| count(item, name)).sum(),
        Value::Object(members) => {
            let own = usize::from(members.contains_key(name));
            own + members.values().map(|member| count(member, name)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[test]
fn markers_verbatim_and_valid_what_is_inserted_touches_nothing_else() {
    for_each_conversation("markers", |conversation, format, style| {
        let (request, _) = conversation.write(format, style);
        let history = read(&request, format);
        let added = fields(&request, format, Some(history.blocks().len() / 2));
        let sent = String::from_utf8(added.write_into(request.as_bytes())).expect("UTF-8");
        // Taken out again, the client's bytes are left.
        let (mut plain, mut from, mut grown) = (String::new(), 0, 0);
        for insertion in added.insertions() {
            let at = widen(insertion.at) + grown;
            assert_eq!(&sent[at..at + insertion.text.len()], insertion.text);
            plain += &sent[from..at];
            from = at + insertion.text.len();
            grown += insertion.text.len();
        }
        plain += &sent[from..];
        assert_eq!(plain, request);
        let marked = parse_as(sent.clone().into_bytes(), format).expect(&sent);
        assert_eq!(chain(&marked), chain(&history), "{sent}");
        let [input, output]: [Value; 2] =
            [&request, &sent].map(|text| serde_json::from_str(text).expect(text));
        assert_eq!(checker::faults(format.name(), &output), checker::faults(format.name(), &input), "{sent}");
        let count_all =
            |value: &Value| count(value, "cache_control") + count(value, "prompt_cache_breakpoint");
        // Some made-up clients set markers: these are all that there are.
        let (own, markers) = (count_all(&input), added.markers());
        assert_eq!(count_all(&output), own + markers, "{sent}");
        assert!(markers <= 4 && (own == 0 || markers == 0), "{sent}");
        assert_eq!(added, fields(&request, format, Some(history.blocks().len() / 2)), "the same each time");
        // A request that carries markers is a client's that sets its own.
        if markers > 0 {
            assert_eq!(fields(&sent, format, None).markers(), 0, "{sent}");
        }
    });
}

#[test]
fn markers_sticky_a_request_that_goes_on_keeps_all_but_the_last() {
    for_each_conversation("marked again", |conversation, format, style| {
        if format != Format::Anthropic {
            return;
        }
        let (request, _) = conversation.write(format, style);
        let whole = read(&request, format);
        let ends = |messages: usize| {
            whole.messages().get(messages).is_some_and(|entry| entry.role == Role::Assistant)
        };
        let Some(shorter) = (1..whole.messages().len()).rev().find(|messages| ends(*messages)) else {
            return;
        };
        let before = String::from_utf8(request_of(&whole, shorter)).expect("UTF-8");
        let places = |request: &str| -> Vec<usize> {
            let sent = fields(request, format, None).write_into(request.as_bytes());
            let history = parse_as(sent, format).expect("a request");
            let marked = history.blocks().iter().enumerate().filter(|(_, block)| block.marked);
            marked.map(|(number, _)| number).collect()
        };
        let (old, new) = (places(&before), places(&request));
        // The first request of a chat is not marked.
        if old.is_empty() {
            return;
        }
        let first = whole.messages().first().map_or(0, |entry| widen(entry.first_block));
        let in_head = |place: &&usize| **place < first;
        // The head keeps its markers, and the last of the one before is within reach of the last of this one, or marked again.
        let heads = |places: &[usize]| places.iter().filter(in_head).copied().collect::<Vec<_>>();
        assert_eq!(heads(&old), heads(&new), "{request}");
        if let (Some(end), Some(now)) = (old.last(), new.last()) {
            assert!(now.saturating_sub(*end) < 20 || new.contains(end), "{old:?}, {new:?}: {request}");
        }
    });
}
