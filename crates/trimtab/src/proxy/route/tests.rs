//! Every row of the table, and what no row knows.

use super::*;

const NAMED: [&str; 6] = [
    "azure=https://r.openai.azure.com",
    "vertex=https://eu-aiplatform.googleapis.com",
    "bedrock=https://bedrock-runtime.eu-west-1.amazonaws.com",
    "chatgpt=https://chatgpt.com/backend-api/codex",
    "code-assist=https://cloudcode-pa.googleapis.com",
    "work=https://gateway.example/v1",
];

fn upstreams(flags: &[&str]) -> Upstreams {
    let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
    Upstreams::resolve(&flags, &[], |_| None, "127.0.0.1:8790".parse().unwrap()).unwrap().0
}

fn ask(flags: &[&str], method: &Method, path: &str, header: Option<&'static str>) -> Result<Route, NoRoute> {
    let headers: HeaderMap = header
        .map(|name| (hyper::header::HeaderName::from_static(name), "1".parse().unwrap()))
        .into_iter()
        .collect();
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    find_route(&upstreams(flags), method, path, query, &headers)
}

/// Checks what a path asks for, where it is asked for, and the model that it names.
#[track_caller]
fn check(method: &Method, path: &str, header: Option<&'static str>, expected: (&str, &str, Option<&str>)) {
    let found = ask(&NAMED, method, path, header).unwrap();
    let query = path.split_once('?').map(|(_, query)| query);
    let uri = found.upstream.uri(&found.path, query).unwrap().to_string();
    assert_eq!((found.endpoint.name(), uri.as_str(), found.model.as_deref()), expected, "{method} {path}");
}

#[track_caller]
fn check_post(path: &str, endpoint: &str, uri: &str) {
    check(&Method::POST, path, None, (endpoint, uri, None));
}

#[track_caller]
fn check_refused(flags: &[&str], method: &Method, path: &str, words: &str) {
    let refused = ask(flags, method, path, None).expect_err(path).describe();
    assert!(refused.contains(words), "{path}: {refused}");
}

#[test]
fn conversations_with_anthropic_are_known_by_their_path() {
    check_post("/v1/messages", "messages", "https://api.anthropic.com/v1/messages");
    check_post("/v1/messages/", "messages", "https://api.anthropic.com/v1/messages/");
    check_post("/v1/messages?beta=true", "messages", "https://api.anthropic.com/v1/messages?beta=true");
    check_post("/v1/messages/count_tokens", "count", "https://api.anthropic.com/v1/messages/count_tokens");
    check_post("/v1/messages/batches", "other", "https://api.anthropic.com/v1/messages/batches");
}

#[test]
fn conversations_with_openai_are_known_by_their_path() {
    check_post("/v1/chat/completions", "chat", "https://api.openai.com/v1/chat/completions");
    check_post("/chat/completions", "chat", "https://api.openai.com/v1/chat/completions");
    check_post("/v1/responses", "responses", "https://api.openai.com/v1/responses");
    check_post("/responses", "responses", "https://api.openai.com/v1/responses");
    check_post("/v1/responses/input_tokens", "count", "https://api.openai.com/v1/responses/input_tokens");
    check_post("/v1/responses/compact", "other", "https://api.openai.com/v1/responses/compact");
    let codex = "/backend-api/codex/responses";
    check_post(codex, "responses", "https://chatgpt.com/backend-api/codex/responses");
}

#[test]
fn conversations_with_gemini_are_known_by_their_path() {
    let host = "https://generativelanguage.googleapis.com";
    for (verb, endpoint) in
        [("generateContent", "generate"), ("streamGenerateContent", "generate"), ("countTokens", "count")]
    {
        for version in ["v1beta", "v1", "v1alpha"] {
            let path = format!("/{version}/models/gemini-3-pro:{verb}");
            check(&Method::POST, &path, None, (endpoint, &format!("{host}{path}"), Some("gemini-3-pro")));
        }
        let path = format!("/models/gemini-3-pro:{verb}");
        let with_version = format!("{host}/v1beta{path}");
        check(&Method::POST, &path, None, (endpoint, &with_version, Some("gemini-3-pro")));
    }
    let chat = "/v1beta/openai/chat/completions";
    check_post(chat, "chat", &format!("{host}{chat}"));
    check_post("/v1beta/models/m:embedContent", "other", &format!("{host}/v1beta/models/m:embedContent"));
}

