//! Requests that a provider refuses: sent once more where that helps, and otherwise its own answer.

use crate::{TIGHT, conversations::anthropic, ok, refuse, running::Running, said, upstream::Upstream};

#[test]
fn a_request_that_is_too_long_is_sent_once_more_and_shorter() {
    let upstream = Upstream::start(|number, _| match number {
        0 => refuse("400 Bad Request", "prompt is too long: 250000 tokens > 200000 maximum"),
        _ => ok(r#"{"usage":{"input_tokens":9}}"#),
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!(
        (&answer.head[0][..], answer.header("x-trimtab-retried")),
        ("HTTP/1.1 200 OK", Some("too-long"))
    );
    let sizes: Vec<usize> = upstream.came().iter().map(|came| came.body.len()).collect();
    assert!(sizes.len() == 2 && sizes[1] < sizes[0], "{sizes:?}");
    proxy.post("/v1/messages", &anthropic(31));
    let third = upstream.last().body.len();
    assert!(third < sizes[0], "what the refusal taught is kept in mind: {third} of {}", sizes[0]);
    assert!((proxy.figure("trimtab_overflow_answers_total") - 1.0).abs() < 0.1);
}

#[test]
fn a_request_that_stays_too_long_gets_the_provider_s_answer() {
    let upstream = Upstream::start(|_, _| {
        refuse("400 Bad Request", "prompt is too long: 250000 tokens > 200000 maximum")
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert!(String::from_utf8_lossy(&answer.body).contains("prompt is too long"));
    assert_eq!(upstream.came().len(), 2, "once more, not for ever");
}

#[test]
fn a_fitted_request_that_is_refused_is_sent_as_it_came() {
    let whole = anthropic(30).len();
    let upstream = Upstream::start(move |_, came| {
        if came.body.len() < whole {
            refuse("400 Bad Request", "messages.3: something is wrong")
        } else {
            ok("{}")
        }
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!(
        (&answer.head[0][..], answer.header("x-trimtab-retried")),
        ("HTTP/1.1 200 OK", Some("refused"))
    );
    proxy.post("/v1/messages", &anthropic(31));
    assert_eq!(upstream.came().len(), 3, "the session is left alone from there on");
    assert_eq!(upstream.last().body, anthropic(31));
}

#[test]
fn a_request_that_is_wrong_anyway_gets_the_first_answer() {
    let upstream = Upstream::start(|_, _| refuse("400 Bad Request", "model: unknown"));
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert!(String::from_utf8_lossy(&answer.body).contains("model: unknown"));
    assert_eq!(said(&answer), "fitted");
}

/// Sends the conversation five times to a provider that refuses it, then to the same provider when it accepts all; gives the
/// sizes of what came last, refused and accepted.
fn sizes_after_refusals(status: &'static str, words: &'static str) -> (Running, Vec<usize>) {
    let upstream =
        Upstream::start(move |number, _| if number < 1 { ok("{}") } else { refuse(status, words) });
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags = [&TIGHT[..], &["--store", store.to_str().unwrap()]].concat();
    let proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    for results in 29..35 {
        proxy.post("/v1/messages", &anthropic(results));
    }
    let sizes = upstream.came().iter().map(|came| came.body.len()).collect();
    (proxy, sizes)
}

#[test]
fn a_gateway_s_refusal_of_a_large_body_shrinks_nothing() {
    let (proxy, sizes) =
        sizes_after_refusals("413 Payload Too Large", "<h1>413 Request Entity Too Large</h1> nginx");
    assert_eq!(sizes.len(), 6, "no answer of this kind is met with a shorter request");
    assert!(sizes.iter().all(|size| size * 10 >= sizes[0] * 9), "{sizes:?}");
    assert!(proxy.figure("trimtab_overflow_answers_total") < 0.5);
}

#[test]
fn refusals_that_a_shorter_request_does_not_end_are_not_remembered() {
    for words in ["prompt is too long", "prompt is too long: 250000 tokens > 200000 maximum"] {
        let (_, sizes) = sizes_after_refusals("413 Payload Too Large", words);
        assert_eq!(sizes.len(), 11, "each is sent once more");
        let last = sizes[9];
        assert!(last * 10 >= sizes[0] * 6, "{words}: {sizes:?}");
    }
}
