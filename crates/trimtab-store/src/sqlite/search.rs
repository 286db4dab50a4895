//! Searching the blocks. Takes words; gives the blocks that hold all of them, ranked by BM25, each with its best line. The index
//! is made when somebody searches, so that appending never waits for it.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::contents::{ContentLocation, ContentReader, read_location};
use crate::{
    SearchHit, SearchQuery, SearchWithin, SessionId, StoreError,
    codec::{handle_of, to_size},
};

/// Bytes of contents that are indexed in one transaction: others wait for about a second at most.
const INDEXED_AT_ONCE: usize = 8 << 20;

/// Blocks that are ranked at most, the newest: more hits than that say that the query is too short.
const RANKED: usize = 500;

/// Words longer than this are encoded data, not words.
const LONGEST_WORD: usize = 64;

// How much a second occurrence adds, and how much less a long block counts: the usual values of BM25.
const K: f64 = 1.2;
const B: f64 = 0.75;

/// Columns of the best line that are given.
const LINE_LETTERS: usize = 240;

/// Tells whether there are contents that are not in the index.
pub(super) fn is_behind(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT (SELECT max(id) FROM content) > through FROM indexed";
    Ok(connection.query_row(sql, [], |row| row.get::<_, Option<bool>>(0))?.unwrap_or(false))
}

/// Indexes the next contents.
pub(super) fn index_some(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let mut contents = ContentReader::new(transaction)?;
    let mut through: i64 = transaction.query_row("SELECT through FROM indexed", [], |row| row.get(0))?;
    let mut select = transaction
        .prepare_cached("SELECT hash, kind, pack, start, length, id FROM content WHERE id > ? ORDER BY id")?;
    let mut insert = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?, ?)")?;
    let mut rows = select.query([through])?;
    let mut done = 0;
    while let Some(row) = rows.next()? {
        let (lies, id): (ContentLocation, i64) = (read_location(row)?, row.get(5)?);
        through = id;
        done += lies.length;
        // A damaged block is reported when it is read; searching goes on without it.
        if let (0 | 4, Ok(text)) = (lies.kind, contents.content_at(&lies)) {
            insert.execute(params![id, index_words(&String::from_utf8_lossy(&text))])?;
        }
        if done > INDEXED_AT_ONCE {
            break;
        }
    }
    transaction.execute("UPDATE indexed SET through = ?", [through])?;
    Ok(())
}

/// Returns the words of a text, once each: an index without positions needs no more.
fn index_words(text: &str) -> String {
    let mut words: Vec<String> = words_in(text).collect();
    words.sort_unstable();
    words.dedup();
    words.join(" ")
}

fn words_in(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty() && word.len() <= LONGEST_WORD).map(str::to_lowercase)
}

pub(super) fn search_blocks(
    connection: &Connection,
    query: &SearchQuery<'_>,
) -> Result<Vec<SearchHit>, StoreError> {
    let mut terms: Vec<String> = words_in(query.words).collect();
    terms.sort_unstable();
    terms.dedup();
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let weights = word_weights(connection, &terms)?;
    let candidates = candidate_blocks(connection, &terms, query.within)?;
    let mut contents = ContentReader::new(connection)?;
    let mut texts = Vec::new();
    for (lies, session) in candidates {
        let Ok(text) = contents.content_at(&lies) else { continue };
        let text = query.secrets.cover_secrets(&String::from_utf8_lossy(&text)).into_owned();
        // The index knows the words of secrets; nobody finds a block by them.
        if has_all(&text, &terms) {
            texts.push((lies, session, text));
        }
    }
    let all: usize = texts.iter().map(|(_, _, text)| text.len()).sum();
    let mean = to_float(all) / to_float(texts.len().max(1));
    let mut found: Vec<SearchHit> = texts
        .into_iter()
        .filter_map(|(lies, session, text)| {
            let score = score_text(&text, &weights, mean);
            let (line, text) = best_line(&text, &weights)?;
            Some(SearchHit { handle: handle_of(&lies.hash), session: SessionId(session), line, text, score })
        })
        .collect();
    // The newest of equals first: they came in that order.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found.truncate(query.most);
    Ok(found)
}

/// Tells whether a text holds all words.
fn has_all(text: &str, terms: &[String]) -> bool {
    let held: HashSet<String> = words_in(text).collect();
    terms.iter().all(|term| held.contains(term))
}

