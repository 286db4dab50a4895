//! Conversations inside other bodies, and those of servers with other formats: Code Assist, Bedrock, Ollama.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    GEMINI, STEADY, TIGHT, checker,
    conversations::{anthropic, bytes, chat, gemini},
    good, ok, refuse,
    running::Running,
    said,
    upstream::{Came, Script, Upstream},
};

/// A proxy in front of a provider that is Code Assist, Bedrock and Ollama at once.
fn before(upstream: &Upstream, flags: &[&str]) -> Running {
    let named = ["code-assist", "bedrock", "ollama"].map(|name| format!("{name}={}", upstream.url));
    let named: Vec<&str> = named.iter().flat_map(|named| ["--upstream", named]).collect();
    Running::before(upstream, &[flags, &named].concat())
}

/// A request of gemini-cli with a Google account, with what precedes and follows the conversation.
fn code_assist(results: usize) -> Vec<u8> {
    let inner = String::from_utf8(gemini(results)).unwrap();
    format!(
        "{{ \"model\" : \"gemini-2.5-pro\",\"project\":\"p\", \"request\": {inner} , \"user_prompt_id\":\"u\"}}\n"
    )
    .into_bytes()
}

/// A request of Anthropic's SDK for Bedrock: the model stands in the path.
fn bedrock(results: usize) -> Vec<u8> {
    let mut request: Value = serde_json::from_slice(&anthropic(results)).unwrap();
    let members = request.as_object_mut().unwrap();
    members.remove("model");
    members.remove("stream");
    members.insert("anthropic_version".to_owned(), json!("bedrock-2023-05-31"));
    bytes(&request)
}

const INVOKE: &str = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke";
const BEARER: &str = "Authorization: Bearer bedrock-api-key";

fn post(proxy: &Running, path: &str, header: &str, body: &[u8]) -> Came {
    proxy.ask(&[&format!("POST {path} HTTP/1.1"), "Content-Type: application/json", header], body)
}

#[test]
fn a_conversation_with_code_assist_is_fitted_inside_its_envelope() {
    const REPORT: &str =
        r#"{"response":{"usageMetadata":{"promptTokenCount":900,"candidatesTokenCount":7}}}"#;
    for path in ["/v1internal:generateContent", "/v1internal:streamGenerateContent?alt=sse"] {
        let upstream = Upstream::start(|_, came| {
            if came.head[0].contains("alt=sse") {
                let stream = vec!["Content-Type: text/event-stream".to_owned()];
                Script::Whole("200 OK", stream, format!("data: {REPORT}\r\n\r\n").into_bytes())
            } else {
                ok(REPORT)
            }
        });
        let proxy = before(&upstream, &STEADY);
        for results in [30, 31] {
            let body = code_assist(results);
            let answer = proxy.post(path, &body);
            assert_eq!(said(&answer), "fitted", "{:?}\n{}", answer.head, proxy.words());
            let sent = String::from_utf8(upstream.last().body).unwrap();
            assert!(sent.len() < body.len());
            let head = "{ \"model\" : \"gemini-2.5-pro\",\"project\":\"p\", \"request\": {";
            assert!(sent.starts_with(head) && sent.ends_with(" , \"user_prompt_id\":\"u\"}\n"), "{sent}");
            let [input, output]: [Value; 2] =
                [&body[..], sent.as_bytes()].map(|bytes| serde_json::from_slice(bytes).unwrap());
            let faults = checker::new_faults("gemini", &input["request"], &output["request"]);
            assert!(faults.is_empty(), "{faults:#?}");
        }
        // What the provider reports inside its answer's envelope is counted.
        proxy.wait_for("trimtab_reported_tokens_total{kind=\"input\"}", 1800.0);
    }
}

#[test]
fn what_fits_is_sent_to_code_assist_byte_for_byte() {
    let upstream = good();
    let proxy = before(&upstream, &TIGHT);
    let body = code_assist(2);
    assert_eq!(said(&proxy.post("/v1internal:generateContent", &body)), "kept");
    assert_eq!(upstream.last().body, body);
}

#[test]
fn a_body_without_the_conversation_that_its_path_promises_passes() {
    let upstream = good();
    let proxy = before(&upstream, &TIGHT);
    for body in [&gemini(30)[..], b"no json", b"{\"request\":\"text\"}"] {
        let answer = proxy.post("/v1internal:generateContent", body);
        assert_eq!(answer.header("x-trimtab-reason"), Some("no conversation in the body"));
        assert_eq!(upstream.last().body, body);
    }
}

#[test]
fn a_refused_conversation_with_code_assist_is_sent_again_in_its_envelope() {
    let upstream = Upstream::start(|number, _| match number {
        0 => refuse(
            "400 Bad Request",
            "The input token count (20000) exceeds the maximum number of tokens allowed (10000).",
        ),
        _ => ok("{}"),
    });
    let proxy = before(&upstream, &["--policy", "ladder", "--fold", "off"]);
    let answer = proxy.post("/v1internal:generateContent", &code_assist(30));
    assert_eq!(answer.header("x-trimtab-retried"), Some("too-long"), "{}", proxy.words());
    let [first, second] = [0, 1].map(|number: usize| upstream.came()[number].body.clone());
    let second_request: Value = serde_json::from_slice(&second).unwrap();
    assert_eq!(second_request["project"], "p");
    assert!(second.len() < first.len() && second_request["request"]["contents"].is_array());
}

