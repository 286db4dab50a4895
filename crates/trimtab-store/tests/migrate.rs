//! A store that an older version made is brought forward, and everything in it is still there.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::path::Path;

use common::{Said, fit_and_keep, long, request, search, settings, tool, user};
use trimtab_core::{Handle, Millis, block_handle, block_original, memory::UndoWhen, parse};
use trimtab_store::{NewWish, RequestId, SessionLabel, Sqlite, Store, StoreError, WishKind};

/// The requests that were kept: number, thread, and how many steps its conversation had by then.
const KEPT: [(i64, usize, usize); 14] = [
    (1, 3, 1),
    (2, 2, 1),
    (3, 1, 1),
    (4, 0, 1),
    (5, 0, 2),
    (6, 0, 3),
    (7, 2, 2),
    (8, 3, 2),
    (9, 1, 2),
    (10, 0, 4),
    (11, 1, 3),
    (12, 0, 5),
    (13, 2, 3),
    (14, 3, 3),
];

/// What one thread had said after so many steps.
fn conversation(thread: usize, steps: usize) -> Vec<Said> {
    let mut said = vec![user(&format!("round 0, thread {thread}"))];
    said.extend((0..steps).map(|step| tool(&format!("make {step}"), &long(thread * 100 + step))));
    said
}

fn make(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL").unwrap();
    connection.execute_batch(sql).unwrap();
}

fn version(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_store_of_the_first_version_is_brought_forward_with_all_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    make(&path, include_str!("version-1.sql"));
    let error = Sqlite::open_to_read(&path).unwrap_err().to_string();
    assert!(error.contains("made by an older trimtab"), "reading changes nothing: {error}");
    assert_eq!(version(&path), 1);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(version(&path), 8);
    holds_what_was_kept(&store);
}

#[test]
fn a_store_of_the_second_version_is_brought_forward_with_all_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    let second = include_str!("../src/sqlite/shorter-indexes.sql");
    make(&path, &format!("{}{second}PRAGMA user_version = 2;", include_str!("version-1.sql")));
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(version(&path), 8);
    holds_what_was_kept(&store);
}

#[test]
fn a_store_of_the_third_version_is_brought_forward_and_takes_wishes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    let later = [include_str!("../src/sqlite/shorter-indexes.sql"), include_str!("../src/sqlite/spent.sql")];
    make(&path, &format!("{}{}PRAGMA user_version = 3;", include_str!("version-1.sql"), later.concat()));
    let store = Sqlite::open(&path).unwrap();
    assert_eq!((version(&path), store.newest_wish().unwrap()), (8, 0));
    holds_what_was_kept(&store);
    let stored = store.request(RequestId(12)).unwrap();
    let history = parse(stored.bytes).unwrap();
    let block = &history.blocks()[usize::try_from(stored.hidden[0].0).unwrap()];
    let handle = Handle::parse(&block_handle(&history, block)).unwrap();
    let wish = NewWish { session: None, handle, kind: WishKind::Undo(UndoWhen::Now), at: Millis(5) };
    assert_eq!(store.add_wish(&wish).unwrap().session, stored.info.session);
    let waits = store
        .wishes(&history, &history.chain(), SessionLabel::default())
        .unwrap()
        .undone_handles()
        .next()
        .unwrap()
        .1
        .waits;
    assert_eq!(waits, Some(UndoWhen::Now), "what an older version hid is taken back");
}

#[test]
fn sessions_of_the_fourth_version_belong_to_no_project_until_they_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    let later = [
        include_str!("../src/sqlite/shorter-indexes.sql"),
        include_str!("../src/sqlite/spent.sql"),
        include_str!("../src/sqlite/wishes.sql"),
    ];
    make(&path, &format!("{}{}PRAGMA user_version = 4;", include_str!("version-1.sql"), later.concat()));
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(version(&path), 8);
    assert!(store.sessions().unwrap().iter().all(|session| session.project.is_none()));
    holds_what_was_kept(&store);
}

fn holds_what_was_kept(store: &Sqlite) {
    for (id, thread, steps) in KEPT {
        let expected = request(&conversation(thread, steps));
        let stored = store.request(RequestId(id)).unwrap();
        assert!(stored.bytes == expected, "request {id}");
        assert!(!stored.hidden.is_empty(), "request {id}");
        let history = parse(expected).unwrap();
        for block in history.blocks() {
            assert_eq!(
                store.recall(&block_handle(&history, block)).unwrap(),
                *block_original(&history, block)
            );
        }
    }
    store.check_contents().unwrap();
    // It goes on where it was: the same session, the same words for what was hidden.
    let before = store.request(RequestId(12)).unwrap();
    let bytes = request(&conversation(0, 6));
    let kept = fit_and_keep(store, bytes.clone(), &settings("recent", 1500), 2, None).unwrap();
    assert_eq!(kept.session, before.info.session);
    let after = store.request(kept.request).unwrap();
    assert!(after.bytes == bytes);
    for hidden in &before.hidden {
        let same = after.hidden.iter().find(|(block, _)| *block == hidden.0);
        assert!(same.is_some(), "what was hidden stays hidden");
    }
    assert_eq!(search(store, "round 0 thread", 9).unwrap().len(), 4);
    // Older versions did not keep what a session has cost: it is counted from here on.
    let known = store.recognize(&parse(bytes).unwrap(), SessionLabel::default()).unwrap();
    assert_eq!(known.memory.total_cost(), kept.fitted.plan.cost());
}

#[test]
fn a_store_that_cannot_be_brought_forward_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    // Something is missing that the next version builds on.
    make(&path, &(include_str!("version-1.sql").to_owned() + "DROP INDEX request_tip;"));
    let error = Sqlite::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
    assert_eq!(version(&path), 1);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let indexes: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'content_hash'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(indexes, 1, "no half of a migration stays");
}