/// Returns how rare each word is.
fn word_weights(connection: &Connection, terms: &[String]) -> Result<HashMap<String, f64>, StoreError> {
    let blocks: i64 =
        connection.query_row("SELECT count(*) FROM content WHERE kind IN (0, 4)", [], |row| row.get(0))?;
    let mut statement = connection.prepare_cached("SELECT doc FROM word_counts WHERE term = ?")?;
    let mut weights = HashMap::new();
    for term in terms {
        let holding: i64 = statement.query_row([term], |row| row.get(0)).optional()?.unwrap_or(0);
        let (blocks, holding) = (to_float(to_size(blocks)), to_float(to_size(holding)));
        let rarity = ((blocks - holding).max(0.0) + 0.5) / (holding + 0.5);
        weights.insert(term.clone(), (1.0 + rarity).ln());
    }
    Ok(weights)
}

/// Returns the newest blocks that hold all words, each with the session that it is shown for.
fn candidate_blocks(
    connection: &Connection,
    terms: &[String],
    within: SearchWithin<'_>,
) -> Result<Vec<(ContentLocation, i64)>, StoreError> {
    const OF_ALL: &str = "c.session";
    const OF_SCOPE: &str = "coalesce(\
        (SELECT s.id FROM session s WHERE s.id = c.session AND coalesce(s.project, s.name) = ?3), \
        (SELECT max(s.id) FROM shared h JOIN session s ON s.id = h.session \
         WHERE h.content = c.id AND coalesce(s.project, s.name) = ?3))";
    const OF_SESSION: &str = "CASE WHEN c.session = ?3 THEN c.session ELSE \
        (SELECT h.session FROM shared h WHERE h.content = c.id AND h.session = ?3) END";
    let session = match within {
        SearchWithin::Everything => OF_ALL,
        SearchWithin::Scope(_) => OF_SCOPE,
        SearchWithin::Session(_) => OF_SESSION,
    };
    // Words hold letters and digits only, so that quoting them is safe.
    let query: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
    let (query, most) = (query.join(" AND "), crate::codec::to_number(RANKED));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT c.hash, c.kind, c.pack, c.start, c.length, {session} AS seen_in FROM words JOIN content c \
         ON c.id = words.rowid WHERE words MATCH ?1 AND seen_in IS NOT NULL ORDER BY words.rowid DESC LIMIT ?2",
    ))?;
    let row = |row: &Row<'_>| Ok((read_location(row)?, row.get(5)?));
    let rows = match within {
        SearchWithin::Everything => statement.query_map(params![query, most], row)?,
        SearchWithin::Scope(scope) => statement.query_map(params![query, most, scope], row)?,
        SearchWithin::Session(session) => statement.query_map(params![query, most, session.0], row)?,
    };
    Ok(rows.collect::<Result<_, _>>()?)
}

fn score_text(text: &str, weights: &HashMap<String, f64>, mean: f64) -> f64 {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in words_in(text) {
        if let Some((term, _)) = weights.get_key_value(&word) {
            *counts.entry(term).or_default() += 1;
        }
    }
    let long = 1.0 - B + B * to_float(text.len()) / mean.max(1.0);
    let of = |(term, weight): (&String, &f64)| {
        let count = to_float(counts.get(term.as_str()).copied().unwrap_or(0));
        weight * count * (K + 1.0) / (count + K * long)
    };
    // In the order of the words: a sum in the order of a map would differ from run to run.
    let mut terms: Vec<(&String, &f64)> = weights.iter().collect();
    terms.sort_by_key(|(term, _)| *term);
    terms.into_iter().map(of).sum()
}

/// Returns the first line that holds most of the words.
fn best_line(text: &str, weights: &HashMap<String, f64>) -> Option<(usize, String)> {
    let value = |line: &str| {
        let mut held: Vec<&str> =
            words_in(line).filter_map(|word| Some(weights.get_key_value(&word)?.0.as_str())).collect();
        held.sort_unstable();
        held.dedup();
        held.iter().filter_map(|term| weights.get(*term)).sum::<f64>()
    };
    let mut best: Option<(f64, usize, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let value = value(line);
        if value > best.map_or(0.0, |(value, _, _)| value) {
            best = Some((value, index + 1, line));
        }
    }
    let (_, number, line) = best?;
    Some((number, line.trim().chars().take(LINE_LETTERS).collect()))
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a share of a score")]
fn to_float(count: usize) -> f64 {
    count as f64
}
