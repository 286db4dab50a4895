//! Addresses from flags, files and variables, and how a path follows them.

use super::*;

const LISTEN: &str = "127.0.0.1:8790";

fn resolve(
    flags: &[&str],
    files: &[UpstreamEntry],
    variables: &[(&str, &str)],
) -> Result<(Upstreams, Vec<String>)> {
    let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Upstreams::resolve(&flags, files, variable, LISTEN.parse().unwrap())
}

#[track_caller]
fn check(flags: &[&str], variables: &[(&str, &str)], name: &str, asked: &str, expected: &str) {
    let (upstreams, _) = resolve(flags, &[], variables).unwrap();
    let asked: Uri = asked.parse().unwrap();
    let uri = upstreams.find_by_name(name).unwrap().uri(asked.path(), asked.query()).unwrap();
    assert_eq!(uri.to_string(), expected);
}

#[test]
fn without_a_word_requests_go_to_the_providers() {
    let anthropic = "https://api.anthropic.com/v1/messages?beta=true";
    check(&[], &[], "anthropic", "/v1/messages?beta=true", anthropic);
    check(&[], &[], "openai", "/v1/responses", "https://api.openai.com/v1/responses");
    check(&[], &[], "openai", "/chat/completions", "https://api.openai.com/v1/chat/completions");
    let gemini = "/v1beta/models/gemini-3-pro:generateContent";
    check(&[], &[], "gemini", gemini, &format!("https://generativelanguage.googleapis.com{gemini}"));
}

#[test]
fn an_address_is_used_as_it_is_given_and_nothing_is_doubled() {
    for (url, path, expected) in [
        ("https://host", "/v1/chat/completions", "https://host/v1/chat/completions"),
        ("https://host", "/chat/completions", "https://host/chat/completions"),
        ("https://host/", "/v1/models", "https://host/v1/models"),
        ("https://host/api/v1/", "/v1/chat/completions", "https://host/api/v1/chat/completions"),
        ("https://host/api/v1", "/chat/completions", "https://host/api/v1/chat/completions"),
        ("https://host/api/v1", "/api/v1/chat/completions", "https://host/api/v1/chat/completions"),
        ("https://host/v1/account/openai", "/v1/responses", "https://host/v1/account/openai/responses"),
    ] {
        check(&[&format!("openai={url}")], &[], "openai", path, expected);
    }
    for (url, path, expected) in [
        ("https://host", "/v1/messages", "https://host/v1/messages"),
        ("https://host/v1", "/v1/messages", "https://host/v1/messages"),
        ("https://host/v1", "/messages", "https://host/v1/messages"),
        ("https://host/anthropic", "/v1/messages", "https://host/anthropic/v1/messages"),
        ("https://host", "/messages", "https://host/v1/messages"),
        ("https://host/anthropic", "/messages", "https://host/anthropic/v1/messages"),
    ] {
        check(&[&format!("anthropic={url}")], &[], "anthropic", path, expected);
    }
    let short = "/models/m:generateContent";
    check(&["gemini=https://host"], &[], "gemini", short, &format!("https://host/v1beta{short}"));
    check(&["gemini=https://host/v1"], &[], "gemini", short, &format!("https://host/v1{short}"));
    let gemini = "/v1beta/models/m:generateContent";
    check(&["gemini=https://host/v1beta"], &[], "gemini", gemini, &format!("https://host{gemini}"));
}

#[test]
fn paths_of_azure_and_chatgpt_come_out_as_they_are() {
    let deployment = "/openai/deployments/d/chat/completions?api-version=1";
    let expected = format!("https://r.openai.azure.com{deployment}");
    for base in ["", "/", "/openai", "/openai/v1"] {
        let flag = format!("azure=https://r.openai.azure.com{base}");
        check(&[&flag], &[], "azure", deployment, &expected);
        check(
            &[&flag],
            &[],
            "azure",
            "/openai/v1/responses",
            "https://r.openai.azure.com/openai/v1/responses",
        );
        check(&[&flag], &[], "azure", "/openai/responses", "https://r.openai.azure.com/openai/responses");
    }
    let flag = "azure=https://r.openai.azure.com/openai/v1";
    check(&[flag], &[], "azure", "/v1/responses", "https://r.openai.azure.com/openai/v1/responses");
    for base in ["https://chatgpt.com", "https://chatgpt.com/backend-api/codex"] {
        let path = "/backend-api/codex/responses";
        check(&[&format!("chatgpt={base}")], &[], "chatgpt", path, &format!("https://chatgpt.com{path}"));
    }
}

