//! Reading everything. Takes the store; compares every content with its hash, rebuilds every request and finds every verdict.

use rusqlite::Connection;
use trimtab_core::parse_as;

use super::{
    contents::{ContentReader, read_location},
    read, sessions,
};
use crate::{CheckedCounts, RequestId, StoreError, error::damage_error};

pub(super) fn check_store(connection: &Connection) -> Result<CheckedCounts, StoreError> {
    let whole: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if whole != "ok" {
        return Err(damage_error("the store's file", whole));
    }
    let mut checked = CheckedCounts::default();
    let mut contents = ContentReader::new(connection)?;
    let mut statement = connection
        .prepare_cached("SELECT hash, kind, pack, start, length FROM content ORDER BY pack, start")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        contents.content_at(&read_location(row)?)?;
        checked.contents += 1;
    }
    let mut statement = connection.prepare_cached("SELECT id FROM request ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        check_request(connection, RequestId(row.get(0)?))?;
        checked.requests += 1;
    }
    Ok(checked)
}

fn check_request(connection: &Connection, id: RequestId) -> Result<(), StoreError> {
    let what = || format!("request {}", id.0);
    let info = sessions::request_info(connection, id)?;
    let history = parse_as(read::read_request(connection, id)?.bytes, info.format)
        .map_err(|fault| damage_error(what(), fault))?;
    let mut known = connection.prepare_cached("SELECT 1 FROM chain WHERE hash = ? AND session = ?")?;
    for hash in history.chain() {
        if !known.exists(rusqlite::params![hash.0, info.session.0])? {
            return Err(damage_error(what(), "a block of it is not in its session's chain"));
        }
    }
    Ok(())
}
