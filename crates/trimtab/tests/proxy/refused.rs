//! Requests that a provider refuses: sent once more where that helps, and otherwise its own answer.

use crate::{
    TIGHT,
    conversations::anthropic,
    ok, refuse,
    running::Running,
    said,
    upstream::{Script, Upstream},
};

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

/// A conversation that needs trimming in the window of one model and has room enough in that of another.
fn conversation_for(model: &str, results: usize) -> Vec<u8> {
    let text = String::from_utf8(anthropic(results)).unwrap();
    text.replacen("claude-sonnet-4-5", model, 1).into_bytes()
}

/// Whether the proxy ends and another one begins with its store.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Restart,
}

/// Sends a conversation that is trimmed and answered like this, then goes on with a model that has room for all of it; gives the
/// share of this second request that is sent.
fn share_sent_after(between: Between, first: impl Fn() -> Script + Send + Sync + 'static) -> f64 {
    let upstream = Upstream::start(move |_, came| {
        let is_small = String::from_utf8_lossy(&came.body).contains(SMALL);
        if is_small { first() } else { ok("{}") }
    });
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags = ["--policy", "ladder", "--fold", "off", "--store", store.to_str().unwrap()];
    let start = || Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let mut proxy = start();
    let (small, large) = (conversation_for(SMALL, 110), conversation_for(LARGE, 111));
    proxy.post("/v1/messages", &small);
    assert!(upstream.came()[0].body.len() < small.len(), "the first request is trimmed");
    if let Between::Restart = between {
        proxy.terminate();
        proxy.child.wait().unwrap();
        proxy = start();
    }
    proxy.post("/v1/messages", &large);
    upstream.last().body.len() as f64 / large.len() as f64
}

const SMALL: &str = "claude-haiku-4-5";
const LARGE: &str = "claude-opus-5";

#[test]
fn nothing_of_a_plan_that_was_refused_is_repeated() {
    let refusals: [fn() -> Script; 4] = [
        || refuse("529 Overloaded", "Overloaded"),
        || refuse("401 Unauthorized", "invalid x-api-key"),
        || refuse("400 Bad Request", "model: unknown"),
        || refuse("400 Bad Request", "prompt is too long"),
    ];
    for between in [Between::Nothing, Between::Restart] {
        let accepted = share_sent_after(between, || ok("{}"));
        assert!(accepted < 0.95, "what was sent before is sent again: {accepted}, {between:?}");
        for refusal in refusals {
            let share = share_sent_after(between, refusal);
            assert!(share >= 1.0, "{:?}: {share}, {between:?}", refusal());
        }
    }
}
