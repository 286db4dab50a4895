//! Appending a request. Takes it with its plan; keeps what is new of it: blocks, the bytes around them, verdicts, identities.
//! All in one transaction, and nothing where another process said something else first.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};
use trimtab_core::{BlockKind, ChainHash, History, PartKind, SentVerdict, Verdict, block_original};

use super::{
    WriteTransaction,
    added::pack_insertions,
    contents::{ContentReader, ContentWriter},
    read::{self, VerdictRows, WHOLE_AGAIN},
    recent::RecentRequest,
    recognize, refused,
};
use crate::{
    Append, Appended, RequestId, SessionId, StoreError,
    codec::{StoredHash, StoredKind, hash_of, put_number, to_number},
    parts::{self, RequestPiece},
};

/// Stands for a block that was not sent at all.
const DROPPED: StoredHash = [0; 16];

pub(super) fn append_request(
    writing: &mut WriteTransaction<'_>,
    asked: &Append<'_>,
) -> Result<Appended, StoreError> {
    let history = asked.history;
    let own_chain;
    let chain = if asked.known.chain.len() == history.blocks().len() {
        &asked.known.chain
    } else {
        own_chain = history.chain();
        &own_chain
    };
    let verdicts = SentVerdict::of_plan(asked.plan);
    let said = said_since(&writing.transaction, asked.known.seen, chain, &verdicts)?;
    if !said.is_empty() {
        let seen = recognize::newest_verdict(&writing.transaction)?;
        return Ok(Appended::SaidBefore { verdicts: said, seen });
    }
    let verdicts_after = recognize::newest_verdict(&writing.transaction)?;
    let (session, base) = find_or_begin_session(&writing.transaction, asked)?;
    let base = match base {
        Some(base) => Some(writing.recents.take_request(&writing.transaction, base)?),
        None => None,
    };
    let ends = parts::part_ends(history);
    let shares = shared_parts(base.as_ref(), history, &ends, chain);
    let mut packing = ContentWriter::new(&writing.transaction, writing.packer, session)?;
    let parts = put_parts(&mut packing, history, &ends, &shares)?;
    let (plan, delta) =
        put_plan(&writing.transaction, &mut packing, session, base.as_ref(), &shares, chain, &verdicts)?;
    packing.write_pack()?;
    put_chain(&writing.transaction, session, chain, shares.blocks, &plan)?;
    let request =
        put_request(&writing.transaction, session, asked, chain, &shares, parts, &delta, base.as_ref())?;
    put_new_verdicts(&writing.transaction, request, verdicts_after)?;
    let bytes = request_bytes(base, history, &ends, &shares);
    writing.recents.keep_request(RecentRequest { request, bytes, ends, chain: chain.clone(), plan });
    Ok(Appended::Stored { session: SessionId(session), request })
}

/// Returns the bytes of a request, in the place of its base's where they begin alike: most of a request is its base.
fn request_bytes(
    base: Option<RecentRequest>,
    history: &History,
    ends: &[usize],
    shares: &SharedParts,
) -> Vec<u8> {
    let same = shares.front.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    let mut bytes = base.map(|base| base.bytes).unwrap_or_default();
    bytes.truncate(same);
    bytes.extend_from_slice(history.bytes().get(bytes.len()..).unwrap_or_default());
    bytes
}

