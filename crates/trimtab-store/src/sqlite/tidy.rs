//! Putting small packs together. Takes packs that appends made; gives larger ones that take less space. Every content keeps
//! its number; a reader sees the old packs or the new one, never half of each.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};
use zstd::bulk::Compressor;

use super::{
    Writing,
    contents::{Contents, PACK_BYTES, compress},
};
use crate::{
    StoreError, Tidied,
    codec::{number, size},
};

/// Level of compression off the way of a request: a tenth smaller than the fast one, at about 30 MB a second.
const SMALL_LEVEL: i32 = 9;

/// A pack as it is listed.
pub(super) struct Listed {
    pub(super) id: i64,
    first: i64,
    last: i64,
    length: usize,
    stored: usize,
}

/// Puts one pack's worth of loose packs together; nothing where there are too few.
pub(super) fn tidy_some(writing: &mut Writing<'_>) -> Result<Option<Tidied>, StoreError> {
    let listed = listed(&writing.transaction, "loose = 1")?;
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for pack in listed {
        if bytes + pack.length > PACK_BYTES && !chosen.is_empty() {
            return together(&writing.transaction, &chosen).map(Some);
        }
        bytes += pack.length;
        chosen.push(pack);
    }
    Ok(None)
}

pub(super) fn listed(connection: &Connection, which: &str) -> Result<Vec<Listed>, StoreError> {
    let sql = format!("SELECT id, first, last, length, length(data) FROM pack WHERE {which} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Listed {
            id: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            length: size(row.get(3)?),
            stored: size(row.get(4)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes one pack of several, with the contents that are still there.
pub(super) fn together(transaction: &Transaction<'_>, packs: &[Listed]) -> Result<Tidied, StoreError> {
    let mut contents = Contents::new(transaction)?;
    let mut bytes = Vec::new();
    let mut moved: BTreeMap<i64, usize> = BTreeMap::new();
    for pack in packs {
        let unpacked = contents.pack(pack.id)?;
        let mut statement = transaction.prepare_cached(
            "SELECT id, start, length FROM content WHERE id BETWEEN ? AND ? AND pack = ? ORDER BY start",
        )?;
        let mut rows = statement.query([pack.first, pack.last, pack.id])?;
        while let Some(row) = rows.next()? {
            let (id, start, length): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (start, length) = (size(start), size(length));
            moved.insert(id, bytes.len());
            // A content that lies outside its pack stays outside: reading it names the damage.
            let content = unpacked.get(start..start.saturating_add(length)).unwrap_or_default();
            bytes.extend_from_slice(content);
        }
    }
    let mut done = Tidied {
        pieces: u64::try_from(packs.len()).unwrap_or_default(),
        before: packs.iter().map(|pack| u64::try_from(pack.stored).unwrap_or_default()).sum(),
        after: 0,
    };
    if let (Some((first, _)), Some((last, _))) = (moved.first_key_value(), moved.last_key_value()) {
        let mut packer = Compressor::new(SMALL_LEVEL)
            .map_err(|source| StoreError::Io { doing: "making a compressor", source })?;
        let data = compress(&mut packer, &bytes)?;
        done.after = u64::try_from(data.len()).unwrap_or_default();
        let length = number(bytes.len());
        // What was taken for small and is still small waits for more.
        let loose = packs.len() == 1 && bytes.len() < PACK_BYTES / 2;
        transaction.execute(
            "INSERT INTO pack (first, last, length, loose, data) VALUES (?, ?, ?, ?, ?)",
            params![first, last, length, loose, data],
        )?;
        let pack = transaction.last_insert_rowid();
        let mut update = transaction.prepare_cached("UPDATE content SET pack = ?, start = ? WHERE id = ?")?;
        for (id, start) in &moved {
            update.execute(params![pack, number(*start), id])?;
        }
    }
    for pack in packs {
        transaction.execute("DELETE FROM pack WHERE id = ?", [pack.id])?;
    }
    Ok(done)
}
