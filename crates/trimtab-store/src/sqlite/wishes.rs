//! What was asked for about single blocks: pins, and hidings to take back. Takes a handle and what is asked for; keeps it with the
//! session that holds the block, and gives it back as the wishes that a plan obeys.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction, params};
use trimtab_core::{
    ChainHash, Handle, History, Millis, Verdict, block_handle,
    memory::{UndoWhen, UndoWish, Wishes},
    parse_as,
};

use super::{contents::ContentReader, read, recognize, sessions};
use crate::{NewWish, RequestId, SessionId, StoreError, Wish, WishKind, error::damage_error};

/// Keeps a wish.
pub(super) fn add_wish(transaction: &Transaction<'_>, asked: &NewWish) -> Result<Wish, StoreError> {
    let session = find_session(transaction, asked)?;
    let latest = latest_history(transaction, session)?;
    match asked.kind {
        WishKind::Pin | WishKind::Unpin => {}
        WishKind::Undo(_) => check_hidden(transaction, &latest, asked.handle)?,
    }
    let step = latest.messages().last().map_or(0, |entry| entry.step);
    let seen = recognize::newest_verdict(transaction)?;
    transaction
        .prepare_cached("INSERT INTO wish (session, handle, kind, step, at, seen) VALUES (?, ?, ?, ?, ?, ?)")?
        .execute(params![session.0, asked.handle.0, number(asked.kind), step, asked.at.0, seen])?;
    Ok(Wish { session, handle: asked.handle, kind: asked.kind, step, at: asked.at })
}

/// Finds the session that is meant: the one named, else the one used last that holds the block.
fn find_session(connection: &Connection, asked: &NewWish) -> Result<SessionId, StoreError> {
    let handle = || asked.handle.to_string();
    let holding: Vec<SessionId> =
        read::holding_sessions(connection, &handle())?.iter().map(|holder| holder.session).collect();
    let meant = match asked.session {
        None => holding,
        Some(named) => {
            sessions::check_known(connection, named)?;
            if !holding.contains(&named) {
                return Err(StoreError::NotInSession { handle: handle(), session: named.to_string() });
            }
            vec![named]
        }
    };
    let found = match asked.kind {
        WishKind::Pin | WishKind::Undo(_) => meant.first().copied(),
        // A pin is taken back where there is one.
        WishKind::Unpin => {
            let pins = list_pins(connection, asked.session)?;
            let is_pinned = |session: &SessionId| {
                pins.iter().any(|pin| pin.session == *session && pin.handle == asked.handle)
            };
            meant.into_iter().find(is_pinned)
        }
    };
    found.ok_or_else(|| StoreError::NotPinned(handle()))
}

/// Reads the latest request of a session.
fn latest_history(connection: &Connection, session: SessionId) -> Result<History, StoreError> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(id) FROM request WHERE session = ?")?
        .query_row([session.0], |row| row.get(0))?;
    let id = RequestId(newest.ok_or_else(|| StoreError::UnknownSession(session.to_string()))?);
    let format = sessions::request_info(connection, id)?.format;
    parse_as(read::rebuild_bytes(connection, id)?, format)
        .map_err(|fault| damage_error(format!("request {}", id.0), fault))
}

/// Refuses to take back what is not hidden, and what only a pin brings back.
fn check_hidden(connection: &Connection, latest: &History, handle: Handle) -> Result<(), StoreError> {
    let mut contents = ContentReader::new(connection)?;
    let mut in_summary = false;
    for hash in blocks_named(latest, &latest.chain(), handle) {
        let Some(id) = newest_verdict(connection, hash)? else { continue };
        match read::read_verdict(connection, &mut contents, id)?.verdict() {
            Verdict::Keep => {}
            Verdict::Fold { .. } => in_summary = true,
            Verdict::Shorten { .. }
            | Verdict::Point { .. }
            | Verdict::Trim { .. }
            | Verdict::Rewrite { .. }
            | Verdict::Drop { .. } => return Ok(()),
        }
    }
    let handle = handle.to_string();
    Err(if in_summary { StoreError::InSummary(handle) } else { StoreError::NotHidden(handle) })
}

/// Returns the identities of the blocks that a handle names.
fn blocks_named(history: &History, chain: &[ChainHash], handle: Handle) -> Vec<ChainHash> {
    let blocks = history.blocks().iter().zip(chain);
    let is_named = |block: &trimtab_core::Block| Handle::parse(&block_handle(history, block)) == Some(handle);
    blocks.filter(|(block, _)| is_named(block)).map(|(_, hash)| *hash).collect()
}

