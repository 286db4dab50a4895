//! What goes wrong is said clearly, writes nothing, and lets the caller go on.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{fs, path::PathBuf, sync::Arc, thread};

use common::{fit_and_keep, keep, long, request, search, settings, tool, user, working};
use tempfile::TempDir;
use trimtab_core::{Usage, block_handle};
use trimtab_store::{RequestId, Sqlite, Store, StoreError};

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deeper/trimtab.db");
    (folder, path)
}

/// Changes a store without the program's knowledge.
fn meddle(path: &PathBuf, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("the file");
    connection.execute_batch(sql).expect(sql);
}

#[test]
#[cfg(unix)]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    keep(&store, &[user("Hi")], 1);
    for end in ["", "-wal", "-shm"] {
        let mode = fs::metadata(format!("{}{end}", path.display())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{end}");
    }
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_store_of_a_newer_program_is_left_as_it_is() {
    let (_folder, path) = file();
    keep(&Sqlite::open(&path).unwrap(), &[user("Hi")], 1);
    meddle(
        &path,
        "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)",
    );
    let before = fs::read(&path).unwrap();
    for opened in [Sqlite::open(&path), Sqlite::open_to_read(&path)] {
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("newer trimtab (schema 99; this one knows 8)"), "{error}");
        assert!(error.contains("Nothing was written"), "{error}");
    }
    assert!(fs::read(&path).unwrap() == before, "the file is as it was");
}

