//! Conversations of very many small messages take a time that grows as they do.

#![expect(clippy::expect_used, reason = "a test stops at what must not happen")]

use std::time::{Duration, Instant};

use trimtab_core::{Memory, Millis, Policy, Settings, Tokens, fit};

fn equal_messages(count: usize) -> Vec<u8> {
    let pair = r#"{"role":"user","content":"x"},{"role":"assistant","content":"x"},"#;
    let last = r#"{"role":"user","content":"x"}"#;
    format!(r#"{{"model":"claude-sonnet-4-5","messages":[{}{last}]}}"#, pair.repeat(count / 2)).into_bytes()
}

/// Fits a conversation at every length, and returns how long it took to remember what was sent.
fn time_to_remember(lengths: &[usize]) -> Duration {
    let settings = Settings::new(Policy::find_shipped("ladder").expect("a policy")).with_budget(Tokens(2000));
    let mut memory = Memory::default();
    let mut took = Duration::ZERO;
    for length in lengths {
        let fitted = fit(equal_messages(*length), &memory, &settings, Millis(0)).expect("a plan");
        let started = Instant::now();
        memory.remember_sent(&fitted.plan, Millis(0));
        took += started.elapsed();
    }
    took
}

#[test]
fn equal_messages_are_remembered_in_a_time_that_grows_as_they_do() {
    let (few, many) = (time_to_remember(&[1_000, 2_000]), time_to_remember(&[20_000, 40_000]));
    // Twenty times as many: a hundred times leaves room for a busy machine, the square would be four hundred.
    let most = few.max(Duration::from_millis(5)) * 100;
    assert!(many < most, "{few:?} for 2,000 messages, {many:?} for 40,000");
}
