//! Which session a request goes on with. Takes its chain of hashes and its label; gives the session, the request that it
//! continues, and what was sent before. A name never decides: it chooses between sessions that fit equally. A
//! project does: no request goes on in a session of another one.

use rusqlite::{Connection, OptionalExtension, params};
use trimtab_core::{
    Block, ChainHash, History, Memory, Millis, Role, SentVerdict,
    memory::{InputCosts, Wishes},
};

use super::{contents::ContentReader, read, refused, wishes};
use crate::{Recognized, RequestId, SessionId, SessionLabel, StoreError};

pub(super) fn recognize_session(
    connection: &Connection,
    history: &History,
    label: SessionLabel<'_>,
) -> Result<Recognized, StoreError> {
    let placed = recognize_place(connection, history, history.chain(), label)?;
    let sent = refused::sent_blocks(connection, placed.after, placed.known_blocks)?;
    let mut memory = read_memory(connection, placed.chain.get(..sent).unwrap_or_default())?;
    if let Some(SessionId(session)) = placed.session {
        let (last, requests, spent) = connection
            .prepare_cached("SELECT last_at, requests, spent_ours, spent_raw FROM session WHERE id = ?")?
            .query_row([session], |row| {
                Ok((row.get(0)?, row.get(1)?, InputCosts { ours: row.get(2)?, raw: row.get(3)? }))
            })?;
        memory.resume(Millis(last), requests, spent);
        memory.ended_with(cached_ends(connection, session, Millis(last))?);
        memory.set_wishes(wishes::of_session(connection, SessionId(session), history, &placed.chain)?);
    }
    Ok(Recognized { memory, ..placed })
}

/// Returns what is asked for about the blocks of a request.
pub(super) fn find_wishes(
    connection: &Connection,
    history: &History,
    chain: &[ChainHash],
    label: SessionLabel<'_>,
) -> Result<Wishes, StoreError> {
    let known = known_blocks(connection, chain)?;
    match find_session(connection, history, chain, known, label)? {
        Some((session, _)) => wishes::of_session(connection, SessionId(session), history, chain),
        None => Ok(Wishes::default()),
    }
}

/// Returns the last blocks of the requests of a session that may still be cached, with the times at which they were sent.
fn cached_ends(
    connection: &Connection,
    session: i64,
    last: Millis,
) -> Result<Vec<(ChainHash, Millis)>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT tip, at FROM request WHERE session = ? AND NOT refused ORDER BY id DESC")?;
    let rows = statement.query_map([session], |row| Ok((ChainHash(row.get(0)?), Millis(row.get(1)?))))?;
    let mut ends = Vec::new();
    for row in rows {
        let (end, at) = row?;
        // Another process may have kept an older request later: only what is much older ends the search.
        if at.0 < last.0.saturating_sub(2 * Memory::ENDS_LAST_MS) {
            break;
        }
        ends.push((end, at));
    }
    Ok(ends)
}

/// Finds all but the memory.
pub(super) fn recognize_place(
    connection: &Connection,
    history: &History,
    chain: Vec<ChainHash>,
    label: SessionLabel<'_>,
) -> Result<Recognized, StoreError> {
    let seen = newest_verdict(connection)?;
    let known_blocks = known_blocks(connection, &chain)?;
    let place = find_session(connection, history, &chain, known_blocks, label)?;
    Ok(Recognized {
        session: place.map(|(session, _)| SessionId(session)),
        memory: Memory::default(),
        chain,
        known_blocks,
        after: place.and_then(|(_, after)| after).map(RequestId),
        seen,
        name: label.name.map(str::to_owned),
        project: label.project.map(str::to_owned),
    })
}

/// Returns the number of the newest verdict.
pub(super) fn newest_verdict(connection: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'verdict'), 0)";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns how many leading blocks some session has sent. A session that sent a block sent all before it.
fn known_blocks(connection: &Connection, chain: &[ChainHash]) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM chain WHERE hash = ? LIMIT 1")?;
    let (mut known, mut unknown) = (0, chain.len());
    while known < unknown {
        let middle = known.midpoint(unknown);
        let Some(hash) = chain.get(middle) else { break };
        if statement.exists([hash.0])? {
            known = middle + 1;
        } else {
            unknown = middle;
        }
    }
    Ok(known)
}

/// A request whose blocks this one begins with.
struct BaseRequest {
    request: i64,
    session: i64,
    at: i64,
    extended: bool,
    answered: bool,
    named: Option<String>,
    project: Option<String>,
}

