//! The store is one file that belongs to its owner: after closing, as a copy, and when somebody moves it away.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use common::{keep, user, working};
use tempfile::TempDir;
use trimtab_core::Millis;
use trimtab_store::{ForgetSelection, RunMode, Sqlite, Store, StoreError};

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trimtab.db");
    (folder, path)
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_store_that_is_closed_is_one_file() {
    let (folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    let bytes = common::request(&working(5));
    let kept = keep(&store, &working(5), 1);
    // Reading opens connections that cannot move the log.
    assert_eq!(store.request(kept.request).unwrap().bytes, bytes);
    drop(store);
    assert_eq!(names(folder.path()), ["trimtab.db"]);
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(Sqlite::open(&copy).unwrap().request(kept.request).unwrap().bytes, bytes);
}

#[test]
fn a_store_in_use_is_copied_whole() {
    let (folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    let kept = keep(&store, &working(5), 1);
    let copy = folder.path().join("copy.db");
    store.backup(&copy).unwrap();
    keep(&store, &[user("later")], 2);
    assert!(!names(folder.path()).contains(&"copy.db-wal".to_owned()));
    let copied = Sqlite::open(&copy).unwrap();
    assert_eq!(copied.sessions().unwrap().len(), 1);
    assert_eq!(copied.request(kept.request).unwrap().bytes, common::request(&working(5)));
    copied.check_contents().unwrap();
    keep(&copied, &[user("goes on")], 3);
    let again = store.backup(&copy).unwrap_err().to_string();
    assert!(again.contains("making the copy"), "{again}");
    assert_eq!(copied.sessions().unwrap().len(), 2, "a file that is there is left alone");
    #[cfg(unix)]
    assert_eq!(mode(&copy), 0o600);
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
}

#[test]
#[cfg(unix)]
fn a_file_that_others_could_read_is_its_owner_s_alone_when_it_is_opened() {
    let (_folder, path) = file();
    keep(&Sqlite::open(&path).unwrap(), &[user("Hi")], 1);
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let store = Sqlite::open(&path).unwrap();
    keep(&store, &[user("Ho")], 2);
    assert_eq!((mode(&path), mode(&path.with_extension("db-wal"))), (0o600, 0o600));
}

#[test]
#[cfg(unix)]
fn nothing_is_written_to_a_file_that_was_deleted_or_replaced() {
    let (folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    keep(&store, &[user("Hi")], 1);
    let away = folder.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    let forget = || store.forget(&ForgetSelection::OlderThan(Millis(10)), RunMode::Do);
    assert!(matches!(forget(), Err(StoreError::Gone { .. })) && !store.is_in_place());
    fs::write(&path, "").unwrap();
    assert!(matches!(forget(), Err(StoreError::Gone { .. })));
    fs::rename(&away, &path).unwrap();
    assert!(store.is_in_place(), "it is back");
    keep(&store, &[user("Ho")], 2);
    assert_eq!(store.sessions().unwrap().len(), 2);
}

#[test]
fn forgetting_takes_no_longer_for_each_session_where_there_are_many() {
    let (_folder, path) = file();
    let store = Sqlite::open(&path).unwrap();
    // Rows as appending would leave them, written at once.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "BEGIN; CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
             SELECT i FROM n; \
             INSERT INTO session (id, first_at, last_at, requests) SELECT i, i, i, 1 FROM n; \
             INSERT INTO request (session, at, format, bytes, tokens_before, tokens_after, front, back, parts, same_blocks, tip) \
                 SELECT i, i, 'chat', 10, 1, 1, 0, 0, 1, 0, randomblob(32) FROM n; \
             INSERT INTO pack (id, first, last, length, loose, data) SELECT i, 2 * i, 2 * i + 1, 100, 1, zeroblob(50) FROM n; \
             INSERT INTO content (id, hash, kind, session, pack, start, length) \
                 SELECT 2 * i + j, randomblob(32), 0, i, i, 50 * j, 50 FROM n, (SELECT 0 AS j UNION SELECT 1); \
             INSERT INTO chain (hash, session) SELECT randomblob(32), i FROM n, (SELECT 0 UNION SELECT 1 UNION SELECT 2); \
             COMMIT;",
        )
        .unwrap();
    drop(connection);
    let started = Instant::now();
    let most = ForgetSelection::OlderThan(Millis(19_991));
    let told = store.forget(&most, RunMode::DryRun).unwrap();
    assert_eq!(told.sessions.len(), 19_990);
    assert!(told.after < told.before, "{} of {}", told.after, told.before);
    let done = store.forget(&most, RunMode::Do).unwrap();
    assert_eq!((done.sessions.len(), store.sessions().unwrap().len()), (19_990, 10));
    assert!(done.after < done.before / 2, "{} of {}", done.after, done.before);
    // Reading a table once for every session takes minutes.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