#[test]
fn conversations_with_vertex_are_known_by_their_path() {
    let host = "https://eu-aiplatform.googleapis.com";
    for (publisher, model, verb, endpoint) in [
        ("google", "gemini-3-pro", "generateContent", "generate"),
        ("google", "gemini-3-pro", "streamGenerateContent", "generate"),
        ("google", "gemini-3-pro", "countTokens", "count"),
        ("anthropic", "claude-sonnet-4-5@20250929", "rawPredict", "messages"),
        ("anthropic", "claude-sonnet-4-5@20250929", "streamRawPredict", "messages"),
    ] {
        for version in ["v1", "v1beta1"] {
            let path =
                format!("/{version}/projects/p/locations/eu/publishers/{publisher}/models/{model}:{verb}");
            check(&Method::POST, &path, None, (endpoint, &format!("{host}{path}"), Some(model)));
        }
    }
    let count = "/v1/projects/p/locations/eu/publishers/anthropic/models/count-tokens:rawPredict";
    check_post(count, "count", &format!("{host}{count}"));
}

#[test]
fn paths_of_azure_go_to_azure_undoubled() {
    let host = "https://r.openai.azure.com";
    for (path, endpoint) in [
        ("/openai/deployments/d/chat/completions?api-version=2024-10-21", "chat"),
        ("/openai/v1/chat/completions", "chat"),
        ("/openai/v1/responses?api-version=preview", "responses"),
        ("/openai/responses?api-version=2025-04-01-preview", "responses"),
        ("/openai/deployments/d/embeddings", "other"),
    ] {
        check_post(path, endpoint, &format!("{host}{path}"));
        check_post(&format!("/azure{path}"), endpoint, &format!("{host}{path}"));
        // An Azure address as OpenAI's own serves too.
        let flags = ["openai=https://r.openai.azure.com/openai/v1"];
        let found = ask(&flags, &Method::POST, path, None).unwrap();
        let query = path.split_once('?').map(|(_, query)| query);
        assert_eq!(found.upstream.uri(&found.path, query).unwrap().to_string(), format!("{host}{path}"));
    }
}

#[test]
fn conversations_with_code_assist_are_known_by_their_path() {
    let host = "https://cloudcode-pa.googleapis.com";
    for (verb, endpoint) in
        [("generateContent", "generate"), ("streamGenerateContent", "generate"), ("countTokens", "count")]
    {
        for path in [format!("/v1internal:{verb}"), format!("/code-assist/v1internal:{verb}")] {
            check_post(&path, endpoint, &format!("{host}/v1internal:{verb}"));
            let found = ask(&NAMED, &Method::POST, &path, None).unwrap();
            assert_eq!(found.wrapping, Wrapping::Always("request"));
            assert!(!found.takes_plain_requests());
        }
    }
    check_post("/v1internal:loadCodeAssist", "other", &format!("{host}/v1internal:loadCodeAssist"));
}

