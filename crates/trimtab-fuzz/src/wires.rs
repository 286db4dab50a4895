//! Requests of one format: read and written back byte for byte, read again after a shorter one, and fitted into a small
//! budget, where the checker that knows nothing of the library judges what comes out.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use trimtab_core::{
    CacheHint, Format, History, Memory, Millis, Policy, Settings, fit, parse, parse_as,
    policy::{Folding, policies},
    recall, resend,
    wire::{parse_after, repair, request_of},
    write,
};

use crate::{checker, number_of, settings};

/// Every shipped policy, read once.
static POLICIES: LazyLock<Vec<Policy>> =
    LazyLock::new(|| policies().map(|(name, _)| Policy::find_shipped(name).expect("a shipped policy")).collect());

/// Checks a request of a format.
pub fn check_request(data: &[u8], format: Format) {
    if let Ok(history) = parse(data.to_vec()) {
        assert!(write(&history, &[]) == data, "read as {}, written back otherwise", history.format());
    }
    let Ok(history) = parse_as(data.to_vec(), format) else { return };
    assert!(write(&history, &[]) == data, "written back otherwise");
    check_spans(&history);
    check_warm(&history, format);
    let _ = repair(&history);
    // Half a JSON string or a lone surrogate is carried, but the checker could not read it.
    let Ok(before) = serde_json::from_slice::<Value>(data) else { return };
    check_fit(data, format, &before);
}

fn check_spans(history: &History) {
    let bytes = history.bytes();
    for entry in history.entries() {
        assert!(entry.span.end() <= bytes.len());
    }
    for block in history.blocks() {
        assert!(block.span.start() <= block.span.end() && block.span.end() <= bytes.len());
        let _ = (history.block_text(block), history.tool_name(block), history.call_id(block));
        if let Some(partner) = block.partner {
            assert!(history.block(partner).is_some());
        }
    }
}

/// Reading after a shorter request gives what reading from the start gives.
fn check_warm(history: &History, format: Format) {
    let shorter = request_of(history, history.messages().len() / 2);
    let Ok(earlier) = parse_as(shorter, format) else { panic!("half of a request is none") };
    let warm = parse_after(&earlier, history.bytes().to_vec()).expect("read before");
    assert_eq!(warm.entries(), history.entries());
    assert_eq!(warm.blocks(), history.blocks());
}

fn check_fit(data: &[u8], format: Format, before: &Value) {
    let settings = drawn_settings(data, format);
    let mut memory = Memory::default();
    let fitted = match fit(data.to_vec(), &memory, &settings, Millis(0)) {
        Ok(fitted) => fitted,
        Err(fault) => panic!("{fault}"),
    };
    let after: Value = serde_json::from_slice(&fitted.request).expect("JSON");
    // What a provider would refuse anyway is only carried.
    if checker::faults(format.name(), before).is_empty() {
        let faults = checker::new_faults(format.name(), before, &after);
        assert!(faults.is_empty(), "{faults:?}\n{}", String::from_utf8_lossy(&fitted.request));
    }
    for decision in fitted.plan.decisions() {
        if let Some(handle) = &decision.handle {
            assert!(recall(&fitted.history, handle).is_some(), "{handle} names nothing");
        }
    }
    memory.remember_sent(&fitted.plan, Millis(0));
    let again = resend(Arc::clone(&fitted.history), &memory);
    let _ = again.keeps_all();
    let next = fit(data.to_vec(), &memory, &settings, Millis(1000)).expect("fitted before");
    let _ = next.request;
}

/// Another policy and another budget for each input, most of them too small.
fn drawn_settings(data: &[u8], format: Format) -> Settings {
    let number = number_of(data);
    let budget = [1, 50, 400, 3000][number / 16 % 4];
    let folding = Folding::ALL[number / 64 % Folding::ALL.len()];
    let cache = if number / 256 % 2 == 0 { CacheHint::Unknown } else { CacheHint::Cold };
    settings(&POLICIES[number % POLICIES.len()], budget, format).with_folding(folding).with_cache(cache)
}