/// Finds the session, and the request that is continued.
pub(super) fn find_session(
    connection: &Connection,
    history: &History,
    chain: &[ChainHash],
    known: usize,
    label: SessionLabel<'_>,
) -> Result<Option<(i64, Option<i64>)>, StoreError> {
    let name = label.name;
    let answer = first_answer(history);
    let owner = owning_session(connection, chain, known, answer, label.project)?;
    let mut statement = connection.prepare_cached(
        "SELECT r.id, r.session, r.at, r.extended, r.usage IS NOT NULL, s.name, s.project FROM request r \
         JOIN session s ON s.id = r.session WHERE substr(r.tip, 1, 6) = substr(?1, 1, 6) AND r.tip = ?1 ORDER BY r.id DESC",
    )?;
    for (index, hash) in chain.iter().enumerate().take(known).rev() {
        let tips = statement.query_map([hash.0], |row| {
            Ok(BaseRequest {
                request: row.get(0)?,
                session: row.get(1)?,
                at: row.get(2)?,
                extended: row.get(3)?,
                answered: row.get(4)?,
                named: row.get(5)?,
                project: row.get(6)?,
            })
        })?;
        let mut open: Vec<BaseRequest> = tips.collect::<Result<_, _>>()?;
        // The same words again after an answer are a new conversation; without an answer they are another try.
        let again = index + 1 == chain.len();
        open.retain(|tip| may_go_on(tip.project.as_deref(), label.project, index >= answer));
        open.retain(|tip| !(tip.extended || again && tip.answered));
        open.retain(|tip| owner.as_ref().is_none_or(|owner| tip_wins(tip, owner, name)));
        let named = |tip: &&BaseRequest| name.is_some() && tip.named.as_deref() == name;
        // Of two that fit equally, one with another name is another conversation.
        let unnamed = |tip: &&BaseRequest| name.is_none() || tip.named.is_none() || index >= answer;
        if let Some(tip) = open.iter().find(named).or_else(|| open.iter().find(unnamed)) {
            return Ok(Some((tip.session, Some(tip.request))));
        }
    }
    // A rewritten or branched history: what the model said in it tells whose it is.
    let Some(owner) = owner else { return Ok(None) };
    let last = connection
        .prepare_cached("SELECT max(id) FROM request WHERE session = ?")?
        .query_row([owner.session], |row| row.get(0))?;
    Ok(Some((owner.session, last)))
}

/// The newest session that holds the longest known chain, where that chain holds something that the model said. Sessions of other
/// projects do not count.
struct OwningSession {
    session: i64,
    last: i64,
    named: Option<String>,
}

fn owning_session(
    connection: &Connection,
    chain: &[ChainHash],
    known: usize,
    answer: usize,
    project: Option<&str>,
) -> Result<Option<OwningSession>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT s.id, s.last_at, s.name FROM chain c JOIN session s ON s.id = c.session WHERE c.hash = ?1 \
         AND (?2 IS NULL OR s.project IS NULL OR s.project = ?2) \
         ORDER BY s.project IS ?2 DESC, s.last_at DESC, s.id DESC LIMIT 1",
    )?;
    // Another project may know more of the chain.
    for hash in chain.iter().take(known).skip(answer).rev() {
        let found = statement.query_row(params![hash.0, project], |row| {
            Ok(OwningSession { session: row.get(0)?, last: row.get(1)?, named: row.get(2)? })
        });
        if let Some(owner) = found.optional()? {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

/// Tells whether a request may go on in a session: never in one of another project. Where the model has said nothing yet, two
/// conversations may begin with the same words, so that one without a project is another one, too.
fn may_go_on(of_session: Option<&str>, of_request: Option<&str>, has_answer: bool) -> bool {
    match (of_session, of_request) {
        (Some(one), Some(other)) => one == other,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => has_answer,
    }
}

/// A request that nobody went on from wins over a longer chain of a session that has been quiet since: the same
/// conversation takes place once more.
fn tip_wins(tip: &BaseRequest, owner: &OwningSession, name: Option<&str>) -> bool {
    if tip.session == owner.session {
        return true;
    }
    if name.is_some() && tip.named != owner.named {
        return tip.named.as_deref() == name;
    }
    tip.at >= owner.last
}

/// Returns the number of the first block that the model said; one that is never reached where it said nothing.
fn first_answer(history: &History) -> usize {
    let role = |block: &Block| history.entry_of(block).map(|entry| entry.role);
    history.blocks().iter().position(|block| role(block) == Some(Role::Assistant)).unwrap_or(usize::MAX)
}

/// Makes the memory of what was sent of these blocks.
fn read_memory(connection: &Connection, chain: &[ChainHash]) -> Result<Memory, StoreError> {
    let mut contents = ContentReader::new(connection)?;
    let mut statement = connection.prepare_cached("SELECT max(verdict) FROM chain WHERE hash = ?")?;
    let mut memory = Memory::default();
    for hash in chain {
        let verdict: Option<i64> = statement.query_row([hash.0], |row| row.get(0))?;
        let verdict = match verdict {
            Some(id) => read::read_verdict(connection, &mut contents, id)?,
            None => SentVerdict::WHOLE,
        };
        memory.remember(*hash, verdict);
    }
    Ok(memory)
}
