//! Reading back. Takes a handle or the number of a request; gives the original, or the request's bytes and plan.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use trimtab_core::{BlockId, Reason, SentVerdict, Verdict};

use super::{
    added::unpack_insertions,
    contents::{ContentReader, read_location},
    sessions,
};
use crate::{
    HoldingSession, RequestId, RequestVerdicts, SessionId, StoreError, StoredRequest, VerdictHistory,
    codec::{StoredHash, take_number, to_size},
    error::damage_error,
    parts,
};

/// Stands for a block that is sent whole after it was hidden.
pub(super) const WHOLE_AGAIN: StoredHash = [1; 16];

/// The hash and the number of the verdict on each block that was not sent whole.
pub(super) type VerdictRows = BTreeMap<u32, (i64, StoredHash)>;

pub(super) fn recall_block(connection: &Connection, handle: &str) -> Result<Vec<u8>, StoreError> {
    let beginning = hash_beginning(handle).ok_or_else(|| StoreError::NotAHandle(handle.to_owned()))?;
    let found = connection
        .prepare_cached(
            "SELECT hash, kind, pack, start, length FROM content WHERE substr(hash, 1, 6) = ? AND kind <> 2 AND kind < 2",
        )?
        .query_row([beginning], read_location)
        .optional()?;
    let lies = found.ok_or_else(|| StoreError::UnknownHandle(handle.to_owned()))?;
    ContentReader::new(connection)?.content_at(&lies)
}

/// Returns the sessions that hold the block that a handle names, the one used last first.
pub(super) fn holding_sessions(
    connection: &Connection,
    handle: &str,
) -> Result<Vec<HoldingSession>, StoreError> {
    const HOLDS: &str = "SELECT s.id, s.name, s.project FROM session s WHERE s.id IN (\
         SELECT session FROM content WHERE substr(hash, 1, 6) = ?1 AND kind <> 2 AND kind < 2 \
         UNION SELECT h.session FROM content c JOIN shared h ON h.content = c.id \
               WHERE substr(c.hash, 1, 6) = ?1 AND c.kind <> 2 AND c.kind < 2) ORDER BY s.last_at DESC, s.id DESC";
    let beginning = hash_beginning(handle).ok_or_else(|| StoreError::NotAHandle(handle.to_owned()))?;
    let mut statement = connection.prepare_cached(HOLDS)?;
    let rows = statement.query_map([beginning], |row| {
        Ok(HoldingSession { session: SessionId(row.get(0)?), name: row.get(1)?, project: row.get(2)? })
    })?;
    let holders: Vec<HoldingSession> = rows.collect::<Result<_, _>>()?;
    if holders.is_empty() { Err(StoreError::UnknownHandle(handle.to_owned())) } else { Ok(holders) }
}

/// Returns what the hashes begin with that a handle names.
fn hash_beginning(handle: &str) -> Option<[u8; 6]> {
    let digits: Vec<u8> = handle
        .chars()
        .map(|digit| digit.to_digit(16))
        .map(|digit| u8::try_from(digit?).ok())
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2).filter_map(|pair| Some(pair.first()? << 4 | pair.get(1)?));
    let bytes: Vec<u8> = pairs.collect();
    if digits.len() == 12 { bytes.try_into().ok() } else { None }
}

pub(super) fn read_request(connection: &Connection, id: RequestId) -> Result<StoredRequest, StoreError> {
    let info = sessions::request_info(connection, id)?;
    let bytes = rebuild_bytes(connection, id)?;
    let mut contents = ContentReader::new(connection)?;
    let mut hidden = Vec::new();
    for (block, (verdict_id, _)) in read_verdicts(connection, id)? {
        hidden.push((block, read_verdict(connection, &mut contents, verdict_id)?));
    }
    let (marker, added): (Option<u32>, Option<Vec<u8>>) = connection
        .prepare_cached("SELECT marker, added FROM request WHERE id = ?")?
        .query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let added = added.map_or(Some(Vec::new()), |packed| unpack_insertions(&packed));
    let added =
        added.ok_or_else(|| damage_error(format!("request {}", id.0), "what was inserted into it"))?;
    Ok(StoredRequest { info, bytes, hidden, marker: marker.map(BlockId), added })
}

/// How a request's bytes are made of its base and its own parts.
struct RequestRow {
    base: Option<i64>,
    front: usize,
    back: usize,
    parts: i64,
    bytes: usize,
}

