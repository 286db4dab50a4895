//! The store in one SQLite file. Takes and gives what [`Store`] says; writes ahead, commits durably, and lets any number of
//! processes read and write at once.

mod added;
mod append;
mod check;
mod contents;
mod file;
mod forget;
mod open;
mod read;
mod recent;
mod recognize;
mod refused;
mod search;
mod sessions;
mod tidy;
mod wishes;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use trimtab_core::{ChainHash, History, Millis, Usage, memory::Wishes};

use crate::{
    Append, Appended, CheckedCounts, DiskUsage, ForgetOutcome, ForgetSelection, HoldingSession, NewWish,
    Recognized, RequestId, RequestInfo, RunMode, SearchHit, SearchQuery, SessionId, SessionInfo,
    SessionLabel, SessionPage, SessionPageQuery, Store, StoreError, StoredRequest, StoredSummary,
    TidyOutcome, VerdictHistory, Wish,
};
use file::FileIdentity;
use recent::RecentRequests;

/// How many connections for reading are kept open when nobody uses them.
const IDLE_READERS: usize = 8;

/// How long closing waits for other processes before it leaves the log to them.
const CLOSING: Duration = Duration::from_secs(1);

/// A store in one file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    /// The file that was opened.
    file: Option<FileIdentity>,
    has_written: AtomicBool,
    writer: Mutex<SqliteWriter>,
    readers: Mutex<Vec<Connection>>,
}

struct SqliteWriter {
    connection: Connection,
    recents: RecentRequests,
    packer: zstd::bulk::Compressor<'static>,
}

impl std::fmt::Debug for SqliteWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Sqlite {
    /// Opens the store in a file; makes it, readable by its owner alone, where there is none.
    ///
    /// # Errors
    /// Says why it cannot be opened. A file of a newer version is left as it is.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let connection = open::for_writing(path)?;
        Sqlite::with_connection(path, connection)
    }

    /// Opens a store that is there already, to read it. Writing to it fails.
    ///
    /// # Errors
    /// Says why it cannot be opened.
    pub fn open_to_read(path: &Path) -> Result<Sqlite, StoreError> {
        let connection = open::for_reading(path)?;
        Sqlite::with_connection(path, connection)
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the most bytes that the file may have. A larger write fails and writes nothing.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    pub fn set_size_limit(&self, bytes: u64) -> Result<(), StoreError> {
        let writer = self.lock_writer();
        let page: u64 = writer.connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages = bytes / page.max(1);
        writer.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        Ok(())
    }

    /// Tells whether the path still names the file that was opened: what is written to another file is lost.
    pub fn is_in_place(&self) -> bool {
        self.file.is_none_or(|file| FileIdentity::identity_at(&self.path).is_ok_and(|now| now == file))
    }

    /// Gives back memory that only makes the next request faster.
    pub fn release_memory(&self) {
        let mut writer = self.lock_writer();
        writer.recents.clear();
        // Pages that stay in memory harm nobody.
        let _ = writer.connection.release_memory();
    }

    /// Copies the store as it is now into a new file, which only its owner can read. Nobody who uses the store is delayed.
    ///
    /// # Errors
    /// Says why there is no copy; a file that is there already is left as it is.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        file::copy_store(&open::for_reading(&self.path)?, to)
    }

    /// Forgets sessions of a store that nobody has open, without needing space: changes are made in the file itself, and what
    /// undoes them is kept in memory. For a disk that is full.
    ///
    /// # Errors
    /// Says what is wrong with the store, that there is no such session, or that another process has the store open.
    pub fn forget_alone(
        path: &Path,
        which: &ForgetSelection,
        mode: RunMode,
    ) -> Result<ForgetOutcome, StoreError> {
        let before = open::file_bytes(path);
        let mut connection = open::open_exclusively(path)?;
        let chosen = forget::choose_sessions(&connection, which, before)?;
        if mode == RunMode::DryRun {
            let after = before.saturating_sub(chosen.bytes);
            return Ok(ForgetOutcome { sessions: chosen.sessions, before, after });
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        forget::remove_sessions(&transaction, &chosen.sessions)?;
        transaction.commit()?;
        forget::free_pages(&connection)?;
        drop(connection);
        Ok(ForgetOutcome { sessions: chosen.sessions, before, after: open::file_bytes(path) })
    }

    fn check_in_place(&self) -> Result<(), StoreError> {
        if self.is_in_place() { Ok(()) } else { Err(StoreError::Gone { path: self.path.clone() }) }
    }

    fn with_connection(path: &Path, connection: Connection) -> Result<Sqlite, StoreError> {
        let packer = zstd::bulk::Compressor::new(contents::FAST_LEVEL)
            .map_err(|source| StoreError::Io { doing: "making a compressor", source })?;
        let writer = SqliteWriter { connection, recents: RecentRequests::default(), packer };
        Ok(Sqlite {
            path: path.to_owned(),
            file: FileIdentity::identity_at(path).ok(),
            has_written: AtomicBool::new(false),
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        })
    }

    /// A thread that panicked left no half transaction: its connection can be used.
    fn lock_writer(&self) -> MutexGuard<'_, SqliteWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one transaction that writes.
    fn write_transaction<T>(
        &self,
        work: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.lock_writer();
        self.check_in_place()?;
        self.has_written.store(true, Ordering::Relaxed);
        let SqliteWriter { connection, recents, packer } = &mut *writer;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut writing = WriteTransaction { transaction, recents, packer };
        let done = work(&mut writing)?;
        writing.transaction.commit()?;
        // It may have gone while it was written to.
        self.check_in_place()?;
        Ok(done)
    }

    /// Runs one transaction that reads: all of it sees the same state.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => open::for_reading(&self.path)?,
        };
        let done = {
            let transaction = connection.unchecked_transaction()?;
            work(&transaction)
        };
        let mut idle = idle();
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
        done
    }
}

