//! What can go wrong with a store. Every error says what was being done and what to do; after any of them the store is as
//! it was before the call, and the caller can go on without it.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// A store that could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or its folder cannot be made or opened.
    #[error("{path}: the store cannot be opened: {why}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The file is something else.
    #[error("{path}: is not a store of trimtab; name another file with --store. Nothing was written")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error(
        "{path}: was written by a newer trimtab (schema {found}; this one knows {known}): update trimtab, or name another \
         file with --store. Nothing was written"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema that was found.
        found: i64,
        /// The newest schema that is known.
        known: i64,
    },
    /// The disk, or the limit set for the file, is full.
    #[error(
        "no space is left for the store: free some, or run `trimtab forget --older-than 30d`. Nothing was written"
    )]
    Full,
    /// The file must not be written to.
    #[error(
        "the store is read-only: change its permissions, or name another file with --store. Nothing was written"
    )]
    ReadOnly,
    /// The file that was opened is no longer where it was.
    #[error("{path}: the store's file was deleted or replaced while it was in use")]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept it too long.
    #[error("another process kept the store busy for over {0} seconds; try again. Nothing was written")]
    Busy(u64),
    /// No block has this handle.
    #[error("no block has the handle {0}: `trimtab sessions` lists what is stored")]
    UnknownHandle(String),
    /// A handle that cannot be one.
    #[error("{0} is not a handle: a handle is 12 digits of 0-9 and a-f, as notes name them")]
    NotAHandle(String),
    /// A session does not hold the block.
    #[error(
        "session {session} holds no block with the handle {handle}: leave the session out, and the one that holds it is taken"
    )]
    NotInSession {
        /// The handle.
        handle: String,
        /// The session.
        session: String,
    },
    /// There is no pin to take back.
    #[error("{0} is not pinned: `trimtab pin --list` shows what is")]
    NotPinned(String),
    /// There is no hiding to take back.
    #[error(
        "{0} is not hidden: there is nothing to undo; `trimtab pin {0}` keeps it from being hidden later"
    )]
    NotHidden(String),
    /// Only a pin brings it back.
    #[error(
        "{0} is in a summary, which cannot be taken back for one block: `trimtab pin {0}` brings it back"
    )]
    InSummary(String),
    /// No session has this name.
    #[error("there is no session {0}: `trimtab sessions` lists them")]
    UnknownSession(String),
    /// No request has this number.
    #[error("there is no request {0} in the store")]
    UnknownRequest(i64),
    /// Something stored is not what was stored.
    #[error("{what}: what is stored is damaged ({why}); the rest of the store can still be read")]
    Damaged {
        /// The block, request or pack.
        what: String,
        /// How it was noticed.
        why: String,
    },
    /// Anything else that SQLite says.
    #[error("{doing}: {source}")]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
}

/// How long a call waits for another process: longer than any transaction of ours takes.
pub(crate) const BUSY_SECONDS: u64 = 60;

impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> StoreError {
        let Some(code) = source.sqlite_error_code() else {
            return StoreError::Sqlite { doing: "the store", source };
        };
        match code {
            ErrorCode::DiskFull | ErrorCode::TooBig => StoreError::Full,
            ErrorCode::ReadOnly => StoreError::ReadOnly,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy(BUSY_SECONDS),
            // A file that may not grow further says so as an input or output error.
            ErrorCode::SystemIoFailure if is_write_fault(&source) => StoreError::Full,
            ErrorCode::DatabaseCorrupt => {
                StoreError::Damaged { what: "the store's file".to_owned(), why: source.to_string() }
            }
            _ => StoreError::Sqlite { doing: "the store", source },
        }
    }
}

/// Tells whether a write failed: `SQLITE_IOERR_WRITE`, `_FSYNC`, `_TRUNCATE`, `_SHMSIZE`.
fn is_write_fault(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map_or(0, |fault| fault.extended_code);
    [778, 1034, 1546, 4874].contains(&extended)
}

#[expect(clippy::needless_pass_by_value, reason = "errors and words are given away here")]
pub(crate) fn damage_error(what: impl Into<String>, why: impl ToString) -> StoreError {
    StoreError::Damaged { what: what.into(), why: why.to_string() }
}