#[test]
fn tokens_of_a_wrapped_conversation_are_counted_as_it_would_be_sent() {
    let upstream = good();
    let proxy = before(&upstream, &TIGHT);
    let inner = String::from_utf8(gemini(30)).unwrap();
    let wrapped = format!("{{\"generateContentRequest\":{inner}}}");
    let count = "/v1beta/models/gemini-2.5-pro:countTokens?key=k";
    for (path, key, body) in [
        (count, "generateContentRequest", wrapped.as_bytes()),
        ("/v1internal:countTokens", "request", &code_assist(30)),
    ] {
        assert_eq!(said(&proxy.post(path, body)), "fitted", "{path}");
        let counted: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        proxy.post(GEMINI, &gemini(30));
        let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        assert_eq!(counted[key], sent, "{path}");
    }
}

#[test]
fn no_intent_is_offered_where_answers_come_wrapped() {
    let upstream = good();
    let proxy = before(&upstream, &["--intent"]);
    let edit = json!([{"functionDeclarations": [{"name": "edit_file", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}, "old_string": {"type": "string"}, "new_string": {"type": "string"}}}}]}]);
    let mut request: Value = serde_json::from_slice(&gemini(2)).unwrap();
    request["tools"] = edit;
    proxy.post(GEMINI, &bytes(&request));
    assert!(String::from_utf8(upstream.last().body).unwrap().contains("\"intent\""));
    let body = bytes(&json!({"model": "gemini-2.5-pro", "request": request}));
    proxy.post("/v1internal:generateContent", &body);
    assert_eq!(upstream.last().body, body);
}

/// A message of Bedrock's stream, with sums of zero.
fn message(event: &str) -> Vec<u8> {
    let payload = format!("{{\"bytes\":\"{}\"}}", STANDARD.encode(event));
    let four = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
    [&four(payload.len() + 16)[..], &four(0), &[0; 4], payload.as_bytes(), &[0; 4]].concat()
}

#[test]
fn a_conversation_with_bedrock_that_nobody_signed_is_fitted() {
    let events: Vec<u8> = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":900,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","usage":{"output_tokens":45}}"#,
    ]
    .iter()
    .flat_map(|event| message(event))
    .collect();
    let kept = events.clone();
    let upstream = Upstream::start(move |_, came| {
        if came.head[0].contains("stream") {
            let kind = vec!["Content-Type: application/vnd.amazon.eventstream".to_owned()];
            Script::Chunks(kind, kept.chunks(50).map(<[u8]>::to_vec).collect(), std::time::Duration::ZERO)
        } else {
            ok(r#"{"usage":{"input_tokens":900,"output_tokens":45}}"#)
        }
    });
    let proxy = before(&upstream, &STEADY);
    for (number, path) in [INVOKE.to_owned(), format!("{INVOKE}-with-response-stream")].iter().enumerate() {
        let body = bedrock(30 + number);
        let answer = post(&proxy, path, BEARER, &body);
        assert_eq!(said(&answer), "fitted", "{:?}\n{}", answer.head, proxy.words());
        let came = upstream.last();
        assert_eq!(came.head[0], format!("POST {path} HTTP/1.1"));
        let [input, output]: [Value; 2] =
            [&body, &came.body].map(|bytes| serde_json::from_slice(bytes).unwrap());
        let faults = checker::new_faults("anthropic", &input, &output);
        assert!(faults.is_empty() && came.body.len() < body.len(), "{faults:#?}");
        assert_eq!((&output["anthropic_version"], output.get("model")), (&input["anthropic_version"], None));
        if path.ends_with("stream") {
            assert_eq!(answer.body, events, "the stream is handed on as it is");
        }
        // The window and the prices are those of the model in the path.
        assert!(answer.header("x-trimtab-tokens-sent").is_some());
    }
    proxy.wait_for("trimtab_reported_tokens_total{kind=\"output\"}", 90.0);
    assert!(proxy.words().contains("anthropic.claude-sonnet-4-5"), "{}", proxy.words());
}

#[test]
fn what_is_signed_or_in_a_format_of_its_own_passes_with_its_reason() {
    const SIGNATURE: &str = "Authorization: AWS4-HMAC-SHA256 Credential=k/20261118/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00";
    let upstream = good();
    let proxy = before(&upstream, &TIGHT);
    let converse = INVOKE.replace("/invoke", "/converse");
    for (path, header, body, reason) in [
        (INVOKE, SIGNATURE, bedrock(30), "the body is signed (Bedrock)"),
        (
            "/model/meta.llama3-70b-instruct-v1%3A0/invoke",
            BEARER,
            b"{\"prompt\":\"hello\"}".to_vec(),
            "the format of the model's maker (Bedrock); that of Anthropic's is fitted",
        ),
        (
            converse.as_str(),
            BEARER,
            b"{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"hello\"}]}]}".to_vec(),
            "Bedrock's Converse format; invoke with a model of Anthropic's is fitted",
        ),
        ("/api/chat", "X-Other: 1", chat(30), "Ollama's own format; /v1/chat/completions is fitted"),
    ] {
        let answer = post(&proxy, path, header, &body);
        assert_eq!((said(&answer), answer.header("x-trimtab-reason")), ("passed", Some(reason)), "{path}");
        assert_eq!(upstream.last().body, body, "{path}");
    }
}

#[test]
fn a_body_that_a_signature_leaves_open_is_fitted() {
    let upstream = good();
    let proxy = before(&upstream, &TIGHT);
    let line = format!("POST {INVOKE} HTTP/1.1");
    let signed = "Authorization: AWS4-HMAC-SHA256 Credential=k/20261118/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00";
    let open = [line.as_str(), signed, "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD"];
    assert_eq!(said(&proxy.ask(&open, &bedrock(30))), "fitted");
    let came = upstream.last();
    assert!(came.body.len() < bedrock(30).len());
    assert!(came.header("authorization").is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 ")));
}
