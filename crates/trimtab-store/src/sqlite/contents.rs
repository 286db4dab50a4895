//! Contents by their hash, packed together and compressed. Takes bytes; gives numbers, and the same bytes for a number,
//! compared with their hash. Never keeps the same block twice.

use std::{collections::HashMap, rc::Rc};

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use zstd::bulk::{Compressor, Decompressor};

use crate::{
    codec::{StoredHash, StoredKind, handle_of, hash_of, to_number, to_size},
    error::{StoreError, damage_error},
};

/// Level of compression on the way of a request: more costs time that the agent waits.
pub(super) const FAST_LEVEL: i32 = 3;

/// Bytes that are packed together at most: reading one content unpacks its neighbours too, a few milliseconds. Four times as
/// much as 1 MiB takes a twelfth less space; more hardly helps.
pub(super) const PACK_BYTES: usize = 4 << 20;

/// Unpacked bytes that a reader keeps while it reads one thing.
const KEPT_BYTES: usize = 64 << 20;

/// No content is longer than what the library reads.
const LONGEST: usize = trimtab_core::json::MAX_JSON_BYTES;

/// A content that is written with the next pack.
struct PendingContent {
    id: i64,
    hash: StoredHash,
    kind: StoredKind,
    start: usize,
    length: usize,
}

/// Contents on their way into the store.
pub(super) struct ContentWriter<'a, 'b> {
    transaction: &'a Transaction<'b>,
    packer: &'a mut Compressor<'static>,
    session: i64,
    next: i64,
    bytes: Vec<u8>,
    waiting: Vec<PendingContent>,
    fresh: HashMap<StoredHash, i64>,
}

impl<'a, 'b> ContentWriter<'a, 'b> {
    pub(super) fn new(
        transaction: &'a Transaction<'b>,
        packer: &'a mut Compressor<'static>,
        session: i64,
    ) -> Result<ContentWriter<'a, 'b>, StoreError> {
        let next = transaction
            .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM content")?
            .query_row([], |row| row.get(0))?;
        let (bytes, waiting, fresh) = (Vec::new(), Vec::new(), HashMap::new());
        Ok(ContentWriter { transaction, packer, session, next, bytes, waiting, fresh })
    }

    /// Returns the number of a content; packs it where it is new.
    pub(super) fn put_content(&mut self, kind: StoredKind, content: &[u8]) -> Result<i64, StoreError> {
        let hash = hash_of(kind, content);
        if kind != StoredKind::Parts {
            if let Some(id) = self.fresh.get(&hash) {
                return Ok(*id);
            }
            if let Some(id) = self.find_known(&hash)? {
                self.fresh.insert(hash, id);
                return Ok(id);
            }
        }
        if !self.bytes.is_empty() && self.bytes.len() + content.len() > PACK_BYTES {
            self.write_pack()?;
        }
        let id = self.next;
        self.next += 1;
        self.fresh.insert(hash, id);
        self.waiting.push(PendingContent { id, hash, kind, start: self.bytes.len(), length: content.len() });
        self.bytes.extend_from_slice(content);
        Ok(id)
    }

    /// Finds a content that is stored, and notes that this session holds it too.
    fn find_known(&self, hash: &StoredHash) -> Result<Option<i64>, StoreError> {
        let found = self
            .transaction
            .prepare_cached("SELECT id, session FROM content WHERE substr(hash, 1, 6) = substr(?1, 1, 6) AND hash = ?1 AND kind <> 2")?
            .query_row([hash], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        let Some((id, session)) = found else { return Ok(None) };
        if session != self.session {
            self.transaction
                .prepare_cached("INSERT OR IGNORE INTO shared (content, session) VALUES (?, ?)")?
                .execute([id, self.session])?;
        }
        Ok(Some(id))
    }

    /// Writes what is waiting.
    pub(super) fn write_pack(&mut self) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (self.waiting.first(), self.waiting.last()) else { return Ok(()) };
        let data = compress_pack(self.packer, &self.bytes)?;
        let loose = self.bytes.len() < PACK_BYTES / 2;
        self.transaction
            .prepare_cached("INSERT INTO pack (first, last, length, loose, data) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![first.id, last.id, to_number(self.bytes.len()), loose, data])?;
        let pack = self.transaction.last_insert_rowid();
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO content (id, hash, kind, session, pack, start, length) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?;
        for PendingContent { id, hash, kind, start, length } in self.waiting.drain(..) {
            insert.execute(params![
                id,
                hash,
                kind.number(),
                self.session,
                pack,
                to_number(start),
                to_number(length)
            ])?;
        }
        self.bytes.clear();
        Ok(())
    }
}

pub(super) fn compress_pack(packer: &mut Compressor<'static>, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    packer.compress(bytes).map_err(|source| StoreError::Io { doing: "compressing", source })
}

/// Where a content lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentLocation {
    pub(super) hash: StoredHash,
    pub(super) kind: u8,
    pub(super) pack: i64,
    pub(super) start: usize,
    pub(super) length: usize,
}

