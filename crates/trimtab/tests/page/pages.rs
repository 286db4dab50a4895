//! Every page, with an ordinary and with a hostile conversation; figures as the commands give them.

use serde_json::json;

use crate::server::{World, ask, post_from, read_json, working};

/// Every page of a session and its request.
fn paths(session: &str, request: i64) -> Vec<String> {
    let base = format!("/trimtab/sessions/{session}");
    vec![
        "/".to_owned(),
        "/trimtab/sessions".to_owned(),
        "/trimtab/sessions?q=reading".to_owned(),
        "/trimtab/settings".to_owned(),
        base.clone(),
        format!("{base}/requests/{request}"),
        format!("{base}/requests/{request}?show=hidden"),
        format!("{base}/requests/{request}/blocks/5"),
        format!("{base}/files"),
        format!("{base}/head"),
        format!("{base}/what-if"),
    ]
}

#[test]
fn every_page_is_shown_under_a_strict_policy() {
    let world = World::new();
    world.keep("a", &working("Fix the build, please.", 12), "recent", 50_000, 1_000);
    let kept = world.keep("a", &working("Fix the build, please.", 20), "recent", 50_000, 2_000);
    let page = world.page("a", &[]);
    for path in paths(&kept.session.to_string(), kept.id.0) {
        let shown = page.get(&path);
        assert_eq!(shown.status, 200, "{path}: {}", shown.text);
        let policy = shown.came.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(shown.came.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(shown.came.header("cache-control"), Some("no-store"));
        for outside in ["style=\"", "<style", "onclick", "src=\"http", "href=\"http"] {
            assert!(!shown.text.contains(outside), "{path}: {outside}");
        }
        assert_eq!(shown.text.matches("<h1").count(), 1, "{path}");
        assert_eq!(shown.text.matches("<script").count(), 1, "{path}");
    }
    for path in ["/trimtab/page.css", "/trimtab/page.js"] {
        assert_eq!(page.get(path).status, 200);
    }
    for path in [
        "/trimtab/sessions/s999",
        "/trimtab/sessions/x",
        "/trimtab/sessions/s1/requests/999",
        "/trimtab/nothing",
        "/v1/messages",
    ] {
        assert_eq!(page.get(path).status, 404, "{path}");
    }
    assert_eq!(ask(&page.address, &["DELETE / HTTP/1.1"], "").status, 405);
}

#[test]
fn figures_are_those_of_the_commands() {
    let world = World::new();
    for (at, results) in (1..).zip([4, 12, 20]) {
        world.keep("a", &working("Fix the build.", results), "recent", 50_000, at * 1_000);
    }
    world.keep("a", &working("Another thing.", 2), "none", 50_000, 9_000);
    let page = world.page("a", &["--all"]);
    let shown = page.get("/");
    let stats = read_json(&world.run("a", &["stats", "--json"]));
    let reported = &stats["reported"];
    let dollars = |name: &str| {
        let amount = reported[name].as_f64().unwrap();
        let digits = if amount.abs() < 0.1 && amount != 0.0 { 4 } else { 2 };
        format!("{}${:.digits$}", if amount < 0.0 { "−" } else { "" }, amount.abs())
    };
    assert_eq!(shown.figure("dollars_spent"), dollars("dollars_spent"));
    assert_eq!(shown.figure("dollars_saved"), dollars("dollars_saved"));
    assert_eq!(shown.figure("requests_dearer"), reported["requests_dearer"].to_string());
    let input: u64 =
        ["uncached", "cache_read", "cache_write"].iter().map(|name| reported[name].as_u64().unwrap()).sum();
    assert_eq!(shown.figure("reported_input").replace(',', ""), input.to_string());
    let less = 100 * (stats["tokens_before"].as_u64().unwrap() - stats["tokens_after"].as_u64().unwrap())
        / stats["tokens_before"].as_u64().unwrap();
    assert_eq!(shown.figure("tokens"), format!("{less} %"));
    let sessions = page.get("/trimtab/sessions").page();
    assert!(sessions.contains("Fix the build.") && sessions.contains("Another thing."));
    let session = page.get("/trimtab/sessions/s1");
    assert_eq!(session.figure("requests"), "3");
    assert!(session.text.contains("class=\"k7\""), "results are drawn");
}

#[test]
fn a_session_and_a_request_say_what_the_cache_missed_and_why() {
    let world = World::new();
    for (at, results) in (1..).zip([4, 12, 20]) {
        world.keep("a", &working("Fix the build.", results), "none", 50_000, at * 1_000);
    }
    let page = world.page("a", &[]);
    let told = world.run("a", &["why", "s1"]);
    let why = read_json(&world.run("a", &["why", "s1", "--json"]));
    let misses = why["sessions"][0]["misses"].as_array().unwrap();
    assert_eq!(misses.len(), 2, "{why}");
    let session = page.get("/trimtab/sessions/s1").page();
    assert_eq!(session.matches(">missed ").count(), 2, "{session}");
    assert_eq!(session.matches("no cache marker").count(), 3, "of each, and of both: {session}");
    let sentence = told.trim_end().lines().last().unwrap();
    assert!(session.contains(&sentence[1..]), "{sentence}");
    let request = page.get("/trimtab/sessions/s1/requests/2").page();
    let again = misses[0]["miss"]["again"].as_u64().unwrap();
    let missed = request.split_once(">missed ").expect("what it missed").1;
    assert_eq!(missed.split(' ').next().unwrap().replace(',', ""), again.to_string());
    assert!(!page.get("/trimtab/sessions/s1/requests/1").page().contains(">missed "));
}

#[test]
fn nothing_from_a_conversation_is_markup() {
    let world = World::new();
    let hostile = "<script>alert(1)</script></pre><img src=x onerror=alert(2)> \u{202e}gpj.exe\u{202c} \u{1b}[31mred\u{1b}[0m \u{0} &lt;b&gt;";
    let long = format!("{}<i>", "x".repeat(4_000_000));
    let id = "toolu_<b>";
    let request = json!({"model": "claude-<u>opus</u>-5", "max_tokens": 9, "system": hostile,
        "tools": [{"name": "mcp__<s>__\"><script>", "description": hostile, "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": hostile.replace("<script>", "say <script>").trim_start_matches('<')},
            {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Write", "input": {"file_path": "/a/<img src=y>\".rs", "content": hostile}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": long}]},
            {"role": "assistant", "content": hostile},
            {"role": "user", "content": "Go on."},
        ]})
    .to_string()
    .into_bytes();
    let kept = world.keep("a", &request, "none", 5_000_000, 1_000);
    let page = world.page("a", &[]);
    let mut all = paths(&kept.session.to_string(), kept.id.0);
    let blocks = (0..7).map(|block| format!("/trimtab/sessions/s1/requests/{}/blocks/{block}", kept.id.0));
    all.extend(blocks);
    all.push("/trimtab/sessions/s1/files?path=/a/%3Cimg%20src=y%3E%22.rs".to_owned());
    all.push("/trimtab/sessions?q=%3Cscript%3Ealert".to_owned());
    all.push("/trimtab/sessions?project=%22%3E%3Cscript%3E".to_owned());
    for path in all {
        let shown = page.get(&path).page();
        assert_eq!(shown.matches("<script").count(), 1, "{path}: {shown}");
        for markup in ["<img", "<i>", "<u>", "<s>", "onerror=alert(2)>", "\u{202e}", "\u{1b}", "\u{0}"] {
            assert!(!shown.contains(markup), "{path}: {markup:?}");
        }
        assert!(shown.len() < 600_000, "{path} has {} bytes", shown.len());
    }
    let error = page.get("/trimtab/sessions/%3Cscript%3E");
    assert!(error.status == 404 && error.text.matches("<script").count() == 1, "{}", error.text);
}

#[test]
fn secrets_are_covered_unless_somebody_asks() {
    let world = World::new();
    let kept =
        world.keep("a", &working("The key is API_TOKEN=abcdefgh12345678 here.", 2), "none", 50_000, 1_000);
    let path = format!("/trimtab/sessions/s1/requests/{}", kept.id.0);
    let covered = world.page("a", &[]).get(&path).page();
    assert!(covered.contains("API_TOKEN=[secret]") && !covered.contains("abcdefgh12345678"));
    let shown = world.page("a", &["--show-secrets"]).get(&path).page();
    assert!(shown.contains("abcdefgh12345678"));
}

#[test]
fn a_session_is_replayed_under_other_policies_and_budgets() {
    let world = World::new();
    for (at, results) in (1..).zip([4, 12, 20, 28]) {
        world.keep("a", &working("Fix the build.", results), "none", 90_000, at * 1_000);
    }
    let page = world.page("a", &[]);
    let token = page.get("/trimtab/sessions/s1/what-if").token();
    let origin = format!("http://{}", page.address);
    let begin =
        |fields: &[(&str, &str)]| post_from(&page.address, &origin, "/trimtab/sessions/s1/what-if", fields);
    assert_eq!(begin(&[("token", &token), ("policy", "nosuch")]).status, 422);
    assert_eq!(begin(&[("token", &token), ("budgets", "much")]).status, 422);
    let fields =
        [("token", token.as_str()), ("policy", "none"), ("policy", "recent"), ("budgets", "50%25,9k")];
    assert_eq!(begin(&fields).status, 303);
    // A page that shows the replay under way hears of every step until the last, and no store changes meanwhile.
    let what_if = || page.get("/trimtab/sessions/s1/what-if").page();
    let started = std::time::Instant::now();
    let done = loop {
        let shown = what_if();
        if shown.contains("data-done") {
            break shown;
        }
        let mark = shown.split_once("data-follow=\"").expect("it follows").1.split('"').next().unwrap();
        page.hear_news(mark);
        assert!(started.elapsed().as_secs() < 60, "{shown}");
    };
    assert_eq!(done.matches("<code>recent</code>").count(), 2, "{done}");
    assert!(done.contains("50%") && done.contains("9k") && !done.contains("role=\"alert\""), "{done}");
}

#[test]
fn a_page_hears_of_what_was_written_between_its_making_and_its_listening() {
    let world = World::new();
    world.keep("a", &working("Fix the build.", 4), "none", 90_000, 1_000);
    let page = world.page("a", &[]);
    // Opened once before, so that looking changes no file.
    page.get("/");
    let shown = page.get("/").page();
    let mark = shown.split_once("data-follow=\"").unwrap().1.split('"').next().unwrap();
    world.keep("a", &working("Fix the build.", 6), "none", 90_000, 2_000);
    page.hear_news(mark);
}
