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