#[test]
fn servers_that_are_known_by_name_need_no_address() {
    let path = "/v1/chat/completions";
    for (name, expected) in [
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("deepseek", "https://api.deepseek.com/v1/chat/completions"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
        ("vllm", "http://127.0.0.1:8000/v1/chat/completions"),
        ("llama.cpp", "http://127.0.0.1:8080/v1/chat/completions"),
        ("lm-studio", "http://127.0.0.1:1234/v1/chat/completions"),
        ("litellm", "http://127.0.0.1:4000/v1/chat/completions"),
    ] {
        check(&[], &[], name, path, expected);
    }
    let (upstreams, _) = resolve(&[], &[], &[]).unwrap();
    for name in ["azure", "vertex", "bedrock", "chatgpt", "code-assist"] {
        assert!(!upstreams.find_by_name(name).unwrap().has_address(), "{name}");
    }
}

#[test]
fn a_flag_beats_a_file_a_file_a_variable_and_a_variable_the_provider() {
    let set = [("OPENAI_BASE_URL", "http://10.0.0.9/v1")];
    check(&[], &set, "openai", "/v1/models", "http://10.0.0.9/v1/models");
    let file = [UpstreamEntry {
        name: "openai".to_owned(),
        url: Some("http://10.0.0.7/v1".to_owned()),
        ..UpstreamEntry::default()
    }];
    let (upstreams, _) = resolve(&[], &file, &set).unwrap();
    let openai = upstreams.find_by_name("openai").unwrap();
    assert_eq!(openai.uri("/v1/models", None).unwrap().to_string(), "http://10.0.0.7/v1/models");
    check(&["openai=http://10.0.0.8/v1"], &set, "openai", "/v1/models", "http://10.0.0.8/v1/models");
    check(
        &[],
        &[("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com/")],
        "azure",
        "/openai/v1/responses",
        "https://r.openai.azure.com/openai/v1/responses",
    );
}

#[test]
fn the_file_of_a_project_adds_names_and_changes_nothing_else() {
    let url = Some("https://elsewhere.example".to_owned());
    let given = |name: &str| UpstreamEntry {
        name: name.to_owned(),
        url: url.clone(),
        from_project: true,
        ..UpstreamEntry::default()
    };
    for name in ["anthropic", "openai", "openrouter"] {
        assert!(resolve(&[], &[given(name)], &[]).is_err(), "{name}");
    }
    assert!(
        resolve(&[], &[UpstreamEntry { model_prefix: Some("gpt".to_owned()), ..given("own") }], &[]).is_err()
    );
    let (upstreams, _) = resolve(&[], &[given("own")], &[]).unwrap();
    assert!(upstreams.find_by_name("own").unwrap().has_address());
    let users =
        UpstreamEntry { url: Some("https://mine.example".to_owned()), from_project: false, ..given("own") };
    let (upstreams, _) = resolve(&[], &[users, given("own")], &[]).unwrap();
    assert_eq!(upstreams.find_by_name("own").unwrap().host().unwrap(), "mine.example");
}

#[test]
fn a_model_chooses_the_upstream_with_the_longest_beginning_of_its_wire() {
    let given = |name: &str, prefix: &str| UpstreamEntry {
        name: name.to_owned(),
        url: Some(format!("https://{name}.example")),
        model_prefix: Some(prefix.to_owned()),
        ..UpstreamEntry::default()
    };
    let (upstreams, _) = resolve(&[], &[given("one", "qwen"), given("two", "qwen3-")], &[]).unwrap();
    let chosen = |provider, model| upstreams.of_model(provider, model).map(|found| found.name.clone());
    assert_eq!(chosen(Provider::OpenAi, "qwen2"), Some("one".to_owned()));
    assert_eq!(chosen(Provider::OpenAi, "qwen3-coder"), Some("two".to_owned()));
    assert_eq!(chosen(Provider::OpenAi, "gpt-5"), None);
    assert_eq!(chosen(Provider::Anthropic, "qwen3-coder"), None);
    assert!(upstreams.choose_by_model(Provider::OpenAi) && !upstreams.choose_by_model(Provider::Gemini));
}

#[test]
fn the_proxy_never_asks_itself() {
    for address in ["http://127.0.0.1:8790", "http://localhost:8790/v1", "http://[::1]:8790"] {
        for name in ["anthropic", "own"] {
            assert!(resolve(&[&format!("{name}={address}")], &[], &[]).is_err(), "{address}");
        }
        let set = [("ANTHROPIC_BASE_URL", address)];
        check(&[], &set, "anthropic", "/v1/messages", "https://api.anthropic.com/v1/messages");
    }
    let set = [("ANTHROPIC_BASE_URL", "http://127.0.0.1:8787")];
    check(&[], &set, "anthropic", "/v1/messages", "http://127.0.0.1:8787/v1/messages");
}

#[test]
fn a_wrong_name_or_address_is_refused_with_a_reason() {
    for flag in [
        "anthropic",
        "openai=ftp://x",
        "openai=https://user:pw@x",
        "openai=:",
        "azure=https://x/openai?api-version=1",
        "v1=https://x",
        "api=https://x",
        "trimtab=https://x",
        "Own=https://x",
        "=https://x",
    ] {
        assert!(resolve(&[flag], &[], &[]).is_err(), "{flag}");
    }
    let wire = UpstreamEntry {
        name: "own".to_owned(),
        url: Some("https://x".to_owned()),
        wire: Some("soap".to_owned()),
        ..UpstreamEntry::default()
    };
    assert!(resolve(&[], &[wire], &[]).is_err());
    assert!(
        resolve(&[], &[UpstreamEntry { name: "own".to_owned(), ..UpstreamEntry::default() }], &[]).is_err()
    );
}