/// A transaction that writes, with what the writer keeps between transactions.
struct WriteTransaction<'a> {
    transaction: Transaction<'a>,
    recents: &'a mut RecentRequests,
    packer: &'a mut zstd::bulk::Compressor<'static>,
}

impl Store for Sqlite {
    fn recognize(&self, history: &History, label: SessionLabel<'_>) -> Result<Recognized, StoreError> {
        self.read(|connection| recognize::recognize_session(connection, history, label))
    }

    fn find_place(
        &self,
        history: &History,
        chain: Vec<ChainHash>,
        label: SessionLabel<'_>,
    ) -> Result<Recognized, StoreError> {
        self.read(|connection| recognize::recognize_place(connection, history, chain, label))
    }

    fn append_request(&self, request: &Append<'_>) -> Result<Appended, StoreError> {
        let done = self.write_transaction(|writing| append::append_request(writing, request));
        if done.is_err() {
            // What was remembered of a request that was not kept is not so.
            self.lock_writer().recents.clear();
        }
        done
    }

    fn record_usage(&self, request: RequestId, usage: &Usage) -> Result<(), StoreError> {
        self.write_transaction(|writing| sessions::record_usage(&writing.transaction, request, usage))
    }

    fn record_ping(&self, request: RequestId, at: Millis, usage: &Usage) -> Result<(), StoreError> {
        self.write_transaction(|writing| sessions::record_ping(&writing.transaction, request, at, usage))
    }

    fn record_refusal(&self, request: RequestId) -> Result<(), StoreError> {
        self.write_transaction(|writing| refused::restore_verdicts(&writing.transaction, request))
    }

    fn add_summary(&self, session: SessionId, summary: &StoredSummary) -> Result<(), StoreError> {
        self.write_transaction(|writing| sessions::add_summary(writing, session, summary))
    }

    fn summaries(&self, session: SessionId) -> Result<Vec<StoredSummary>, StoreError> {
        self.read(|connection| sessions::list_summaries(connection, session))
    }

    fn add_wish(&self, wish: &NewWish) -> Result<Wish, StoreError> {
        self.write_transaction(|writing| wishes::add_wish(&writing.transaction, wish))
    }

    fn pins(&self, session: Option<SessionId>) -> Result<Vec<Wish>, StoreError> {
        self.read(|connection| wishes::list_pins(connection, session))
    }

    fn newest_wish(&self) -> Result<u64, StoreError> {
        self.read(wishes::newest_wish)
    }

    fn wishes(
        &self,
        history: &History,
        chain: &[ChainHash],
        label: SessionLabel<'_>,
    ) -> Result<Wishes, StoreError> {
        self.read(|connection| recognize::find_wishes(connection, history, chain, label))
    }

