//! Forgetting. Takes what to forget; removes the sessions with every content that no other session holds, and packs what
//! remains anew, so that nothing of it stays in the file.

use rusqlite::{Connection, Transaction, params};

use super::{Writing, sessions, tidy};
use crate::{Forget, SessionInfo, StoreError, codec::number};

/// Sessions that are chosen, and about how many bytes they take.
pub(super) struct Chosen {
    pub(super) sessions: Vec<SessionInfo>,
    pub(super) bytes: u64,
}

/// Bytes that a row of the tables takes beside its contents, about; assumed.
const BYTES_PER_ROW: u64 = 60;

pub(super) fn choose(connection: &Connection, which: &Forget, file: u64) -> Result<Chosen, StoreError> {
    let all = sessions::sessions(connection)?;
    let mut chosen = Chosen { sessions: Vec::new(), bytes: 0 };
    match which {
        Forget::Sessions(ids) => {
            for id in ids {
                let found = all.iter().find(|session| session.id == *id);
                let session = found.ok_or_else(|| StoreError::UnknownSession(id.to_string()))?;
                if !chosen.sessions.contains(session) {
                    chosen.sessions.push(session.clone());
                }
            }
        }
        Forget::OlderThan(time) => {
            chosen.sessions = all.into_iter().filter(|session| session.last < *time).collect();
        }
        Forget::LargerThan(limit) => {
            // The oldest are last.
            for session in all.into_iter().rev() {
                if file.saturating_sub(chosen.bytes) <= *limit {
                    break;
                }
                chosen.bytes += bytes(connection, session.id.0)?;
                chosen.sessions.push(session);
            }
            return Ok(chosen);
        }
    }
    for session in &chosen.sessions {
        chosen.bytes += bytes(connection, session.id.0)?;
    }
    Ok(chosen)
}

/// Tells about how many bytes a session takes that no other holds.
fn bytes(connection: &Connection, session: i64) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(c.length * 1.0 * length(p.data) / max(p.length, 1)), 0.0), count(*) \
               FROM content c JOIN pack p ON p.id = c.pack WHERE c.session = ?1 \
               AND NOT EXISTS (SELECT 1 FROM shared s WHERE s.content = c.id)";
    let (contents, rows): (f64, u64) =
        connection.query_row(sql, [session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let blocks: u64 =
        connection.query_row("SELECT count(*) FROM chain WHERE session = ?", [session], |row| row.get(0))?;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    let packed = contents as u64;
    Ok(packed + (rows + blocks) * BYTES_PER_ROW)
}

pub(super) fn forget(writing: &mut Writing<'_>, sessions: &[SessionInfo]) -> Result<(), StoreError> {
    let transaction = &writing.transaction;
    // Freed pages are overwritten: forgotten is forgotten.
    transaction.pragma_update(None, "secure_delete", "ON")?;
    transaction.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS gone (id INTEGER PRIMARY KEY); DELETE FROM gone; \
         CREATE TEMP TABLE IF NOT EXISTS torn (id INTEGER PRIMARY KEY); DELETE FROM torn;",
    )?;
    for session in sessions {
        transaction.execute("INSERT INTO gone VALUES (?)", [session.id.0])?;
    }
    for table in ["request", "chain", "shared", "summary", "wish"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE session IN (SELECT id FROM gone)"), [])?;
    }
    keep_shared_verdicts(transaction)?;
    keep_shared_contents(transaction)?;
    transaction.execute_batch(
        "INSERT OR IGNORE INTO torn SELECT pack FROM content WHERE session IN (SELECT id FROM gone); \
         DELETE FROM words WHERE rowid IN (SELECT c.id FROM content c JOIN gone g ON g.id = c.session, indexed i \
                                           WHERE c.id <= i.through AND c.kind IN (0, 4)); \
         DELETE FROM content WHERE session IN (SELECT id FROM gone); \
         DELETE FROM session WHERE id IN (SELECT id FROM gone);",
    )?;
    for pack in tidy::listed(transaction, "id IN (SELECT id FROM torn)")? {
        let rest = tidy::prepare(transaction, vec![pack])?;
        tidy::replace(transaction, &rest)?;
    }
    // Merging the index removes the words themselves.
    transaction.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
    Ok(())
}

/// A verdict that another session repeats becomes its own.
fn keep_shared_verdicts(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    transaction.execute_batch(
        "UPDATE verdict SET session = (SELECT min(c.session) FROM chain c WHERE c.verdict = verdict.id) \
         WHERE session IN (SELECT id FROM gone) AND id IN (SELECT verdict FROM chain WHERE verdict IS NOT NULL); \
         INSERT OR IGNORE INTO shared (content, session) \
             SELECT v.text, v.session FROM verdict v JOIN content c ON c.id = v.text \
             WHERE v.session NOT IN (SELECT id FROM gone) AND c.session IN (SELECT id FROM gone); \
         DELETE FROM verdict WHERE session IN (SELECT id FROM gone);",
    )?;
    Ok(())
}

/// A content that another session holds becomes its own.
fn keep_shared_contents(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let mut statement = transaction.prepare(
        "SELECT s.content, min(s.session) FROM shared s JOIN content c ON c.id = s.content \
         WHERE c.session IN (SELECT id FROM gone) GROUP BY s.content",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let heirs: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    for (content, session) in heirs {
        transaction.execute("UPDATE content SET session = ? WHERE id = ?", params![session, content])?;
        transaction
            .execute("DELETE FROM shared WHERE content = ? AND session = ?", params![content, session])?;
    }
    // Contents are numbered on: an index that was made up to a number that is used again would miss the new one.
    let last: i64 =
        transaction.query_row("SELECT coalesce(max(id), 0) FROM content", [], |row| row.get(0))?;
    transaction.execute("UPDATE indexed SET through = min(through, ?)", [number(0).max(last)])?;
    Ok(())
}
