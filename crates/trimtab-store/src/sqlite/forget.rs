//! Forgetting. Takes what to forget; removes the sessions with every content that no other session holds, and packs again what
//! remains, so that nothing of it stays in the file.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction, params};
use trimtab_core::Millis;

use super::{sessions, tidy};
use crate::{ForgetSelection, Retention, SessionInfo, StoreError, codec::to_number};

/// Sessions that are chosen, and about how many bytes they take.
pub(super) struct SessionChoice {
    pub(super) sessions: Vec<SessionInfo>,
    pub(super) bytes: u64,
}

/// Bytes that a row of the tables takes beside its contents, about; assumed.
const BYTES_PER_ROW: u64 = 60;

pub(super) fn choose_sessions(
    connection: &Connection,
    which: &ForgetSelection,
    file: u64,
) -> Result<SessionChoice, StoreError> {
    let all = sessions::list_sessions(connection)?;
    let sizes = session_sizes(connection)?;
    let size_of = |session: &SessionInfo| sizes.get(&session.id.0).copied().unwrap_or_default();
    let mut chosen = SessionChoice { sessions: Vec::new(), bytes: 0 };
    let limits = match which {
        ForgetSelection::Sessions(ids) => {
            let mut known: HashMap<i64, SessionInfo> =
                all.into_iter().map(|session| (session.id.0, session)).collect();
            let mut asked = HashSet::new();
            for id in ids.iter().filter(|id| asked.insert(id.0)) {
                let found = known.remove(&id.0);
                chosen.sessions.push(found.ok_or_else(|| StoreError::UnknownSession(id.to_string()))?);
            }
            chosen.bytes = chosen.sessions.iter().map(size_of).sum();
            return Ok(chosen);
        }
        ForgetSelection::OlderThan(time) => {
            ForgetLimits { older_than: Some(*time), ..ForgetLimits::default() }
        }
        ForgetSelection::LargerThan(limit) => {
            ForgetLimits { larger_than: Some((*limit, file)), ..ForgetLimits::default() }
        }
        ForgetSelection::Beyond(retention, now) => ForgetLimits {
            older_than: retention.keep_for.map(|age| Millis(now.0.saturating_sub(age))),
            larger_than: match retention.keep_at_most {
                Some(limit) => Some((limit, used_bytes(connection)?)),
                None => None,
            },
            live_since: Some(Millis(now.0.saturating_sub(Retention::LIVE_MS))),
        },
    };
    // The oldest are last.
    for session in all.into_iter().rev() {
        let is_live = limits.live_since.is_some_and(|time| session.last >= time);
        let is_old = limits.older_than.is_some_and(|time| session.last < time);
        let is_large =
            limits.larger_than.is_some_and(|(limit, used)| used.saturating_sub(chosen.bytes) > limit);
        if !is_live && (is_old || is_large) {
            chosen.bytes += size_of(&session);
            chosen.sessions.push(session);
        }
    }
    Ok(chosen)
}

/// Which sessions go.
#[derive(Default)]
struct ForgetLimits {
    /// Those whose last request is older.
    older_than: Option<Millis>,
    /// The oldest, until no more than so many bytes are taken, of those that are taken now.
    larger_than: Option<(u64, u64)>,
    /// None that was used since.
    live_since: Option<Millis>,
}

/// Returns the bytes of pages that hold something. Pages in the log alone are not counted twice.
fn used_bytes(connection: &Connection) -> Result<u64, StoreError> {
    let number =
        |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, u64>(0));
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(pages * number("page_size")?)
}

/// Tells about how many bytes each session takes that no other holds. Every table is read once for all sessions: there is no
/// index by session, which appending would have to keep.
fn session_sizes(connection: &Connection) -> Result<HashMap<i64, u64>, StoreError> {
    let mut sizes: HashMap<i64, u64> = HashMap::new();
    let mut contents = connection.prepare_cached(
        "SELECT c.session, sum(c.length * 1.0 * length(p.data) / max(p.length, 1)), count(*) \
         FROM content c JOIN pack p ON p.id = c.pack \
         WHERE NOT EXISTS (SELECT 1 FROM shared s WHERE s.content = c.id) GROUP BY c.session",
    )?;
    let mut rows = contents.query([])?;
    while let Some(row) = rows.next()? {
        let (session, packed, count): (i64, f64, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let packed = packed as u64;
        *sizes.entry(session).or_default() += packed + count * BYTES_PER_ROW;
    }
    let mut chains = connection.prepare_cached("SELECT session, count(*) FROM chain GROUP BY session")?;
    let mut rows = chains.query([])?;
    while let Some(row) = rows.next()? {
        let (session, blocks): (i64, u64) = (row.get(0)?, row.get(1)?);
        *sizes.entry(session).or_default() += blocks * BYTES_PER_ROW;
    }
    Ok(sizes)
}

/// Returns pages that hold nothing to the system.
pub(super) fn free_pages(connection: &Connection) -> Result<(), StoreError> {
    // It frees a page with every step.
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// Removes sessions with everything that no other holds.
pub(super) fn remove_sessions(
    transaction: &Transaction<'_>,
    sessions: &[SessionInfo],
) -> Result<(), StoreError> {
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
    // A pack that nothing of is left in goes without being read; few sessions share one with others.
    transaction.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS used (id INTEGER PRIMARY KEY); DELETE FROM used; \
         INSERT OR IGNORE INTO used SELECT pack FROM content WHERE pack IN (SELECT id FROM torn); \
         DELETE FROM pack WHERE id IN (SELECT id FROM torn) AND id NOT IN (SELECT id FROM used); \
         DELETE FROM torn WHERE id NOT IN (SELECT id FROM used);",
    )?;
    for pack in tidy::list_packs(transaction, "id IN (SELECT id FROM torn)")? {
        let rest = tidy::merge_packs(transaction, vec![pack])?;
        tidy::replace_packs(transaction, &rest)?;
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
    transaction.execute("UPDATE indexed SET through = min(through, ?)", [to_number(0).max(last)])?;
    Ok(())
}
