//! Lists of sessions and requests, reported usage, summaries, sizes. Takes numbers; gives rows as plain values.

use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, params};
use trimtab_core::{ChainHash, Format, Millis, Usage};

use super::{
    WriteTransaction,
    added::has_cache_control,
    contents::{ContentReader, ContentWriter},
    read,
};
use crate::{
    DiskUsage, RequestId, RequestInfo, SessionId, SessionInfo, SessionPage, SessionPageQuery, StoreError,
    StoredPing, StoredSummary,
    codec::{StoredKind, put_number, take_number},
    error::damage_error,
};

/// Number, name, project, times of the first and last request, count of requests.
type SessionRow = (SessionId, Option<String>, Option<String>, (Millis, Millis), u32);

const SESSION: &str = "SELECT id, name, first_at, last_at, requests, project FROM session";

pub(super) fn list_sessions(connection: &Connection) -> Result<Vec<SessionInfo>, StoreError> {
    let sql = format!("{SESSION} ORDER BY last_at DESC, id DESC");
    select_sessions(connection, &sql, [])
}

/// Returns one session.
pub(super) fn session_info(connection: &Connection, id: SessionId) -> Result<SessionInfo, StoreError> {
    let found = select_sessions(connection, &format!("{SESSION} WHERE id = ?"), [id.0])?;
    found.into_iter().next().ok_or_else(|| StoreError::UnknownSession(id.to_string()))
}

/// Returns some sessions of a list, with how many it has and how many there are beside it.
pub(super) fn session_page(
    connection: &Connection,
    asked: &SessionPageQuery<'_>,
) -> Result<SessionPage, StoreError> {
    const IS_SEEN: &str = "(?1 IS NULL OR coalesce(project, name) = ?1)";
    const IS_ASKED: &str = "(?2 IS NULL OR project = ?2)";
    let count = |condition: &str| -> Result<u64, StoreError> {
        // Every condition names the same parameters, so that one call serves all.
        let sql =
            format!("SELECT count(*) FROM session WHERE {condition} AND (?2 IS NULL OR ?2 IS NOT NULL)");
        Ok(connection
            .prepare_cached(&sql)?
            .query_row(params![asked.scope, asked.project], |row| row.get(0))?)
    };
    let seen = count(IS_SEEN)?;
    let sql =
        format!("{SESSION} WHERE {IS_SEEN} AND {IS_ASKED} ORDER BY last_at DESC, id DESC LIMIT ?3 OFFSET ?4");
    let sessions =
        select_sessions(connection, &sql, params![asked.scope, asked.project, asked.most, asked.skip])?;
    Ok(SessionPage {
        sessions,
        count: count(&format!("{IS_SEEN} AND {IS_ASKED}"))?,
        others: count("?1 IS NULL OR ?1 IS NOT NULL")? - seen,
    })
}

/// Returns the sessions that a query selects, each with the sums over its requests.
fn select_sessions(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<SessionInfo>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, |row| {
        let times = (Millis(row.get(2)?), Millis(row.get(3)?));
        Ok((SessionId(row.get(0)?), row.get(1)?, row.get(5)?, times, row.get(4)?))
    })?;
    let rows: Vec<SessionRow> = rows.collect::<Result<_, _>>()?;
    rows.into_iter().map(|row| with_sums(connection, row)).collect()
}

fn with_sums(
    connection: &Connection,
    (id, name, project, (first, last), requests): SessionRow,
) -> Result<SessionInfo, StoreError> {
    let mut latest = connection.prepare_cached(
        "SELECT format, model, bytes FROM request WHERE session = ? ORDER BY id DESC LIMIT 1",
    )?;
    let (format, model, bytes) =
        latest.query_row([id.0], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)))?;
    let mut info = SessionInfo {
        id,
        name,
        project,
        format: format_named(&format)?,
        model,
        first,
        last,
        requests,
        bytes,
        tokens_before: 0,
        tokens_after: 0,
        usage: Usage::default(),
    };
    let mut sums = connection
        .prepare_cached("SELECT tokens_before, tokens_after, usage FROM request WHERE session = ?")?;
    let mut rows = sums.query([id.0])?;
    while let Some(row) = rows.next()? {
        info.tokens_before += row.get::<_, u64>(0)?;
        info.tokens_after += row.get::<_, u64>(1)?;
        add_usage(&mut info.usage, usage_of(row.get(2)?).unwrap_or_default());
    }
    Ok(info)
}

