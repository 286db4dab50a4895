//! Requests that a provider refused. Takes one of them; takes back its verdicts, so that whoever goes on with the conversation
//! knows only what was accepted. The request itself, with its originals, stays.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::{RequestId, StoreError, codec::to_size};

/// Notes that a request was refused: every block has the verdict again that it had before.
pub(super) fn restore_verdicts(transaction: &Transaction<'_>, request: RequestId) -> Result<(), StoreError> {
    let verdicts: Option<(Option<i64>, Option<i64>)> = transaction
        .prepare_cached(
            "UPDATE request SET refused = 1 WHERE id = ? RETURNING verdicts_after, verdicts_through",
        )?
        .query_row([request.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (after, through) = verdicts.ok_or(StoreError::UnknownRequest(request.0))?;
    // A session that is forgotten takes its verdicts along: what came before may be gone.
    for sql in [
        "UPDATE chain SET verdict = (SELECT b.id FROM verdict v JOIN verdict b ON b.id = v.instead_of \
         WHERE v.id = chain.verdict) WHERE verdict > ?1 AND verdict <= ?2",
        "UPDATE verdict SET instead_of = (SELECT v.instead_of FROM verdict v WHERE v.id = verdict.instead_of) \
         WHERE instead_of > ?1 AND instead_of <= ?2",
    ] {
        transaction.prepare_cached(sql)?.execute(params![after, through])?;
    }
    Ok(())
}

/// Tells whether a request was refused.
pub(super) fn is_refused(connection: &Connection, request: RequestId) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT refused FROM request WHERE id = ?")?
        .query_row([request.0], |row| row.get(0))?)
}

/// Returns how many of the known blocks were sent: a request that goes on from a refused one shares with its provider only what
/// an accepted one before it contained.
pub(super) fn sent_blocks(
    connection: &Connection,
    after: Option<RequestId>,
    known: usize,
) -> Result<usize, StoreError> {
    let Some(RequestId(mut request)) = after else { return Ok(known) };
    let mut statement =
        connection.prepare_cached("SELECT refused, base, same_blocks FROM request WHERE id = ?")?;
    let mut sent = known;
    loop {
        let (refused, base, same): (bool, Option<i64>, i64) =
            statement.query_row([request], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        if !refused {
            return Ok(sent);
        }
        sent = sent.min(to_size(same));
        let Some(base) = base else { return Ok(0) };
        request = base;
    }
}
