//! To whom requests go: by the name that a path begins with, by the model, or to the upstream of their wire; and nowhere where
//! nobody is named.

use crate::{
    TIGHT,
    conversations::{anthropic, bytes, chat, referenced, responses},
    good,
    running::Running,
    said,
};

#[test]
fn a_path_names_its_upstream_and_is_fitted_there() {
    let [usual, other] = [good(), good()];
    let named = format!("work={}/api/v1", other.url);
    let proxy = Running::before(&usual, &[&TIGHT[..], &["--upstream", &named]].concat());
    for (asked, path, body) in [
        ("/work/v1/chat/completions", "/api/v1/chat/completions", chat(30)),
        ("/work/responses?a=b", "/api/v1/responses?a=b", responses(30)),
        ("/work/v1/messages", "/api/v1/messages", anthropic(30)),
    ] {
        assert_eq!(said(&proxy.post(asked, &body)), "fitted", "{asked}");
        assert_eq!(other.last().head[0], format!("POST {path} HTTP/1.1"));
        assert_eq!(other.last().header("host"), Some(other.url.trim_start_matches("http://")));
        assert!(other.last().body.len() < body.len());
    }
    assert!(usual.came().is_empty());
    proxy.post("/v1/chat/completions", &chat(1));
    assert_eq!((usual.came().len(), other.came().len()), (1, 3));
}

#[test]
fn paths_of_azure_and_codex_are_fitted_and_come_out_as_they_are() {
    let [usual, other] = [good(), good()];
    let [azure, chatgpt] =
        [format!("azure={}/openai/v1", other.url), format!("chatgpt={}/backend-api/codex", other.url)];
    let flags = [&TIGHT[..], &["--upstream", &azure, "--upstream", &chatgpt]].concat();
    let proxy = Running::before(&usual, &flags);
    for (path, body) in [
        ("/openai/deployments/d/chat/completions?api-version=2024-10-21", chat(30)),
        ("/openai/v1/responses", responses(30)),
        ("/openai/responses?api-version=1", referenced(30)),
        ("/backend-api/codex/responses", responses(30)),
    ] {
        assert_eq!(said(&proxy.post(path, &body)), "fitted", "{path}");
        assert_eq!(other.last().head[0], format!("POST {path} HTTP/1.1"));
    }
    assert!(usual.came().is_empty());
}

#[test]
fn what_cannot_be_fitted_passes_to_whom_it_names_with_the_reason() {
    let [usual, other] = [good(), good()];
    let flags = ["bedrock", "ollama", "code-assist"].map(|name| format!("--upstream={name}={}", other.url));
    let proxy = Running::before(&usual, &flags.each_ref().map(String::as_str));
    for (path, reason) in [
        ("/model/meta.llama3/invoke", "the model's maker"),
        ("/model/anthropic.claude/converse-stream", "Converse"),
        ("/api/chat", "Ollama"),
        ("/v1internal:streamGenerateContent?alt=sse", "no conversation"),
    ] {
        let answer = proxy.post(path, &anthropic(2));
        assert_eq!((said(&answer), other.last().body), ("passed", anthropic(2)), "{path}");
        assert!(answer.header("x-trimtab-reason").is_some_and(|said| said.contains(reason)), "{path}");
    }
    assert!(usual.came().is_empty());
}

#[test]
fn a_conversation_goes_nowhere_where_nobody_is_named() {
    let usual = good();
    let proxy = Running::before(&usual, &[]);
    for path in ["/nonsense", "/unknown/v1/messages", "/api/nonsense", "/model/m/invoke"] {
        let answer = proxy.post(path, &anthropic(2));
        assert_eq!(answer.head[0], "HTTP/1.1 404 Not Found", "{path}");
        let error: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("--upstream") && message.contains("nothing was sent"), "{message}");
    }
    assert!(usual.came().is_empty());
}

#[test]
fn a_model_chooses_its_upstream_where_the_path_names_none() {
    let [usual, other] = [good(), good()];
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("trimtab")).unwrap();
    let file = format!("[upstream.local]\nurl = \"{}\"\nmodel_prefix = \"qwen\"\n", other.url);
    std::fs::write(folder.path().join("trimtab/config.toml"), file).unwrap();
    let home = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
    let named = |model: &str| {
        let mut request: serde_json::Value = serde_json::from_slice(&chat(30)).unwrap();
        request["model"] = model.into();
        bytes(&request)
    };
    for flags in [&TIGHT[..], &["--off"]] {
        let proxy = Running::with(&usual, flags, &home);
        let counts = || (usual.came().len(), other.came().len());
        let before = counts();
        proxy.post("/v1/chat/completions", &named("qwen3-coder"));
        assert_eq!(counts(), (before.0, before.1 + 1));
        proxy.post("/v1/chat/completions", &named("gpt-5"));
        assert_eq!(counts(), (before.0 + 1, before.1 + 1));
    }
}