const REQUEST: &str = "SELECT id, session, at, format, model, tokens_before, tokens_after, usage, tip, base, same_blocks, plan, pings, added FROM request WHERE";

pub(super) fn list_requests(
    connection: &Connection,
    session: SessionId,
) -> Result<Vec<RequestInfo>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("{REQUEST} session = ? ORDER BY id"))?;
    let mut rows = statement.query([session.0])?;
    let mut requests = Vec::new();
    while let Some(row) = rows.next()? {
        requests.push(info_from_row(row)?);
    }
    // A session without requests cannot be.
    if requests.is_empty() { Err(StoreError::UnknownSession(session.to_string())) } else { Ok(requests) }
}

/// Returns the first and the last request of a session.
pub(super) fn first_and_last(
    connection: &Connection,
    session: SessionId,
) -> Result<(RequestInfo, RequestInfo), StoreError> {
    let ends: (Option<i64>, Option<i64>) = connection
        .prepare_cached("SELECT min(id), max(id) FROM request WHERE session = ?")?
        .query_row([session.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = ends else { return Err(StoreError::UnknownSession(session.to_string())) };
    Ok((request_info(connection, RequestId(first))?, request_info(connection, RequestId(last))?))
}

pub(super) fn request_info(connection: &Connection, id: RequestId) -> Result<RequestInfo, StoreError> {
    let mut statement = connection.prepare_cached(&format!("{REQUEST} id = ?"))?;
    let mut rows = statement.query([id.0])?;
    let row = rows.next()?.ok_or(StoreError::UnknownRequest(id.0))?;
    info_from_row(row)
}

fn info_from_row(row: &Row<'_>) -> Result<RequestInfo, StoreError> {
    let same_blocks = row.get(10)?;
    let changes = read::read_changes(row.get::<_, Option<Vec<u8>>>(11)?.as_deref().unwrap_or_default());
    let at = Millis(row.get(2)?);
    Ok(RequestInfo {
        id: RequestId(row.get(0)?),
        session: SessionId(row.get(1)?),
        at,
        format: format_named(&row.get::<_, String>(3)?)?,
        model: row.get(4)?,
        tokens_before: row.get(5)?,
        tokens_after: row.get(6)?,
        usage: usage_of(row.get(7)?),
        pings: pings_of(at, row.get::<_, Option<Vec<u8>>>(12)?.as_deref().unwrap_or_default()),
        tip: ChainHash(row.get(8)?),
        base: row.get::<_, Option<i64>>(9)?.map(RequestId),
        same_blocks,
        edited: changes.into_iter().map(|(block, _)| block).filter(|block| *block < same_blocks).min(),
        marked: row.get::<_, Option<Vec<u8>>>(13)?.is_some_and(|packed| has_cache_control(&packed)),
    })
}

fn format_named(name: &str) -> Result<Format, StoreError> {
    Format::find_by_name(name)
        .ok_or_else(|| damage_error("a request", format_args!("its format {name} is not known")))
}

pub(super) fn record_usage(
    transaction: &Transaction<'_>,
    request: RequestId,
    usage: &Usage,
) -> Result<(), StoreError> {
    let mut numbers = Vec::new();
    put_usage(&mut numbers, usage);
    let changed = transaction
        .prepare_cached("UPDATE request SET usage = ? WHERE id = ?")?
        .execute(params![numbers, request.0])?;
    if changed == 0 { Err(StoreError::UnknownRequest(request.0)) } else { Ok(()) }
}

pub(super) fn record_ping(
    transaction: &Transaction<'_>,
    request: RequestId,
    at: Millis,
    usage: &Usage,
) -> Result<(), StoreError> {
    let known = transaction
        .prepare_cached("SELECT at, pings FROM request WHERE id = ?")?
        .query_row([request.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?)));
    let (sent, pings) = known.optional()?.ok_or(StoreError::UnknownRequest(request.0))?;
    let mut numbers = pings.unwrap_or_default();
    put_number(&mut numbers, u64::try_from(at.0.saturating_sub(sent)).unwrap_or_default());
    put_usage(&mut numbers, usage);
    transaction
        .prepare_cached("UPDATE request SET pings = ? WHERE id = ?")?
        .execute(params![numbers, request.0])?;
    Ok(())
}

fn put_usage(numbers: &mut Vec<u8>, usage: &Usage) {
    for tokens in [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.output] {
        put_number(numbers, tokens);
    }
}

/// Reads the pings after a request, as far as they are whole.
fn pings_of(sent: Millis, mut numbers: &[u8]) -> Vec<StoredPing> {
    let mut pings = Vec::new();
    while let Some(after) = take_number(&mut numbers)
        && let Some(usage) = take_usage(&mut numbers)
    {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        pings.push(StoredPing { at: Millis(sent.0.saturating_add(after)), usage });
    }
    pings
}

fn usage_of(numbers: Option<Vec<u8>>) -> Option<Usage> {
    take_usage(&mut numbers?.as_slice())
}

fn take_usage(rest: &mut &[u8]) -> Option<Usage> {
    let mut next = || take_number(rest);
    Some(Usage {
        input: next()?,
        cache_read: next()?,
        cache_write: next()?,
        cache_write_1h: next()?,
        output: next()?,
    })
}

fn add_usage(sum: &mut Usage, more: Usage) {
    sum.input += more.input;
    sum.cache_read += more.cache_read;
    sum.cache_write += more.cache_write;
    sum.cache_write_1h += more.cache_write_1h;
    sum.output += more.output;
}

pub(super) fn add_summary(
    writing: &mut WriteTransaction<'_>,
    session: SessionId,
    summary: &StoredSummary,
) -> Result<(), StoreError> {
    check_known(&writing.transaction, session)?;
    let mut packing = ContentWriter::new(&writing.transaction, writing.packer, session.0)?;
    let text = packing.put_content(StoredKind::Summary, summary.text.as_bytes())?;
    packing.write_pack()?;
    writing
        .transaction
        .prepare_cached("INSERT INTO summary (session, at, through, text) VALUES (?, ?, ?, ?)")?
        .execute(params![session.0, summary.at.0, summary.through.0, text])?;
    Ok(())
}

pub(super) fn list_summaries(
    connection: &Connection,
    session: SessionId,
) -> Result<Vec<StoredSummary>, StoreError> {
    check_known(connection, session)?;
    let mut contents = ContentReader::new(connection)?;
    let mut statement =
        connection.prepare_cached("SELECT at, through, text FROM summary WHERE session = ? ORDER BY id")?;
    let mut rows = statement.query([session.0])?;
    let mut summaries = Vec::new();
    while let Some(row) = rows.next()? {
        let text = String::from_utf8(contents.get_content(row.get(2)?)?)
            .map_err(|fault| damage_error(format!("a summary of {session}"), fault))?;
        summaries.push(StoredSummary { at: Millis(row.get(0)?), through: ChainHash(row.get(1)?), text });
    }
    Ok(summaries)
}

pub(super) fn check_known(connection: &Connection, session: SessionId) -> Result<(), StoreError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT id FROM session WHERE id = ?")?
        .query_row([session.0], |row| row.get(0))
        .optional()?;
    found.map(|_| ()).ok_or_else(|| StoreError::UnknownSession(session.to_string()))
}

pub(super) fn disk_usage(connection: &Connection, bytes: u64) -> Result<DiskUsage, StoreError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok(DiskUsage {
        bytes,
        index_bytes: number("SELECT coalesce(sum(length(block)), 0) FROM words_data")?,
        sessions: number("SELECT count(*) FROM session")?,
        requests: number("SELECT count(*) FROM request")?,
        blocks: number("SELECT count(*) FROM content WHERE kind < 2")?,
        block_bytes: number("SELECT coalesce(sum(length), 0) FROM content WHERE kind < 2")?,
        request_bytes: number("SELECT coalesce(sum(bytes), 0) FROM request")?,
    })
}