fn newest_verdict(connection: &Connection, hash: ChainHash) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT max(verdict) FROM chain WHERE hash = ?";
    Ok(connection.prepare_cached(sql)?.query_row([hash.0], |row| row.get(0))?)
}

/// Returns the number of the newest wish.
pub(super) fn newest_wish(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'wish'), 0)";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns what is asked for about the blocks of a request of a session.
pub(super) fn of_session(
    connection: &Connection,
    session: SessionId,
    history: &History,
    chain: &[ChainHash],
) -> Result<Wishes, StoreError> {
    let mut wishes = Wishes::default();
    let mut undone: BTreeMap<Handle, (UndoWish, i64)> = BTreeMap::new();
    for (wish, seen) in wish_rows(connection, Some(session))? {
        match wish.kind {
            WishKind::Pin => wishes.pin(wish.handle),
            WishKind::Unpin => wishes.unpin(wish.handle),
            WishKind::Undo(when) => {
                let undo = UndoWish { step: wish.step, waits: Some(when) };
                undone.insert(wish.handle, (undo, seen));
            }
        }
    }
    for (handle, (undo, seen)) in undone {
        let mut waits = None;
        for hash in blocks_named(history, chain, handle) {
            // A later verdict was said by somebody who knew of the wish: it was granted, or the block was hidden once more.
            if newest_verdict(connection, hash)?.is_some_and(|verdict| verdict <= seen) {
                waits = undo.waits;
            }
        }
        wishes.undo(handle, UndoWish { waits, ..undo });
    }
    Ok(wishes)
}

/// Returns the pins that hold, oldest first: of a session, or of all.
pub(super) fn list_pins(
    connection: &Connection,
    session: Option<SessionId>,
) -> Result<Vec<Wish>, StoreError> {
    if let Some(session) = session {
        sessions::check_known(connection, session)?;
    }
    let mut pins: Vec<Wish> = Vec::new();
    for (wish, _) in wish_rows(connection, session)? {
        let is_same = |pin: &Wish| (pin.session, pin.handle) == (wish.session, wish.handle);
        match wish.kind {
            WishKind::Pin if pins.iter().any(is_same) => {}
            WishKind::Pin => pins.push(wish),
            WishKind::Unpin => pins.retain(|pin| !is_same(pin)),
            WishKind::Undo(_) => {}
        }
    }
    Ok(pins)
}

fn wish_rows(connection: &Connection, session: Option<SessionId>) -> Result<Vec<(Wish, i64)>, StoreError> {
    const ALL: &str = "SELECT id, session, handle, kind, step, at, seen FROM wish ORDER BY id";
    const OF_ONE: &str =
        "SELECT id, session, handle, kind, step, at, seen FROM wish WHERE session = ? ORDER BY id";
    let mut statement = connection.prepare_cached(if session.is_some() { OF_ONE } else { ALL })?;
    let mut rows = statement.query(rusqlite::params_from_iter(session.map(|session| session.0)))?;
    let mut wishes = Vec::new();
    while let Some(row) = rows.next()? {
        wishes.push((read_wish(row)?, row.get(6)?));
    }
    Ok(wishes)
}

fn read_wish(row: &Row<'_>) -> Result<Wish, StoreError> {
    let id: i64 = row.get(0)?;
    let kind =
        of_number(row.get(3)?).ok_or_else(|| damage_error(format!("wish {id}"), "its kind is not known"))?;
    Ok(Wish {
        session: SessionId(row.get(1)?),
        handle: Handle(row.get(2)?),
        kind,
        step: row.get(4)?,
        at: Millis(row.get(5)?),
    })
}

fn number(kind: WishKind) -> i64 {
    match kind {
        WishKind::Pin => 0,
        WishKind::Unpin => 1,
        WishKind::Undo(UndoWhen::Free) => 2,
        WishKind::Undo(UndoWhen::Now) => 3,
    }
}

fn of_number(number: i64) -> Option<WishKind> {
    match number {
        0 => Some(WishKind::Pin),
        1 => Some(WishKind::Unpin),
        2 => Some(WishKind::Undo(UndoWhen::Free)),
        3 => Some(WishKind::Undo(UndoWhen::Now)),
        _ => None,
    }
}
