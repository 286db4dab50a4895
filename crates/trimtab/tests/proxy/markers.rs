//! Cache markers: a client's stay, and one more is set at most, where an edit makes it pay.

use serde_json::{Value, json};

use crate::{
    GEMINI, STEADY, checker,
    conversations::{anthropic, bytes, chat, gemini, responses},
    good, ok,
    running::Running,
    upstream::Upstream,
};

/// A conversation whose client sets so many cache markers: at the end, after tools and system, and one answer earlier.
fn marked(results: usize, markers: usize) -> Value {
    let marker = json!({"type": "ephemeral"});
    let mut request: Value = serde_json::from_slice(&anthropic(results)).unwrap();
    request["tools"][0].as_object_mut().unwrap().remove("cache_control");
    request["system"] = json!([{"type": "text", "text": "Be brief."}]);
    let last = request["messages"].as_array().unwrap().len() - 1;
    let places = [
        format!("/messages/{last}/content/0"),
        "/system/0".to_owned(),
        "/tools/0".to_owned(),
        format!("/messages/{}/content/0", last - 2),
    ];
    for place in places.iter().take(markers) {
        request.pointer_mut(place).unwrap()["cache_control"] = marker.clone();
    }
    request
}

fn count_markers(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_markers).sum(),
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control"))
                + fields.values().map(count_markers).sum::<usize>()
        }
        _ => 0,
    }
}

/// Checks that a client's markers stay, and that one more is set at most, where an edit makes it pay.
#[track_caller]
fn check_markers(own: usize, most: usize) {
    // A cache that lives gives most of each request back.
    let alive = r#"{"usage":{"input_tokens":100,"cache_read_input_tokens":1400,"output_tokens":7}}"#;
    let upstream = Upstream::start(|_, _| ok(alive));
    let proxy = Running::before(&upstream, &STEADY);
    let mut found = Vec::new();
    for results in (8..40).step_by(2) {
        let input = marked(results, own);
        proxy.post("/v1/messages", &bytes(&input));
        let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        let end = sent["messages"].as_array().unwrap().len() - 1;
        let kept = [&sent["messages"][end]["content"][0], &sent["system"][0], &sent["tools"][0]];
        assert!(kept.iter().take(own).all(|block| block["cache_control"].is_object()), "{results} results");
        let faults = checker::new_faults("anthropic", &input, &sent);
        assert!(faults.is_empty(), "{faults:#?}");
        found.push(count_markers(&sent));
    }
    assert_eq!((found.iter().min(), found.iter().max()), (Some(&own), Some(&most)), "{found:?}");
}

#[test]
fn one_cache_marker_is_added_where_an_edit_makes_it_pay() {
    check_markers(2, 3);
    check_markers(3, 4);
}

#[test]
fn a_request_never_has_more_cache_markers_than_its_provider_allows() {
    check_markers(4, 4);
}

#[test]
fn formats_without_cache_markers_get_none() {
    let upstream = good();
    let proxy = Running::before(&upstream, &STEADY);
    let paths = ["/v1/chat/completions", "/v1/responses", GEMINI];
    for (path, make) in paths.into_iter().zip([chat, responses, gemini]) {
        for results in (20..36).step_by(4) {
            proxy.post(path, &make(results));
            let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
            assert_eq!(count_markers(&sent), 0, "{path}, {results} results");
        }
    }
}
