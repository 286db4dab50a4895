//! Bodies: JSON that is deep, long, broken, doubled, or full of what steers a terminal. Each reaches the provider as it is or
//! fitted, and nothing of it reaches the log unescaped.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    TIGHT, common,
    conversations::{anthropic, chat, gemini, responses},
    good,
    running::Running,
    tally::{Chance, Tally, bystander, resident_megabytes},
    upstream::Upstream,
};

/// How long a body of a million messages may take, and how long others may wait meanwhile.
const LONGEST: Duration = Duration::from_secs(60);
const BYSTANDER: Duration = Duration::from_secs(5);

/// What steers a terminal, forges a line of a log or turns the direction of words.
const ESCAPES: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{2028}\r\ntrimtab: forged\u{0}";

const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent";

/// Requests of every wire, with where they go.
fn wires(results: usize) -> [(&'static str, Vec<u8>); 4] {
    [
        ("/v1/messages", anthropic(results)),
        ("/v1/chat/completions", chat(results)),
        ("/v1/responses", responses(results)),
        (GEMINI, gemini(results)),
    ]
}

/// Posts a body; checks that the provider gets it as it is, or a fitted one.
fn check_body(
    tally: &mut Tally,
    (proxy, upstream): (&Running, &Upstream),
    name: &str,
    path: &str,
    body: &[u8],
) {
    let before = upstream.came().len();
    let answer = proxy.post(path, body);
    let came = upstream.came().split_off(before);
    let how = answer.header("x-trimtab").unwrap_or("refused").to_owned();
    tally.count(&how);
    let is_good = match came.as_slice() {
        [came] => {
            came.body == body || (how == "fitted" && !came.body.is_empty() && came.body.len() < body.len())
        }
        _ => false,
    };
    tally.expect(is_good && answer.head[0] == "HTTP/1.1 200 OK", || {
        let sizes: Vec<usize> = came.iter().map(|came| came.body.len()).collect();
        format!(
            "{name} of {} bytes at {path}: {:?}, {sizes:?} bytes reached the provider",
            body.len(),
            answer.head
        )
    });
    if how == "fitted" {
        let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(&came[0].body).is_ok();
        let was_json = serde_json::from_slice::<&serde_json::value::RawValue>(body).is_ok();
        tally.expect(is_json || !was_json, || format!("{name} at {path}: what was sent is not JSON"));
    }
    upstream.came.lock().unwrap().clear();
}

/// Bodies that no client should send, made from one that a client sends.
fn odd_bodies(body: &[u8], chance: &mut Chance, cuts: usize) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let with = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let everywhere = |from: &str, to: &str| text.replace(from, to).into_bytes();
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let in_value = |value: &str| with("\"Find the value.\"", value);
    let mut bodies = vec![
        ("deep lists", in_value(&deep(100_000))),
        ("deep objects", in_value(&objects(100_000))),
        ("a deep field", with("{", &format!("{{\"deep\":{},", deep(200_000)))),
        ("deep and unclosed", [body, "[".repeat(100_000).as_bytes()].concat()),
        ("lone surrogates", everywhere("value is", "value \\ud83d \\udc00 is")),
        ("surrogates in keys", with("{", "{\"\\ud800\":1,")),
        (
            "huge numbers",
            with(
                "{",
                "{\"max_tokens\":1e999999,\"n\":123456789012345678901234567890,\"temperature\":-0.0e-9999,",
            ),
        ),
        ("a negative length", with("{", "{\"max_tokens\":-5,\"max_completion_tokens\":-1,")),
        ("doubled keys", with("{", "{\"messages\":[],\"input\":7,\"contents\":{},\"model\":null,")),
        ("doubled keys in blocks", everywhere("\"role\":", "\"role\":\"system\",\"role\":")),
        ("control characters", everywhere("Find", "Fi\u{1}\nnd")),
        ("zero bytes", everywhere("Find", "F\0ind")),
        ("no UTF-8", [&body[..body.len() / 2], b"\xff\xfe\xc0\x80", &body[body.len() / 2..]].concat()),
        ("a byte order mark", [b"\xef\xbb\xbf", body].concat()),
        ("two requests", [body, body].concat()),
        ("rubbish behind it", [body, b"}]garbage"].concat()),
        ("a comment", with("{", "{/* hi */")),
        ("a comma too many", with("}", ",}")),
        ("single quotes", everywhere("\"", "'")),
        ("a list of nothing", b"[]".to_vec()),
        ("null", b"null".to_vec()),
        ("a number", b"12".to_vec()),
        ("a string", b"\"hi\"".to_vec()),
        ("nothing", Vec::new()),
        ("blanks", vec![b' '; 100_000]),
        ("a long key", with("{", &format!("{{\"{}\":1,", "k".repeat(1_000_000)))),
        ("a line of a megabyte", in_value(&format!("\"{}\"", "x".repeat(1_000_000)))),
        ("escapes only", in_value(&format!("\"{}\"", "\\u0041".repeat(100_000)))),
        ("backslashes", in_value(&format!("\"{}\"", "\\\\".repeat(100_001)))),
        (
            "many keys",
            with(
                "{",
                &format!("{{{}", (0..50_000).map(|key| format!("\"k{key}\":{key},")).collect::<String>()),
            ),
        ),
    ];
    for _ in 0..cuts {
        bodies.push(("cut off", body[..chance.below(body.len())].to_vec()));
        let mut flipped = body.to_vec();
        let at = chance.below(flipped.len());
        flipped[at] ^= 1 << chance.below(8);
        bodies.push(("one bit changed", flipped));
    }
    bodies
}