/// Checks what becomes of a request to Bedrock with these headers.
#[track_caller]
fn check_bedrock(path: &str, pairs: &[(&'static str, &'static str)], expected: Result<&str, &str>) {
    let headers: HeaderMap = pairs
        .iter()
        .map(|(name, value)| (hyper::header::HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    let (bare, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    for path in [bare.to_owned(), format!("/bedrock{bare}")] {
        let found = find_route(&upstreams(&NAMED), &Method::POST, &path, query, &headers).unwrap();
        assert_eq!(found.upstream.host().unwrap(), "bedrock-runtime.eu-west-1.amazonaws.com");
        let said = match found.endpoint {
            RouteEndpoint::Answer(Format::Anthropic) => Ok(found.model.unwrap()),
            RouteEndpoint::Unfitted(reason) => Err(reason),
            other => panic!("{path}: {other:?}"),
        };
        match (said, expected) {
            (Ok(model), Ok(expected)) => assert_eq!(model, expected),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{path}: {reason}"),
            (said, _) => panic!("{path}: {said:?}"),
        }
    }
}

#[test]
fn conversations_with_anthropics_models_on_bedrock_are_known_by_their_path() {
    let invoke = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke";
    let model = Ok("us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    check_bedrock(invoke, &[], model);
    check_bedrock(invoke, &[("authorization", "Bearer k")], model);
    check_bedrock(&format!("{invoke}-with-response-stream"), &[("authorization", "Bearer k")], model);
    let profile = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-5";
    check_bedrock(&format!("/model/{}/invoke", profile.replace('/', "%2F")), &[], Ok(profile));
    check_bedrock("/model/meta.llama3-70b-instruct-v1%3A0/invoke", &[], Err("the model's maker"));
    check_bedrock("/model/anthropic.claude-opus-4-5/converse", &[], Err("Converse"));
    check_bedrock("/model/anthropic.claude-opus-4-5/converse-stream", &[], Err("Converse"));
}

#[test]
fn a_signed_body_is_not_changed() {
    const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=k/20261118/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=0";
    const WITH_LENGTH: &str = "AWS4-HMAC-SHA256 Credential=k/20261118/eu-west-1/bedrock/aws4_request, SignedHeaders=content-length;host, Signature=0";
    let invoke = "/model/anthropic.claude-opus-4-5/invoke";
    let open = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    check_bedrock(invoke, &[("authorization", SIGNATURE)], Err("signed"));
    check_bedrock(
        invoke,
        &[("authorization", SIGNATURE), ("x-amz-content-sha256", "e3b0c442")],
        Err("signed"),
    );
    check_bedrock(invoke, &[("authorization", SIGNATURE), open], Ok("anthropic.claude-opus-4-5"));
    check_bedrock(invoke, &[("authorization", WITH_LENGTH), open], Err("signed"));
    check_bedrock(&format!("{invoke}?X-Amz-Signature=0"), &[], Err("signed"));
}

#[test]
fn what_is_in_a_format_of_its_own_passes_with_the_reason() {
    let found = ask(&NAMED, &Method::POST, "/api/chat", None).unwrap();
    assert!(matches!(found.endpoint, RouteEndpoint::Unfitted(said) if said.contains("Ollama")));
    assert_eq!(found.upstream.host().unwrap(), "127.0.0.1:11434");
}

#[test]
fn a_part_of_a_path_is_decoded_where_it_can_be() {
    let decoded = ["a%3Ab%2fc", "100%", "%zz", "%ff", "%E2%82%AC"].map(percent_decoded);
    assert_eq!(decoded, ["a:b/c", "100%", "%zz", "%ff", "\u{20ac}"]);
}

#[test]
fn a_path_names_its_upstream_by_how_it_begins() {
    check_post("/openrouter/v1/chat/completions", "chat", "https://openrouter.ai/api/v1/chat/completions");
    check_post("/openrouter/chat/completions", "chat", "https://openrouter.ai/api/v1/chat/completions");
    check_post("/openrouter/v1/messages", "messages", "https://openrouter.ai/api/v1/messages");
    check_post("/work/v1/responses", "responses", "https://gateway.example/v1/responses");
    check_post("/work/v1/anything", "other", "https://gateway.example/v1/anything");
    check_post("/work/v1/threads/t/messages", "other", "https://gateway.example/v1/threads/t/messages");
    check_post("/work/rooms/r/messages", "other", "https://gateway.example/v1/rooms/r/messages");
    check_post("/work/x/v1/messages", "messages", "https://gateway.example/v1/x/v1/messages");
    check_post("/anthropic/v1/messages", "messages", "https://api.anthropic.com/v1/messages");
    check_post(
        "/deepseek/anthropic/v1/messages",
        "messages",
        "https://api.deepseek.com/anthropic/v1/messages",
    );
    check_post("/ollama/v1/chat/completions", "chat", "http://127.0.0.1:11434/v1/chat/completions");
    check(&Method::GET, "/ollama/api/tags", None, ("other", "http://127.0.0.1:11434/api/tags", None));
    let found = ask(&[], &Method::POST, "/openai/v1/responses", None).unwrap();
    assert_eq!(
        found.upstream.uri(&found.path, None).unwrap().to_string(),
        "https://api.openai.com/v1/responses"
    );
}

#[test]
fn other_paths_of_a_wire_pass_to_its_upstream() {
    let get = Method::GET;
    check(&get, "/v1/messages", None, ("other", "https://api.anthropic.com/v1/messages", None));
    check(
        &get,
        "/api/claude_code/settings",
        None,
        ("other", "https://api.anthropic.com/api/claude_code/settings", None),
    );
    check(&get, "/v1/models", None, ("other", "https://api.openai.com/v1/models", None));
    let anthropic = Some("anthropic-version");
    check(&get, "/v1/models", anthropic, ("other", "https://api.anthropic.com/v1/models", None));
    let google = "https://generativelanguage.googleapis.com/v1/models";
    check(&get, "/v1/models", Some("x-goog-api-key"), ("other", google, None));
    check(&get, "/v1/models?key=k", None, ("other", &format!("{google}?key=k"), None));
    check(&get, "/v1/responses", None, ("other", "https://api.openai.com/v1/responses", None));
    check_post("/v1/threads/t/messages", "other", "https://api.openai.com/v1/threads/t/messages");
}

#[test]
fn an_unknown_path_goes_nowhere() {
    for path in [
        "/nonsense", "/", "/api/nonsense", "/unknown/v1/messages", "/v2/chat/completions", "/proxy/responses",
    ] {
        check_refused(&NAMED, &Method::POST, path, "/v1/messages, /messages");
        check_refused(&NAMED, &Method::GET, path, "--upstream NAME=URL");
    }
}

#[test]
fn a_path_of_a_server_without_an_address_goes_nowhere() {
    let post = Method::POST;
    for (path, words) in [
        ("/model/m/invoke", "--upstream bedrock=https://bedrock-runtime.REGION.amazonaws.com"),
        ("/bedrock/model/m/converse", "--upstream bedrock="),
        ("/openai/deployments/d/chat/completions", "--upstream azure=https://RESOURCE.openai.azure.com"),
        ("/openai/responses", "--upstream azure="),
        ("/backend-api/codex/responses", "--upstream chatgpt="),
        ("/v1internal:generateContent", "--upstream code-assist="),
        ("/v1/projects/p/locations/l/publishers/google/models/m:generateContent", "--upstream vertex="),
    ] {
        check_refused(&[], &post, path, words);
    }
    // Bedrock's requests go to nobody else, whatever address Anthropic has.
    check_refused(&["anthropic=https://gateway.example"], &post, "/model/m/invoke", "--upstream bedrock=");
}

#[test]
fn a_model_may_choose_only_where_the_path_names_nobody() {
    for (path, by_model) in [
        ("/v1/messages", true),
        ("/v1/chat/completions", true),
        ("/openrouter/v1/chat/completions", false),
        ("/openai/v1/responses", false),
        ("/v1/files", false),
    ] {
        assert_eq!(ask(&NAMED, &Method::POST, path, None).unwrap().by_model, by_model, "{path}");
    }
}

#[test]
fn every_row_is_reached() {
    for row in TABLE {
        let path = row.0.replace("{model}", "m").replace("/**", "/x").replace('*', "");
        let path = path.replace("//", "/a/");
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let found = find_row(&Method::POST, &segments).map(|(found, _)| found.0);
        assert_eq!(found, Some(row.0), "{path}");
    }
}