#[test]
fn a_file_that_is_something_else_is_left_as_it_is() {
    let (_folder, path) = file();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = |path: &PathBuf| meddle(path, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    let text = |path: &PathBuf| {
        fs::write(path, "These are my notes, and they are longer than a header.".repeat(9)).unwrap();
    };
    let makers: [&dyn Fn(&PathBuf); 2] = [&database, &text];
    for make in makers {
        make(&path);
        let before = fs::read(&path).unwrap();
        let error = Sqlite::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert!(fs::read(&path).unwrap() == before);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_store_that_is_not_there_cannot_be_read() {
    let (_folder, path) = file();
    let error = Sqlite::open_to_read(&path).unwrap_err().to_string();
    assert!(error.contains("cannot be opened"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_damaged_block_is_named_and_the_rest_is_read() {
    let (_folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    let first = keep(&store, &[user("Hi")], 1);
    let second = keep(&store, &[user("Other"), tool("make", &long(1))], 2);
    // One byte in the middle of the second pack.
    let connection = rusqlite::Connection::open(&path).unwrap();
    let mut data: Vec<u8> =
        connection.query_row("SELECT data FROM pack WHERE id = 2", [], |row| row.get(0)).unwrap();
    let middle = data.len() / 2;
    data[middle] ^= 0x10;
    connection.execute("UPDATE pack SET data = ? WHERE id = 2", [data]).unwrap();
    let history = &second.fitted.history;
    let handle = block_handle(history, history.blocks().last().unwrap());
    let error = store.recall(&handle).unwrap_err().to_string();
    assert!(error.contains(&format!("block {handle}: what is stored is damaged")), "{error}");
    assert!(matches!(store.request(second.request), Err(StoreError::Damaged { .. })));
    assert!(matches!(store.check_contents(), Err(StoreError::Damaged { .. })));
    assert_eq!(store.request(first.request).unwrap().bytes, request(&[user("Hi")]));
}

#[test]
fn a_full_disk_is_told_and_what_was_kept_stays() {
    let (_folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    store.set_size_limit(400_000).unwrap();
    let mut kept: Vec<(RequestId, Vec<u8>)> = Vec::new();
    let none = settings("none", 10_000_000);
    let noise = |seed: usize| -> String {
        let mut state = u64::try_from(seed).unwrap() * 2 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{state:x} ")
        };
        (0..2000).map(|_| next()).collect()
    };
    let error = (0..100).find_map(|number| {
        let bytes = request(&[user(&format!("task {number}")), tool("make", &noise(number))]);
        match fit_and_keep(&store, bytes.clone(), &none, 1, None) {
            Ok(done) => {
                kept.push((done.request, bytes));
                None
            }
            Err(error) => Some(error),
        }
    });
    let error = error.expect("the file may not grow for ever");
    assert!(matches!(error, StoreError::Full), "{error}");
    assert!(kept.len() > 2);
    let intact = |store: &Sqlite| {
        kept.iter().for_each(|(id, bytes)| assert_eq!(store.request(*id).unwrap().bytes, *bytes));
        assert_eq!(store.check_contents().unwrap().requests, u64::try_from(kept.len()).unwrap());
    };
    intact(&store);
    // With space again, the same store goes on.
    store.set_size_limit(100_000_000).unwrap();
    keep(&store, &[user("Space again")], 2);
}

#[test]
#[cfg(unix)]
fn a_file_that_may_not_be_written_can_be_read() {
    let (_folder, path) = file();
    let kept = keep(&Sqlite::open(&path).unwrap(), &[user("Hi there")], 1);
    let store = Sqlite::open_to_read(&path).unwrap();
    assert_eq!(store.request(kept.request).unwrap().bytes, request(&[user("Hi there")]));
    let none = settings("none", 1000);
    let error = fit_and_keep(&store, request(&[user("More")]), &none, 2, None).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error}");
    assert!(matches!(store.record_usage(kept.request, &Usage::default()), Err(StoreError::ReadOnly)));
    assert_eq!(
        search(&store, "there", 5).unwrap(),
        [],
        "what was never indexed is not found, and nothing fails"
    );
    assert_eq!(store.sessions().unwrap().len(), 1);
}

#[test]
fn eight_writers_and_eight_readers_lose_nothing() {
    const ROUNDS: usize = 12;
    let (_folder, path) = file();
    // Two stores on one file, as two processes have.
    let stores = [Arc::new(Sqlite::open(&path).unwrap()), Arc::new(Sqlite::open(&path).unwrap())];
    let writers: Vec<_> = (0..8_usize)
        .map(|writer| {
            let store = Arc::clone(&stores[writer % 2]);
            thread::spawn(move || {
                let mut said = vec![user(&format!("task of writer {writer}"))];
                let mut kept = Vec::new();
                for round in 0..ROUNDS {
                    said.push(tool("make", &long(writer * 100 + round)));
                    let done = keep(&*store, &said, 1);
                    store.record_usage(done.request, &Usage { output: 1, ..Usage::default() }).unwrap();
                    kept.push((done.session, done.request, request(&said)));
                }
                kept
            })
        })
        .collect();
    let readers: Vec<_> = (0..8_usize)
        .map(|reader| {
            let store = Arc::clone(&stores[reader % 2]);
            thread::spawn(move || {
                for _ in 0..20 {
                    for session in store.sessions().unwrap() {
                        let requests = store.requests(session.id).unwrap();
                        let last = requests.last().unwrap();
                        let stored = store.request(last.id).unwrap();
                        assert!(stored.bytes.ends_with(b"}"));
                    }
                    if reader == 0 {
                        store.tidy().unwrap();
                        search(&*store, "output build", 3).unwrap();
                    }
                }
            })
        })
        .collect();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    for writer in writers {
        let kept = writer.join().unwrap();
        let sessions: Vec<_> = kept.iter().map(|(session, _, _)| *session).collect();
        assert_eq!(sessions, vec![sessions[0]; ROUNDS], "one conversation, one session");
        for (_, id, bytes) in kept {
            assert!(stores[0].request(id).unwrap().bytes == bytes);
        }
    }
    let sessions = stores[1].sessions().unwrap();
    let sums: Vec<_> = sessions.iter().map(|session| (session.requests, session.usage.output)).collect();
    assert_eq!(sums, [(12, 12); 8], "no update is lost");
    stores[0].check_contents().unwrap();
}

#[test]
fn two_processes_that_open_an_empty_file_at_once_agree() {
    let (_folder, path) = file();
    let opening: Vec<_> = (0..8)
        .map(|number| {
            let path = path.clone();
            thread::spawn(move || keep(&Sqlite::open(&path).unwrap(), &[user(&format!("task {number}"))], 1))
        })
        .collect();
    opening.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    assert_eq!(Sqlite::open(&path).unwrap().sessions().unwrap().len(), 8);
}

#[test]
fn keys_are_never_kept() {
    let (_folder, path) = file();
    let headers =
        [("authorization", "Bearer sk-hush-key-1"), ("x-api-key", "hush-key-2"), ("session_id", "conv-7")];
    let name = trimtab_store::name_from_headers(headers);
    let store = Sqlite::open(&path).unwrap();
    let none = settings("none", 1000);
    fit_and_keep(&store, request(&working(2)), &none, 1, name.as_deref()).unwrap();
    assert_eq!(store.sessions().unwrap()[0].name.as_deref(), Some("conv-7"));
    drop(store);
    for end in ["", "-wal"] {
        let bytes = fs::read(format!("{}{end}", path.display())).unwrap_or_default();
        assert!(!bytes.windows(8).any(|window| window == b"hush-key"), "a key is in the file{end}");
    }
}