/// Returns what other processes said about these blocks after the caller looked, where the plan says something else.
fn said_since(
    transaction: &Transaction<'_>,
    seen: i64,
    chain: &[ChainHash],
    verdicts: &[SentVerdict],
) -> Result<Vec<(ChainHash, SentVerdict)>, StoreError> {
    if recognize::newest_verdict(transaction)? <= seen {
        return Ok(Vec::new());
    }
    let mut contents = ContentReader::new(transaction)?;
    let mut newer = transaction.prepare_cached("SELECT max(verdict) FROM chain WHERE hash = ?")?;
    let mut digest = transaction.prepare_cached("SELECT digest FROM verdict WHERE id = ?")?;
    let mut said = Vec::new();
    for (hash, planned) in chain.iter().zip(verdicts) {
        let verdict: Option<i64> = newer.query_row([hash.0], |row| row.get(0))?;
        let Some(verdict) = verdict.filter(|verdict| *verdict > seen) else { continue };
        let theirs: StoredHash = digest.query_row([verdict], |row| row.get(0))?;
        // Whole is whole, whether it was hidden in between or not.
        if digest_of(planned).unwrap_or(WHOLE_AGAIN) != theirs {
            said.push((*hash, read::read_verdict(transaction, &mut contents, verdict)?));
        }
    }
    Ok(said)
}

/// Names what is sent instead of a block; nothing for a block that is sent whole.
fn digest_of(sent: &SentVerdict) -> Option<StoredHash> {
    let verdict = sent.verdict();
    match verdict.text() {
        Some(text) => Some(hash_of(StoredKind::Sent, text.as_bytes())),
        None => (*verdict != Verdict::Keep).then_some(DROPPED),
    }
}

/// Returns the session and the request whose parts are used again; begins a session where there is none.
fn find_or_begin_session(
    transaction: &Transaction<'_>,
    asked: &Append<'_>,
) -> Result<(i64, Option<RequestId>), StoreError> {
    let (known, cost) = (asked.known, asked.plan.cost());
    let after = |session: i64| -> Result<Option<RequestId>, StoreError> {
        // What was to be continued may have been forgotten, or another request came in between.
        let sql = "SELECT coalesce((SELECT id FROM request WHERE id = ?1 AND session = ?2), \
                   (SELECT max(id) FROM request WHERE session = ?2))";
        let after = known.after.map(|after| after.0);
        let found: Option<i64> =
            transaction.prepare_cached(sql)?.query_row(params![after, session], |row| row.get(0))?;
        Ok(found.map(RequestId))
    };
    if let Some(SessionId(session)) = known.session {
        let changed = transaction
            .prepare_cached(
                "UPDATE session SET last_at = max(last_at, ?1), requests = requests + 1, name = coalesce(name, ?2), \
                 spent_ours = spent_ours + ?3, spent_raw = spent_raw + ?4, project = coalesce(project, ?6) WHERE id = ?5",
            )?
            .execute(params![asked.at.0, known.name, cost.ours, cost.raw, session, known.project])?;
        if changed > 0 {
            return Ok((session, after(session)?));
        }
    }
    transaction
        .prepare_cached(
            "INSERT INTO session (name, first_at, last_at, requests, spent_ours, spent_raw, project) \
             VALUES (?1, ?2, ?2, 1, ?3, ?4, ?5)",
        )?
        .execute(params![known.name, asked.at.0, cost.ours, cost.raw, known.project])?;
    Ok((transaction.last_insert_rowid(), None))
}

/// What a request has in common with its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SharedParts {
    /// Leading parts.
    front: usize,
    /// Trailing parts.
    back: usize,
    /// Leading blocks with the same identity.
    blocks: usize,
}

fn shared_parts(
    base: Option<&RecentRequest>,
    history: &History,
    ends: &[usize],
    chain: &[ChainHash],
) -> SharedParts {
    let Some(base) = base else { return SharedParts { front: 0, back: 0, blocks: 0 } };
    let same_part = |(one, other): &((usize, usize), (usize, usize))| {
        base.bytes.get(one.0..one.1) == history.bytes().get(other.0..other.1)
    };
    let front = part_bounds(&base.ends).zip(part_bounds(ends)).take_while(same_part).count();
    let last = (part_bounds(&base.ends).last(), part_bounds(ends).last());
    let back = match last {
        (Some(one), Some(other)) if front < ends.len() && front < base.ends.len() => same_part(&(one, other)),
        _ => false,
    };
    let blocks = base.chain.iter().zip(chain).take_while(|(one, other)| one == other).count();
    SharedParts { front, back: usize::from(back), blocks }
}