/// Every string of a request, one after the other, with escapes in it.
fn with_escapes(body: &[u8]) -> Vec<Vec<u8>> {
    let whole: Value = serde_json::from_slice(body).unwrap();
    let mut paths = Vec::new();
    find_strings(&whole, String::new(), &mut paths);
    paths
        .iter()
        .map(|path| {
            let mut changed = whole.clone();
            let text = changed.pointer_mut(path).unwrap();
            *text = json!(format!("{}{ESCAPES}", text.as_str().unwrap()));
            changed.to_string().into_bytes()
        })
        .collect()
}

fn find_strings(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::String(_) => paths.push(path),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| find_strings(item, format!("{path}/{at}"), paths));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| find_strings(member, format!("{path}/{key}"), paths));
        }
        _ => {}
    }
}

/// Checks that nothing that people read holds what steers a terminal.
fn check_plain(tally: &mut Tally, what: &str, text: &str) {
    let is_bad = |letter: char| {
        letter.is_control() && !matches!(letter, '\n' | '\t')
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}')
    };
    tally.expect(!text.chars().any(is_bad), || format!("{what} holds control characters: {text:?}"));
    let is_forged = text.lines().any(|line| line.starts_with("trimtab: forged"));
    tally.expect(!is_forged, || format!("{what} holds a forged line: {text:?}"));
}

/// A million messages of one letter: forwarded, and others are served meanwhile.
fn check_tiny(tally: &mut Tally, (proxy, upstream): (&Running, &Upstream), messages: usize) {
    let one = |role: &str| format!("{{\"role\":\"{role}\",\"content\":\"x\"}}");
    let pair = format!("{},{},", one("user"), one("assistant"));
    let body = format!("{{\"model\":\"gpt-5\",\"messages\":[{}{}]}}", pair.repeat(messages / 2), one("user"));
    let started = Instant::now();
    let (took, waited) = thread::scope(|scope| {
        let tiny = scope.spawn(|| {
            let answer = proxy.post("/v1/chat/completions", body.as_bytes());
            (answer.head[0].clone(), started.elapsed())
        });
        let mut waited = Duration::ZERO;
        while !tiny.is_finished() {
            let asked = Instant::now();
            proxy.post("/v1/messages", &bystander());
            waited = waited.max(asked.elapsed());
            thread::sleep(Duration::from_millis(50));
        }
        (tiny.join().unwrap(), waited)
    });
    println!(
        "  {messages} tiny messages, {} MB: {:.1} s; others waited {} ms at most; {} MB resident",
        body.len() / 1_000_000,
        took.1.as_secs_f64(),
        waited.as_millis(),
        resident_megabytes(proxy)
    );
    tally.count("of tiny messages");
    tally.expect(took.0 == "HTTP/1.1 200 OK", || took.0.clone());
    tally.expect(took.1 < LONGEST, || format!("{messages} tiny messages take {:?}", took.1));
    tally.expect(waited < BYSTANDER, || format!("others wait {waited:?} for {messages} tiny messages"));
    let largest = upstream.came().iter().map(|came| came.body.len()).max().unwrap_or_default();
    tally.expect(largest > 0, || "nothing reached the provider".to_owned());
    upstream.came.lock().unwrap().clear();
}

fn check(lengths: &[usize], cuts: usize, tiny: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let store = store.to_str().unwrap();
    let upstream = good();
    let flags = [&TIGHT[..], &["--store", store, "--log", "verbose"]].concat();
    let proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let both = (&proxy, &upstream);
    let mut tally = Tally::new("bodies");
    let mut chance = Chance(11);
    for results in lengths {
        for (path, body) in wires(*results) {
            for (name, odd) in odd_bodies(&body, &mut chance, cuts) {
                check_body(&mut tally, both, name, path, &odd);
            }
        }
    }
    for (path, body) in wires(9) {
        // Each starts a program besides.
        let every = if cuts > 50 { 1 } else { 30 };
        for escaped in with_escapes(&body).into_iter().step_by(every) {
            check_body(&mut tally, both, "terminal escapes", path, &escaped);
            let reading = common::trimtab_reading(&["show", "-"], &escaped);
            check_plain(&mut tally, "show", &format!("{}{}", reading.text(), reading.words));
        }
    }
    check_plain(&mut tally, "the log", &proxy.words());
    check_tiny(&mut tally, both, tiny);
    tally.expect_served(&proxy, &upstream);
    tally.expect_memory_after(&proxy, tiny);
    for arguments in [
        &["sessions", "--all", "--store", store][..],
        &["search", "value", "--all", "--store", store],
        &["stats", "--store", store],
        &["inspect", "s1", "--all", "--store", store],
    ] {
        let run = common::trimtab(arguments);
        check_plain(&mut tally, arguments[0], &format!("{}{}", run.text(), run.words));
        tally.expect(run.code == Some(0), || format!("{arguments:?}: {}", run.words));
    }
    tally.finish();
}

#[test]
fn odd_bodies_are_forwarded() {
    check(&[2], 1, 2_000);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_bodies() {
    check(&[2, 12], 300, 1_000_000);
}
