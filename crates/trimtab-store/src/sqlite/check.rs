//! Reading everything. Takes the store; compares every content with its hash, rebuilds every request and finds every verdict.

use rusqlite::Connection;
use trimtab_core::parse_as;

use super::{
    contents::{Contents, lies},
    read, sessions,
};
use crate::{Checked, RequestId, StoreError, error::damaged};

pub(super) fn check(connection: &Connection) -> Result<Checked, StoreError> {
    let whole: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if whole != "ok" {
        return Err(damaged("the store's file", whole));
    }
    let mut checked = Checked::default();
    let mut contents = Contents::new(connection)?;
    let mut statement = connection
        .prepare_cached("SELECT hash, kind, pack, start, length FROM content ORDER BY pack, start")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        contents.at(&lies(row)?)?;
        checked.contents += 1;
    }
    let mut statement = connection.prepare_cached("SELECT id FROM request ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        request(connection, RequestId(row.get(0)?))?;
        checked.requests += 1;
    }
    Ok(checked)
}

fn request(connection: &Connection, id: RequestId) -> Result<(), StoreError> {
    let what = || format!("request {}", id.0);
    let info = sessions::request(connection, id)?;
    let history = parse_as(read::request(connection, id)?.bytes, info.format)
        .map_err(|fault| damaged(what(), fault))?;
    let mut known = connection.prepare_cached("SELECT 1 FROM chain WHERE hash = ? AND session = ?")?;
    for hash in history.chain() {
        if !known.exists(rusqlite::params![hash.0, info.session.0])? {
            return Err(damaged(what(), "a block of it is not in its session's chain"));
        }
    }
    Ok(())
}