fn part_bounds(ends: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied())
}

/// Packs the blocks and the bytes around them that are new.
fn put_parts(
    packing: &mut ContentWriter<'_, '_>,
    history: &History,
    ends: &[usize],
    shares: &SharedParts,
) -> Result<i64, StoreError> {
    let new = parts::part_pieces(history, ends, shares.front, ends.len() - shares.back);
    let mut ids: BTreeMap<usize, u64> = BTreeMap::new();
    let from = shares.front.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let to = (ends.len() - shares.back).checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    for (block_number, block) in history.blocks().iter().enumerate() {
        if block.span.start() < from || block.span.end() > to {
            continue;
        }
        let pictures = |kind| matches!(kind, PartKind::Image | PartKind::Audio | PartKind::Document);
        let media =
            block.kind == BlockKind::Media || history.parts_of(block).iter().any(|part| pictures(part.kind));
        let kind = if media { StoredKind::Media } else { StoredKind::Block };
        let id = packing.put_content(kind, &block_original(history, block))?;
        ids.insert(block_number, u64::try_from(id).unwrap_or_default());
    }
    let named = |piece: RequestPiece<usize>| match piece {
        RequestPiece::Literal(bytes) => RequestPiece::Literal(bytes),
        RequestPiece::Hole { block, spelling, range } => {
            RequestPiece::Hole { block: ids.get(&block).copied().unwrap_or_default(), spelling, range }
        }
    };
    let new: Vec<Vec<RequestPiece<u64>>> =
        new.into_iter().map(|part| part.into_iter().map(named).collect()).collect();
    packing.put_content(StoredKind::Parts, &parts::encode_parts(&new))
}

/// Keeps new verdicts. Returns the plan, and how it differs from the one before.
fn put_plan(
    transaction: &Transaction<'_>,
    packing: &mut ContentWriter<'_, '_>,
    session: i64,
    base: Option<&RecentRequest>,
    shares: &SharedParts,
    chain: &[ChainHash],
    verdicts: &[SentVerdict],
) -> Result<(VerdictRows, Vec<u8>), StoreError> {
    let mut plan = VerdictRows::new();
    let mut delta = Vec::new();
    let is_base_refused = match base {
        Some(base) => refused::is_refused(transaction, base.request)?,
        None => false,
    };
    for ((block, hash), planned) in (0_u32..).zip(chain).zip(verdicts) {
        let shared = usize::try_from(block).is_ok_and(|block| block < shares.blocks);
        let before = base.filter(|_| shared).and_then(|base| base.plan.get(&block)).copied();
        let digest = digest_of(planned);
        if *planned == SentVerdict::WholeAgain {
            put_verdict(transaction, packing, session, *hash, planned, WHOLE_AGAIN)?;
        }
        if before.map(|(_, digest)| digest) == digest {
            // What a refused request said was taken back: it is said for the first time now.
            if let Some(digest) = digest.filter(|_| is_base_refused) {
                put_verdict(transaction, packing, session, *hash, planned, digest)?;
            }
            plan.extend(before.map(|before| (block, before)));
            continue;
        }
        put_number(&mut delta, u64::from(block));
        let Some(digest) = digest else {
            put_number(&mut delta, 0);
            continue;
        };
        let id = put_verdict(transaction, packing, session, *hash, planned, digest)?;
        put_number(&mut delta, u64::try_from(id).unwrap_or_default());
        plan.insert(block, (id, digest));
    }
    Ok((plan, delta))
}