/// Rebuilds the bytes of a request.
pub(super) fn rebuild_bytes(connection: &Connection, id: RequestId) -> Result<Vec<u8>, StoreError> {
    let what = || format!("request {}", id.0);
    let mut contents = ContentReader::new(connection)?;
    let mut rows = Vec::new();
    let mut next = Some(id.0);
    let mut statement =
        connection.prepare_cached("SELECT base, front, back, parts, bytes FROM request WHERE id = ?")?;
    while let Some(current) = next {
        let row = statement
            .query_row([current], |row| {
                Ok(RequestRow {
                    base: row.get(0)?,
                    front: to_size(row.get(1)?),
                    back: to_size(row.get(2)?),
                    parts: row.get(3)?,
                    bytes: to_size(row.get(4)?),
                })
            })
            .optional()?;
        let row = match row {
            Some(row) => row,
            None if current == id.0 => return Err(StoreError::UnknownRequest(id.0)),
            None => return Err(damage_error(what(), "the request before it is missing")),
        };
        // A base is always older: anything else would never end.
        next = row.base.filter(|base| *base < current);
        rows.push(row);
    }
    // From the oldest: which parts of which request stand where.
    let mut list: Vec<(usize, usize)> = Vec::new();
    let mut decoded = BTreeMap::new();
    for (index, row) in rows.iter().enumerate().rev() {
        let own = parts::decode_parts(&contents.get_content(row.parts)?)
            .ok_or_else(|| damage_error(what(), "its parts are cut"))?;
        let (Some(front), Some(back)) = (list.get(..row.front), list.len().checked_sub(row.back)) else {
            return Err(damage_error(what(), "the request before it is too short"));
        };
        let behind = list.get(back..).unwrap_or_default();
        let own_parts = (0..own.len()).map(|part| (index, part));
        list = front.iter().copied().chain(own_parts).chain(behind.iter().copied()).collect();
        decoded.insert(index, own);
    }
    let expected = rows.first().map_or(0, |row| row.bytes);
    let mut bytes = Vec::with_capacity(expected);
    for (index, part) in list {
        let pieces = decoded
            .get(&index)
            .and_then(|own| own.get(part))
            .ok_or_else(|| damage_error(what(), "a part is missing"))?;
        parts::write_pieces(pieces, &mut bytes, |block| {
            contents.get_content(i64::try_from(block).unwrap_or(-1))
        })?;
    }
    if bytes.len() != expected {
        return Err(damage_error(what(), format_args!("{} bytes instead of {expected}", bytes.len())));
    }
    Ok(bytes)
}

/// Returns the verdicts on the blocks of a request that were not sent whole.
pub(super) fn read_verdicts(connection: &Connection, id: RequestId) -> Result<VerdictRows, StoreError> {
    let mut deltas: Vec<(u32, Option<Vec<u8>>)> = Vec::new();
    let mut next = Some(id.0);
    let mut statement =
        connection.prepare_cached("SELECT base, same_blocks, plan FROM request WHERE id = ?")?;
    while let Some(current) = next {
        let row = statement.query_row([current], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, u32>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
        });
        let (base, same, delta) = row.optional()?.ok_or(StoreError::UnknownRequest(current))?;
        next = base.filter(|base| *base < current);
        deltas.push((same, delta));
    }
    let mut plan = BTreeMap::new();
    for (same, delta) in deltas.into_iter().rev() {
        plan.split_off(&same);
        for (block, verdict) in read_changes(delta.as_deref().unwrap_or_default()) {
            if verdict == 0 {
                plan.remove(&block)
            } else {
                plan.insert(block, verdict)
            };
        }
    }
    let mut digest = connection.prepare_cached("SELECT digest FROM verdict WHERE id = ?")?;
    plan.into_iter()
        .map(|(block, verdict)| {
            let digest = digest.query_row([verdict], |row| row.get(0)).optional()?;
            let digest = digest.ok_or_else(|| damage_error(format!("verdict {verdict}"), "it is missing"))?;
            Ok((block, (verdict, digest)))
        })
        .collect()
}

/// Returns what became of the blocks of every request of a session.
pub(super) fn verdict_history(
    connection: &Connection,
    session: SessionId,
) -> Result<VerdictHistory, StoreError> {
    sessions::check_known(connection, session)?;
    let mut statement = connection
        .prepare_cached("SELECT id, base, same_blocks, plan FROM request WHERE session = ? ORDER BY id")?;
    let mut rows = statement.query([session.0])?;
    let mut history = VerdictHistory::default();
    let mut contents = ContentReader::new(connection)?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let base = row.get::<_, Option<i64>>(1)?.filter(|base| *base < id).map(RequestId);
        let delta: Option<Vec<u8>> = row.get(3)?;
        let changes = read_changes(delta.as_deref().unwrap_or_default());
        for (_, verdict) in changes.iter().filter(|(_, verdict)| *verdict != 0) {
            if !history.verdicts.contains_key(verdict) {
                history.verdicts.insert(*verdict, read_verdict(connection, &mut contents, *verdict)?);
            }
        }
        let changes = changes.into_iter().map(|(block, verdict)| (block, (verdict != 0).then_some(verdict)));
        history.requests.push(RequestVerdicts {
            request: RequestId(id),
            base,
            same_blocks: row.get(2)?,
            changes: changes.collect(),
        });
    }
    Ok(history)
}

/// Reads what differs from the plan before: blocks and verdicts, 0 for those that are whole again.
pub(super) fn read_changes(mut delta: &[u8]) -> Vec<(u32, i64)> {
    let mut changes = Vec::new();
    while let (Some(block), Some(verdict)) = (take_number(&mut delta), take_number(&mut delta)) {
        if let (Ok(block), Ok(verdict)) = (u32::try_from(block), i64::try_from(verdict)) {
            changes.push((block, verdict));
        }
    }
    changes
}

/// Reads a verdict.
pub(super) fn read_verdict(
    connection: &Connection,
    contents: &mut ContentReader<'_>,
    id: i64,
) -> Result<SentVerdict, StoreError> {
    let (reason, text, digest) = connection
        .prepare_cached("SELECT reason, text, digest FROM verdict WHERE id = ?")?
        .query_row([id], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, StoredHash>(2)?))
        })
        .optional()?
        .ok_or_else(|| damage_error(format!("verdict {id}"), "it is missing"))?;
    if digest == WHOLE_AGAIN {
        return Ok(SentVerdict::WholeAgain);
    }
    // A reason that this version does not know is still a reason.
    let reason = serde_json::from_str(&reason).unwrap_or(Reason::Rule(reason));
    let text = match text {
        Some(text) => {
            let text = String::from_utf8(contents.get_content(text)?);
            Some(text.map_err(|fault| damage_error(format!("verdict {id}"), fault))?.into())
        }
        None => None,
    };
    Ok(SentVerdict::As(Verdict::hiding(text, reason)))
}
