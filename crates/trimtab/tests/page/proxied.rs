//! The page of a proxy: beside what it answers to programs, with its own figures, and with wishes that the next request obeys.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    conversations::{anthropic, output},
    running::Running,
    server::{ask, post_from},
    upstream::{Script, Upstream},
};

const KEPT: [(&str, &str); 1] = [("TRIMTAB_NO_STORE", "0")];

/// A provider that reports what the request cost.
fn provider() -> Upstream {
    Upstream::start(|_, _| {
        let usage = json!({"input_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 2000, "output_tokens": 7});
        let answer = json!({"type": "message", "role": "assistant", "content": [], "usage": usage});
        Script::Whole(
            "200 OK",
            vec!["Content-Type: application/json".to_owned()],
            answer.to_string().into_bytes(),
        )
    })
}

fn sent(upstream: &Upstream) -> String {
    serde_json::from_slice::<Value>(&upstream.last().body).unwrap().to_string()
}

#[test]
fn a_block_is_pinned_on_the_page_and_the_next_request_has_it() {
    let (upstream, folder) = (provider(), tempfile::tempdir().unwrap());
    let store = folder.path().join("kept.db").display().to_string();
    // The conversation is longer than the budget, whatever a policy expects to be needed again.
    let flags = ["--policy", "steady", "--budget", "40000", "--store", &store];
    let proxy = Running::with(&upstream, &flags, &KEPT);
    proxy.post("/v1/messages", &anthropic(30));
    proxy.wait_for("trimtab_reported_tokens_total", 1.0);
    let whole = |number: usize| sent(&upstream).contains(&Value::from(output(number, 120)).to_string());
    let number = (0..30).find(|number| !whole(*number)).expect("something is hidden");
    let session = ask(&proxy.address, &["GET /trimtab/sessions/s1 HTTP/1.1"], "");
    assert_eq!(session.status, 200, "{}", session.text);
    let shown = ask(&proxy.address, &["GET /trimtab/sessions/s1/requests/1 HTTP/1.1"], "");
    let first_line = format!("result {number}, line 0:");
    let row = shown.text.split(" id=\"b").find(|row| row.contains(&first_line)).expect("the block");
    assert!(row.contains("Hidden: ") && row.contains("data-sent"), "{row}");
    let handle = row.split_once("data-handle=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let origin = format!("http://{}", proxy.address);
    let fields =
        [("token", shown.token()), ("handle", handle), ("kind", "pin".to_owned()), ("back", "1".to_owned())];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let done = post_from(&proxy.address, &origin, "/trimtab/sessions/s1/wish", &fields);
    assert_eq!(done.status, 200, "{}", done.text);
    proxy.post("/v1/messages", &anthropic(31));
    assert!(whole(number), "it is sent whole");
}

#[test]
fn programs_get_a_status_and_browsers_a_page_with_the_proxys_figures() {
    let upstream = provider();
    let proxy = Running::before(&upstream, &[]);
    proxy.post("/v1/messages", &anthropic(2));
    proxy.wait_for("trimtab_reported_tokens_total", 1.0);
    let status = ask(&proxy.address, &["GET / HTTP/1.1", "Accept: */*"], "");
    assert!(status.text.starts_with("trimtab ") && !status.text.contains('<'), "{}", status.text);
    let page = ask(&proxy.address, &["GET / HTTP/1.1", "Accept: text/html,*/*;q=0.8"], "");
    assert!(page.text.contains("nothing is stored"), "{}", page.text);
    assert_eq!(page.figure("conversations"), "1");
    assert_eq!(page.figure("late"), "0");
    for path in ["/trimtab/health", "/trimtab/metrics"] {
        assert_eq!(ask(&proxy.address, &[&format!("GET {path} HTTP/1.1")], "").status, 200);
    }
    let off = Running::before(&upstream, &["--page", "off"]);
    let page = ask(&off.address, &["GET / HTTP/1.1", "Accept: text/html"], "");
    assert!(page.text.starts_with("trimtab "), "{}", page.text);
    assert_eq!(ask(&off.address, &["GET /trimtab/sessions HTTP/1.1"], "").status, 404);
}

#[test]
fn a_proxy_with_a_token_shows_its_page_to_who_knows_it() {
    let upstream = provider();
    let proxy = Running::before(&upstream, &["--token", "open-sesame"]);
    let get =
        |more: &[&str]| ask(&proxy.address, &[&["GET / HTTP/1.1", "Accept: text/html"], more].concat(), "");
    let refused = get(&[]);
    assert!(refused.status == 401 && refused.text.contains("needs the token"), "{}", refused.text);
    assert_eq!(ask(&proxy.address, &["GET /trimtab/settings HTTP/1.1"], "").status, 401);
    assert_eq!(ask(&proxy.address, &["GET /trimtab/events HTTP/1.1"], "").status, 401);
    assert_eq!(get(&["Authorization: Bearer open-sesame"]).status, 200);
    let origin = format!("http://{}", proxy.address);
    let log_in =
        |origin: &str, token: &str| post_from(&proxy.address, origin, "/trimtab/login", &[("access", token)]);
    assert_eq!(log_in(&origin, "wrong").status, 401);
    assert_eq!(log_in("http://localhost:9", "open-sesame").status, 401);
    let done = log_in(&origin, "open-sesame");
    assert_eq!(done.status, 303);
    let cookie = done.came.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(get(&[&format!("Cookie: {pair}")]).status, 200);
}

#[test]
fn a_page_that_listens_hears_of_requests_and_keeps_no_proxy_from_stopping() {
    let upstream = provider();
    let mut proxy = Running::before(&upstream, &["--grace", "20"]);
    let mut events = TcpStream::connect(&proxy.address).unwrap();
    events.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("GET /trimtab/events HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.address);
    events.write_all(head.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut hear = |words: &str| {
        let mut some = [0; 4096];
        while !heard.contains(words) {
            let count = events.read(&mut some).expect("an event");
            assert!(count > 0, "the stream ended: {heard}");
            heard += &String::from_utf8_lossy(&some[..count]);
        }
    };
    hear("retry:");
    proxy.post("/v1/messages", &anthropic(2));
    hear("event: news");
    proxy.terminate();
    let began = std::time::Instant::now();
    assert!(proxy.child.wait().unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