/// Returns the number of a verdict. Verdicts that others stored since the caller looked were found before, so a verdict that differs from
/// the one known hides more, or takes back what was hidden, and is the one to repeat from now on.
fn put_verdict(
    transaction: &Transaction<'_>,
    packing: &mut ContentWriter<'_, '_>,
    session: i64,
    hash: ChainHash,
    planned: &SentVerdict,
    digest: StoredHash,
) -> Result<i64, StoreError> {
    let first: Option<i64> = transaction
        .prepare_cached("SELECT max(verdict) FROM chain WHERE hash = ?")?
        .query_row([hash.0], |row| row.get(0))?;
    if let Some(first) = first {
        let same: bool = transaction
            .prepare_cached("SELECT digest = ?1 FROM verdict WHERE id = ?2")?
            .query_row(params![digest, first], |row| row.get(0))?;
        if same {
            return Ok(first);
        }
    }
    let text = match planned.verdict().text() {
        Some(text) => Some(packing.put_content(StoredKind::Sent, text.as_bytes())?),
        None => None,
    };
    let reason = planned.verdict().reason();
    let reason = reason.and_then(|reason| serde_json::to_string(&reason).ok()).unwrap_or_default();
    transaction
        .prepare_cached(
            "INSERT INTO verdict (session, digest, reason, text, instead_of) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![session, digest, reason, text, first])?;
    let id = transaction.last_insert_rowid();
    transaction
        .prepare_cached("UPDATE chain SET verdict = ?1 WHERE hash = ?2")?
        .execute(params![id, hash.0])?;
    Ok(id)
}

/// Notes which verdicts are a request's own, in case the provider refuses it.
fn put_new_verdicts(transaction: &Transaction<'_>, request: RequestId, after: i64) -> Result<(), StoreError> {
    let through = recognize::newest_verdict(transaction)?;
    if through > after {
        transaction
            .prepare_cached("UPDATE request SET verdicts_after = ?, verdicts_through = ? WHERE id = ?")?
            .execute(params![after, through, request.0])?;
    }
    Ok(())
}

/// Keeps the identities of the blocks that are new to the session, with the first verdict on each.
fn put_chain(
    transaction: &Transaction<'_>,
    session: i64,
    chain: &[ChainHash],
    shared: usize,
    plan: &VerdictRows,
) -> Result<(), StoreError> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO chain (hash, session, verdict) \
         VALUES (?1, ?2, coalesce((SELECT max(verdict) FROM chain WHERE hash = ?1), ?3))",
    )?;
    for (block, hash) in (0_u32..).zip(chain).skip(shared) {
        let verdict = plan.get(&block).map(|(id, _)| *id);
        insert.execute(params![hash.0, session, verdict])?;
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one row, one function")]
fn put_request(
    transaction: &Transaction<'_>,
    session: i64,
    asked: &Append<'_>,
    chain: &[ChainHash],
    shares: &SharedParts,
    parts: i64,
    delta: &[u8],
    base: Option<&RecentRequest>,
) -> Result<RequestId, StoreError> {
    let history = asked.history;
    let model = history.model();
    let tip = chain.last().map_or([0; 16], |hash| hash.0);
    transaction
        .prepare_cached(
            "INSERT INTO request (session, at, format, model, bytes, tokens_before, tokens_after, base, front, back, \
             parts, same_blocks, plan, tip, marker, added) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            session,
            asked.at.0,
            history.format().name(),
            model,
            to_number(history.bytes().len()),
            asked.plan.before().0,
            asked.plan.after().0,
            base.map(|base| base.request.0),
            to_number(shares.front),
            to_number(shares.back),
            parts,
            to_number(shares.blocks),
            (!delta.is_empty()).then_some(delta),
            tip,
            asked.plan.marker().map(|block| block.0),
            (!asked.added.is_empty()).then(|| pack_insertions(asked.added)),
        ])?;
    let request = RequestId(transaction.last_insert_rowid());
    // Only a request that is continued as a whole counts as extended; one that was rewritten stays open.
    if let Some(base) = base.filter(|base| base.chain.len() == shares.blocks) {
        transaction
            .prepare_cached("UPDATE request SET extended = 1 WHERE id = ?")?
            .execute([base.request.0])?;
    }
    Ok(request)
}
