//! What is hidden: valid in every format, repeated in the next request and after a kill, compressed like the original.

use std::io::{Read, Write};

use serde_json::Value;

use crate::{
    BEHIND, GEMINI, STEADY, TIGHT, checker, common,
    conversations::{anthropic, chat, gemini, referenced, responses, thinking},
    good,
    running::Running,
    said,
};

/// Checks that a conversation is hidden in part, that what is sent is valid, and that of two further requests one at least repeats what
/// was sent: room is made for more than one request.
#[track_caller]
fn check_fitted(path: &str, format: &str, make: fn(usize) -> Vec<u8>) {
    let upstream = good();
    let proxy = Running::before(&upstream, &STEADY);
    let mut before: Option<Vec<u8>> = None;
    let mut repeated = 0;
    for results in [30, 31, 32] {
        let answer = proxy.post(path, &make(results));
        assert_eq!(said(&answer), "fitted", "{:?}\n{}", answer.head, proxy.words());
        let sent = upstream.last().body;
        let [input, output]: [Value; 2] =
            [&make(results)[..], &sent].map(|bytes| serde_json::from_slice(bytes).unwrap());
        assert!(sent.len() < make(results).len());
        let faults = checker::new_faults(format, &input, &output);
        assert!(faults.is_empty(), "{faults:#?}");
        if let Some(before) = before {
            let same = before.iter().zip(&sent).take_while(|(one, other)| one == other).count();
            repeated += usize::from(same + BEHIND > before.len());
        }
        before = Some(sent);
    }
    assert!(repeated > 0, "every request changes what was sent before");
}

#[test]
fn a_long_conversation_with_anthropic_is_fitted_and_repeated() {
    check_fitted("/v1/messages", "anthropic", anthropic);
}

#[test]
fn a_long_chat_is_fitted_and_repeated() {
    check_fitted("/v1/chat/completions", "chat", chat);
}

#[test]
fn a_long_conversation_in_responses_is_fitted_and_repeated() {
    check_fitted("/v1/responses", "responses", responses);
}

#[test]
fn a_long_conversation_that_refers_to_stored_items_is_fitted_and_repeated() {
    check_fitted("/v1/responses", "responses", referenced);
}

#[test]
fn a_long_conversation_whose_thinking_alone_is_cleared_by_the_server_is_fitted_and_repeated() {
    check_fitted("/v1/messages", "anthropic", thinking);
}

#[test]
fn a_long_conversation_with_gemini_is_fitted_and_repeated() {
    check_fitted(GEMINI, "gemini", gemini);
}

#[test]
fn a_killed_proxy_says_the_same_again_and_what_it_hid_is_recalled() {
    let upstream = good();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags: Vec<&str> = STEADY.iter().copied().chain(["--store", store.to_str().unwrap()]).collect();
    let kept = [("TRIMTAB_NO_STORE", "0")];
    let mut first = Running::with(&upstream, &flags, &kept);
    assert_eq!(said(&first.post("/v1/messages", &anthropic(30))), "fitted");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let sent = String::from_utf8(upstream.last().body).unwrap();
    let again = Running::with(&upstream, &flags, &kept);
    assert_eq!(said(&again.post("/v1/messages", &anthropic(31))), "fitted");
    let later = String::from_utf8(upstream.last().body).unwrap();
    let same = sent.bytes().zip(later.bytes()).take_while(|(one, other)| one == other).count();
    assert!(same + BEHIND > sent.len(), "only {same} of {} bytes are sent again", sent.len());
    let (_, handle) = common::recall_in(&sent).expect("a note");
    let recalled = common::trimtab(&["recall", &handle, "--store", store.to_str().unwrap()]);
    let original = recalled.text();
    let first_line = original.lines().next().unwrap();
    assert!(String::from_utf8(anthropic(30)).unwrap().contains(first_line), "{first_line}");
}

#[test]
fn compressed_requests_are_fitted_and_compressed_again() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    let gzip = |body: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    let gunzip = |body: &[u8]| {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(body).read_to_end(&mut text).unwrap();
        text
    };
    for (name, packed) in
        [("gzip", gzip(&anthropic(30))), ("zstd", zstd::encode_all(&anthropic(30)[..], 3).unwrap())]
    {
        let answer =
            proxy.ask(&["POST /v1/messages HTTP/1.1", &format!("Content-Encoding: {name}")], &packed);
        assert_eq!(said(&answer), "fitted", "{name}");
        let came = upstream.last();
        assert_eq!(came.header("content-encoding"), Some(name));
        let sent =
            if name == "gzip" { gunzip(&came.body) } else { zstd::decode_all(&came.body[..]).unwrap() };
        let faults = checker::faults("anthropic", &serde_json::from_slice(&sent).unwrap());
        assert!(sent.len() < anthropic(30).len() && faults.is_empty(), "{faults:?}");
    }
    let packed = gzip(&chat(1));
    proxy.ask(&["POST /v1/chat/completions HTTP/1.1", "Content-Encoding: gzip"], &packed);
    assert_eq!(upstream.last().body, packed, "what fits keeps its own compression");
}

#[test]
fn counting_is_asked_for_what_would_be_sent_and_leaves_no_trace() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    let count = "/v1beta/models/gemini-2.5-pro:countTokens?key=k";
    let cases: [(&str, &str, Vec<u8>); 3] = [
        ("/v1/messages/count_tokens", "/v1/messages", anthropic(30)),
        ("/v1/responses/input_tokens", "/v1/responses", responses(30)),
        (count, GEMINI, gemini(30)),
    ];
    for (counting, path, body) in cases {
        assert_eq!(said(&proxy.post(counting, &body)), "fitted", "{counting}");
        let counted = upstream.last();
        assert_eq!(counted.head[0], format!("POST {counting} HTTP/1.1"));
        assert!(counted.body.len() < body.len());
        proxy.post(path, &body);
        assert_eq!(upstream.last().body, counted.body, "{path}");
    }
}
