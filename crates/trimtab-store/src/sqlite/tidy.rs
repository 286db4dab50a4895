//! Putting small packs together. Takes packs that appends made; gives larger ones that take less space. Every content keeps
//! its number; a reader sees the old packs or the new one, never half of each. Compressing holds up nobody.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use zstd::bulk::Compressor;

use super::contents::{ContentReader, PACK_BYTES, compress_pack};
use crate::{
    StoreError, TidyOutcome,
    codec::{to_number, to_size},
};

/// Level of compression off the way of a request: a third smaller than what appends write, at about 15 MB a second.
const SMALL_LEVEL: i32 = 12;

/// Fewer small packs than this are left until there are more.
const FEWEST: usize = 32;

/// A pack as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackRow {
    pub(super) id: i64,
    first: i64,
    last: i64,
    length: usize,
    stored: usize,
}

/// Packs that become one.
pub(super) struct MergedPack {
    packs: Vec<PackRow>,
    /// Where each content lies in the new pack.
    moved: BTreeMap<i64, usize>,
    length: usize,
    data: Vec<u8>,
}

/// Puts one pack's worth of loose packs together, without writing anything; nothing where there are too few.
pub(super) fn prepare_some(connection: &Connection) -> Result<Option<MergedPack>, StoreError> {
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for pack in list_packs(connection, "loose = 1")? {
        if bytes + pack.length > PACK_BYTES && !chosen.is_empty() {
            return merge_packs(connection, chosen).map(Some);
        }
        bytes += pack.length;
        chosen.push(pack);
    }
    if chosen.len() < FEWEST {
        return Ok(None);
    }
    merge_packs(connection, chosen).map(Some)
}

pub(super) fn list_packs(connection: &Connection, which: &str) -> Result<Vec<PackRow>, StoreError> {
    let sql = format!("SELECT id, first, last, length, length(data) FROM pack WHERE {which} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], pack_from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn pack_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<PackRow> {
    Ok(PackRow {
        id: row.get(0)?,
        first: row.get(1)?,
        last: row.get(2)?,
        length: to_size(row.get(3)?),
        stored: to_size(row.get(4)?),
    })
}

/// Makes one pack of several, with the contents that are still there.
pub(super) fn merge_packs(connection: &Connection, packs: Vec<PackRow>) -> Result<MergedPack, StoreError> {
    let mut contents = ContentReader::new(connection)?;
    let mut bytes = Vec::new();
    let mut moved: BTreeMap<i64, usize> = BTreeMap::new();
    for pack in &packs {
        let unpacked = contents.unpack(pack.id)?;
        let mut statement = connection.prepare_cached(
            "SELECT id, start, length FROM content WHERE id BETWEEN ? AND ? AND pack = ? ORDER BY start",
        )?;
        let mut rows = statement.query([pack.first, pack.last, pack.id])?;
        while let Some(row) = rows.next()? {
            let (id, start, length): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (start, length) = (to_size(start), to_size(length));
            moved.insert(id, bytes.len());
            // A content that lies outside its pack stays outside: reading it names the damage.
            let content = unpacked.get(start..start.saturating_add(length)).unwrap_or_default();
            bytes.extend_from_slice(content);
        }
    }
    let mut packer = Compressor::new(SMALL_LEVEL)
        .map_err(|source| StoreError::Io { doing: "making a compressor", source })?;
    let data = compress_pack(&mut packer, &bytes)?;
    Ok(MergedPack { packs, moved, length: bytes.len(), data })
}

/// Puts the new pack in the place of the old ones; nothing where another process was faster.
pub(super) fn replace_packs(
    transaction: &Transaction<'_>,
    new: &MergedPack,
) -> Result<Option<TidyOutcome>, StoreError> {
    let mut again =
        transaction.prepare_cached("SELECT id, first, last, length, length(data) FROM pack WHERE id = ?")?;
    for pack in &new.packs {
        if again.query_row([pack.id], pack_from_row).optional()? != Some(*pack) {
            return Ok(None);
        }
    }
    let mut done = TidyOutcome {
        pieces: u64::try_from(new.packs.len()).unwrap_or_default(),
        before: new.packs.iter().map(|pack| u64::try_from(pack.stored).unwrap_or_default()).sum(),
        after: 0,
    };
    if let (Some((first, _)), Some((last, _))) = (new.moved.first_key_value(), new.moved.last_key_value()) {
        done.after = u64::try_from(new.data.len()).unwrap_or_default();
        // What is still small waits for more.
        let loose = new.length < PACK_BYTES / 2;
        transaction.execute(
            "INSERT INTO pack (first, last, length, loose, data) VALUES (?, ?, ?, ?, ?)",
            params![first, last, to_number(new.length), loose, new.data],
        )?;
        let pack = transaction.last_insert_rowid();
        let mut update = transaction.prepare_cached("UPDATE content SET pack = ?, start = ? WHERE id = ?")?;
        for (id, start) in &new.moved {
            update.execute(params![pack, to_number(*start), id])?;
        }
    }
    for pack in &new.packs {
        transaction.execute("DELETE FROM pack WHERE id = ?", [pack.id])?;
    }
    Ok(Some(done))
}
