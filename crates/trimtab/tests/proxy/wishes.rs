//! Pins and undos while a session runs: from the command line, over the Model Context Protocol's store, and by a header.

use serde_json::Value;

use crate::{
    STEADY, checker, common,
    conversations::{anthropic, output},
    good,
    running::Running,
    said,
    upstream::Upstream,
};

const KEPT: [(&str, &str); 1] = [("TRIMTAB_NO_STORE", "0")];

/// The numbers of the results that the provider got whole.
fn whole(upstream: &Upstream) -> Vec<usize> {
    let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
    let faults = checker::faults("anthropic", &sent);
    assert!(faults.is_empty(), "{faults:?}");
    let text = sent.to_string();
    let is_whole = |number: &usize| text.contains(&Value::from(output(*number, 120)).to_string());
    (0..32).filter(is_whole).collect()
}

/// The handle of a result: what the tool printed is text alone.
fn handle(number: usize) -> String {
    let printed = output(number, 120);
    let chat = format!(r#"{{"messages":[{{"role":"user","content":{}}}]}}"#, Value::from(printed));
    let history = trimtab_core::parse(chat.into_bytes()).unwrap();
    trimtab_core::block_handle(&history, &history.blocks()[0])
}

fn hidden_first(upstream: &Upstream) -> Vec<usize> {
    let whole = whole(upstream);
    (0..30).filter(|number| !whole.contains(number)).collect()
}

#[test]
fn what_the_command_line_pins_or_takes_back_is_sent_whole_by_a_proxy_that_runs_and_by_the_next_one() {
    let upstream = good();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db").display().to_string();
    let flags: Vec<&str> = STEADY.iter().copied().chain(["--store", &store]).collect();
    let mut proxy = Running::with(&upstream, &flags, &KEPT);
    assert_eq!(said(&proxy.post("/v1/messages", &anthropic(30))), "fitted");
    let hidden = hidden_first(&upstream);
    let [pinned, undone, alone, waiting] = [hidden[0], hidden[1], hidden[2], hidden[3]];
    for arguments in
        [&["pin", &handle(pinned)][..], &["undo", &handle(undone), "--now"], &["undo", &handle(waiting)]]
    {
        let done = common::trimtab(&[arguments, &["--store", &store]].concat());
        assert_eq!(done.code, Some(0), "{}", done.words);
    }
    proxy.post("/v1/messages", &anthropic(31));
    let shown = whole(&upstream);
    assert!(shown.contains(&pinned) && shown.contains(&undone), "{shown:?}");
    assert!(!shown.contains(&alone), "{shown:?}");
    // The pin made the request differ before it: what waited for that comes back with it.
    assert!(shown.contains(&waiting), "{shown:?}");
    proxy.child.kill().unwrap();
    proxy.child.wait().unwrap();
    let again = Running::with(&upstream, &flags, &KEPT);
    again.post("/v1/messages", &anthropic(32));
    let later = whole(&upstream);
    assert!([pinned, undone, waiting].iter().all(|number| later.contains(number)), "{later:?}");
    common::trimtab(&["unpin", &handle(pinned), "--store", &store]);
    let list = common::trimtab(&["pin", "--list", "--all", "--store", &store]);
    assert_eq!(list.text(), "");
}

#[test]
fn a_header_pins_for_the_rest_of_the_session_and_goes_no_further() {
    let upstream = good();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db").display().to_string();
    for kept in [true, false] {
        let store_flags = ["--store", store.as_str()];
        let flags: Vec<&str> =
            STEADY.iter().copied().chain(if kept { &store_flags[..] } else { &[] }.iter().copied()).collect();
        let variables = if kept { &KEPT[..] } else { &[] };
        let proxy = Running::with(&upstream, &flags, variables);
        proxy.post("/v1/messages", &anthropic(30));
        let first = hidden_first(&upstream)[0];
        let pin = format!("x-trimtab-pin: {}, nonsense", handle(first));
        proxy.ask(&["POST /v1/messages HTTP/1.1", "Content-Type: application/json", &pin], &anthropic(30));
        assert!(whole(&upstream).contains(&first));
        assert_eq!(upstream.last().header("x-trimtab-pin"), None);
        proxy.post("/v1/messages", &anthropic(31));
        assert!(whole(&upstream).contains(&first), "it is remembered");
        if kept {
            let list = common::trimtab(&["pin", "--list", "--all", "--store", &store]).text();
            assert!(list.starts_with(&handle(first)), "{list}");
            let taken_back = common::trimtab(&["unpin", &handle(first), "--store", &store]);
            assert_eq!(taken_back.code, Some(0), "{}", taken_back.words);
            assert_eq!(common::trimtab(&["pin", "--list", "--all", "--store", &store]).text(), "");
        }
    }
}
