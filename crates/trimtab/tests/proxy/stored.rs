//! The store below a running proxy: a file that is deleted, replaced or spoilt, what is not kept, and one file at the end.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use serde_json::Value;

use crate::{STEADY, TIGHT, common, conversations::anthropic, good, running::Running, upstream::Upstream};

/// A proxy that keeps what it sends.
fn keeping(upstream: &Upstream, flags: &[&str]) -> (tempfile::TempDir, PathBuf, Running) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags = [flags, &["--store", store.to_str().unwrap()]].concat();
    let proxy = Running::with(upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    (folder, store, proxy)
}

fn stop(proxy: &mut Running) {
    proxy.terminate();
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

fn delete(store: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", store.display()));
    }
}

/// Asks the store for every original that a request names in its notes.
fn recall_all(sent: &[u8], store: &Path) -> usize {
    let text = String::from_utf8_lossy(sent);
    let commands: Vec<&str> =
        text.split(" recall ").skip(1).filter_map(|rest| rest.split(']').next()).collect();
    for command in &commands {
        let handle = command.rsplit(' ').next().unwrap();
        let recalled = common::trimtab(&["recall", handle, "--store", store.to_str().unwrap()]);
        assert_eq!(recalled.code, Some(0), "{handle}: {}", recalled.words);
    }
    commands.len()
}

#[test]
fn a_store_that_is_deleted_is_made_again_with_all_that_is_hidden() {
    let upstream = good();
    let (_folder, store, mut proxy) = keeping(&upstream, &TIGHT);
    proxy.post("/v1/messages", &anthropic(30));
    delete(&store);
    proxy.post("/v1/messages", &anthropic(31));
    proxy.post("/v1/messages", &anthropic(32));
    stop(&mut proxy);
    proxy.wait_for_words("was deleted or replaced");
    assert!(recall_all(&upstream.last().body, &store) > 10);
}

/// The request of a client that sets no cache marker.
fn unmarked(results: usize) -> Vec<u8> {
    let request = String::from_utf8(anthropic(results)).unwrap();
    request.replacen("\"cache_control\":{\"type\":\"ephemeral\"},", "", 1).into_bytes()
}

#[test]
fn nothing_new_is_hidden_while_the_store_cannot_be_written_to() {
    let upstream = good();
    let (_folder, store, mut proxy) = keeping(&upstream, &[&STEADY[..], &["--markers", "off"]].concat());
    proxy.post("/v1/messages", &unmarked(5));
    delete(&store);
    fs::write(&store, "something else").unwrap();
    // Enough for the policy to hide something.
    let answer = proxy.post("/v1/messages", &unmarked(30));
    assert_eq!((answer.header("x-trimtab"), answer.header("x-trimtab-reason")), (Some("raw"), Some("keep")));
    assert_eq!(answer.header("x-trimtab-store"), Some("unavailable"));
    assert_eq!(upstream.last().body, unmarked(30));
    proxy.wait_for_words("Nothing new is hidden until it can");
    assert_eq!(fs::read(&store).unwrap(), b"something else", "what is no store is left alone");
    fs::remove_file(&store).unwrap();
    let answer = proxy.post("/v1/messages", &unmarked(31));
    assert_eq!((answer.header("x-trimtab"), answer.header("x-trimtab-store")), (Some("fitted"), None));
    proxy.wait_for_words("can be written to again");
    stop(&mut proxy);
    assert!(recall_all(&upstream.last().body, &store) > 0);
    proxy.wait_for_words("not kept in the store: ");
    assert!(proxy.words().contains(" the store could not be written to"), "{}", proxy.words());
}

#[test]
fn what_is_not_kept_is_counted_with_its_reason() {
    let upstream = good();
    let (_folder, store, mut proxy) = keeping(&upstream, &[]);
    proxy.post("/v1/messages", &anthropic(1));
    proxy.ask(&["POST /v1/messages HTTP/1.1", "x-trimtab: off"], &anthropic(2));
    assert!((proxy.figure("trimtab_not_kept ") - 1.0).abs() < 0.1);
    stop(&mut proxy);
    proxy.wait_for_words("not kept in the store: 1 passed untouched");
    let sessions = common::trimtab(&["sessions", "--all", "--json", "--store", store.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&sessions.out).contains("\"requests\": 1"));
}

#[test]
fn a_proxy_that_has_ended_leaves_one_file() {
    let upstream = good();
    let (folder, _, mut proxy) = keeping(&upstream, &TIGHT);
    for results in 28..32 {
        proxy.post("/v1/messages", &anthropic(results));
    }
    stop(&mut proxy);
    let names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["kept.db"]);
}

#[test]
fn every_request_of_a_burst_is_kept_or_counted() {
    const THREADS: usize = 8;
    const EACH: usize = 40;
    let upstream = good();
    let (_folder, store, mut proxy) = keeping(&upstream, &[]);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let proxy = &proxy;
            scope.spawn(move || {
                for turn in 0..EACH {
                    let body = String::from_utf8(anthropic(2)).unwrap();
                    let body = body.replace("Find the value.", &format!("Task {number} of {turn}."));
                    proxy.post("/v1/messages", body.as_bytes());
                }
            });
        }
    });
    stop(&mut proxy);
    proxy.wait_for_words("requests:");
    let sessions = common::trimtab(&["sessions", "--all", "--json", "--store", store.to_str().unwrap()]);
    let sessions: Value = serde_json::from_slice(&sessions.out).unwrap();
    let kept: u64 =
        sessions.as_array().unwrap().iter().filter_map(|session| session["requests"].as_u64()).sum();
    let words = proxy.words();
    let unkept = words.split("not kept in the store: ").nth(1).unwrap_or_default();
    let requests = unkept.split("; ").filter(|reason| !reason.contains("reports of usage"));
    let counts = requests.filter_map(|reason| reason.split(' ').next()?.parse::<u64>().ok());
    assert_eq!(kept + counts.sum::<u64>(), 320, "{words}");
}