    fn recall(&self, handle: &str) -> Result<Vec<u8>, StoreError> {
        self.read(|connection| read::recall_block(connection, handle))
    }

    fn holders(&self, handle: &str) -> Result<Vec<HoldingSession>, StoreError> {
        self.read(|connection| read::holding_sessions(connection, handle))
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>, StoreError> {
        self.read(sessions::list_sessions)
    }

    fn session(&self, session: SessionId) -> Result<SessionInfo, StoreError> {
        self.read(|connection| sessions::session_info(connection, session))
    }

    fn session_page(&self, asked: &SessionPageQuery<'_>) -> Result<SessionPage, StoreError> {
        self.read(|connection| sessions::session_page(connection, asked))
    }

    fn verdict_history(&self, session: SessionId) -> Result<VerdictHistory, StoreError> {
        self.read(|connection| read::verdict_history(connection, session))
    }

    fn requests(&self, session: SessionId) -> Result<Vec<RequestInfo>, StoreError> {
        self.read(|connection| sessions::list_requests(connection, session))
    }

    fn first_and_last(&self, session: SessionId) -> Result<(RequestInfo, RequestInfo), StoreError> {
        self.read(|connection| sessions::first_and_last(connection, session))
    }

    fn request(&self, request: RequestId) -> Result<StoredRequest, StoreError> {
        self.read(|connection| read::read_request(connection, request))
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError> {
        while self.read(search::is_behind)? {
            match self.write_transaction(|writing| search::index_some(&writing.transaction)) {
                Ok(()) => {}
                // What cannot be written can still be searched, as far as it was indexed before.
                Err(StoreError::ReadOnly | StoreError::Full) => break,
                Err(error) => return Err(error),
            }
        }
        self.read(|connection| search::search_blocks(connection, query))
    }

    fn forget(&self, which: &ForgetSelection, mode: RunMode) -> Result<ForgetOutcome, StoreError> {
        let before = open::file_bytes(&self.path);
        let chosen = self.read(|connection| forget::choose_sessions(connection, which, before))?;
        if mode == RunMode::DryRun || chosen.sessions.is_empty() {
            let after = before.saturating_sub(chosen.bytes);
            return Ok(ForgetOutcome { sessions: chosen.sessions, before, after });
        }
        self.write_transaction(|writing| {
            writing.recents.clear();
            forget::remove_sessions(&writing.transaction, &chosen.sessions)
        })?;
        self.give_space_back()?;
        Ok(ForgetOutcome { sessions: chosen.sessions, before, after: open::file_bytes(&self.path) })
    }

    fn tidy(&self) -> Result<TidyOutcome, StoreError> {
        let mut done = TidyOutcome::default();
        while let Some(together) = self.read(tidy::prepare_some)? {
            // Where another process tidies as well, it does the rest.
            let Some(some) =
                self.write_transaction(|writing| tidy::replace_packs(&writing.transaction, &together))?
            else {
                break;
            };
            done.pieces += some.pieces;
            done.before += some.before;
            done.after += some.after;
        }
        if done.pieces > 0 {
            self.give_space_back()?;
        }
        Ok(done)
    }

    fn disk_usage(&self) -> Result<DiskUsage, StoreError> {
        let bytes = open::file_bytes(&self.path);
        self.read(|connection| sessions::disk_usage(connection, bytes))
    }

    fn check_contents(&self) -> Result<CheckedCounts, StoreError> {
        self.read(check::check_store)
    }
}

impl Drop for Sqlite {
    /// Leaves one file where nobody else uses the store: all of the log is moved into it. A connection that only reads could not
    /// do that, so those are closed first.
    fn drop(&mut self) {
        self.readers.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        if !self.has_written.load(Ordering::Relaxed) || !self.is_in_place() {
            return;
        }
        let connection = &self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).connection;
        // What another process still reads from the log, the next one to close moves.
        let _ = connection.busy_timeout(CLOSING);
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

impl Sqlite {
    /// Returns free pages to the system and empties the log.
    fn give_space_back(&self) -> Result<(), StoreError> {
        let writer = self.lock_writer();
        forget::free_pages(&writer.connection)?;
        // Readers that are at work keep the log; it is emptied another time.
        let _ = writer.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(())
    }
}