/// Contents on their way out of the store.
pub(super) struct ContentReader<'a> {
    connection: &'a Connection,
    unpacker: Decompressor<'static>,
    packs: HashMap<i64, Rc<Vec<u8>>>,
    kept: usize,
}

impl<'a> ContentReader<'a> {
    pub(super) fn new(connection: &'a Connection) -> Result<ContentReader<'a>, StoreError> {
        let unpacker = Decompressor::new()
            .map_err(|source| StoreError::Io { doing: "making a decompressor", source })?;
        Ok(ContentReader { connection, unpacker, packs: HashMap::new(), kept: 0 })
    }

    /// Returns a content, compared with its hash.
    pub(super) fn get_content(&mut self, id: i64) -> Result<Vec<u8>, StoreError> {
        let lies = self
            .connection
            .prepare_cached("SELECT hash, kind, pack, start, length FROM content WHERE id = ?")?
            .query_row([id], read_location)
            .optional()?
            .ok_or_else(|| damage_error(format!("content {id}"), "it is missing"))?;
        self.content_at(&lies)
    }

    /// Returns the content that lies there.
    pub(super) fn content_at(&mut self, lies: &ContentLocation) -> Result<Vec<u8>, StoreError> {
        let what = || format!("block {}", handle_of(&lies.hash));
        let kind =
            StoredKind::of_number(lies.kind).ok_or_else(|| damage_error(what(), "its kind is not known"))?;
        let pack = match self.unpack(lies.pack) {
            Err(StoreError::Damaged { why, .. }) => return Err(damage_error(what(), why)),
            other => other?,
        };
        let end = lies.start.saturating_add(lies.length);
        let content =
            pack.get(lies.start..end).ok_or_else(|| damage_error(what(), "its pack is too short"))?;
        if hash_of(kind, content) != lies.hash {
            return Err(damage_error(what(), "it does not match its hash"));
        }
        Ok(content.to_vec())
    }

    /// Returns a whole pack, unpacked.
    pub(super) fn unpack(&mut self, id: i64) -> Result<Rc<Vec<u8>>, StoreError> {
        if let Some(pack) = self.packs.get(&id) {
            return Ok(Rc::clone(pack));
        }
        let what = || format!("pack {id}");
        let mut statement = self.connection.prepare_cached("SELECT length, data FROM pack WHERE id = ?")?;
        let mut rows = statement.query([id])?;
        let row = rows.next()?.ok_or_else(|| damage_error(what(), "it is missing"))?;
        let length = to_size(row.get(0)?).min(LONGEST);
        let data = row.get_ref(1)?.as_blob().map_err(|fault| damage_error(what(), fault))?;
        let pack = self.unpacker.decompress(data, length).map_err(|fault| damage_error(what(), fault))?;
        if self.kept + pack.len() > KEPT_BYTES {
            self.packs.clear();
            self.kept = 0;
        }
        self.kept += pack.len();
        let pack = Rc::new(pack);
        self.packs.insert(id, Rc::clone(&pack));
        Ok(pack)
    }
}

/// Reads where a content lies: hash, kind, pack, start, length.
pub(super) fn read_location(row: &rusqlite::Row<'_>) -> rusqlite::Result<ContentLocation> {
    Ok(ContentLocation {
        hash: row.get(0)?,
        kind: row.get(1)?,
        pack: row.get(2)?,
        start: to_size(row.get(3)?),
        length: to_size(row.get(4)?),
    })
}
