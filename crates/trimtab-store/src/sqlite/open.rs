//! Opening the file. Takes a path; gives a connection to a store of this version, or says why not. Never writes to a file
//! that is not a store or that a newer program wrote.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig};

use super::file;
use crate::error::{BUSY_SECONDS, StoreError};

/// Marks the file as ours: "ttab".
const APPLICATION: i64 = 0x7474_6162;

/// How a store of one version becomes one of the next. Only ever appended to.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema.sql"),
    include_str!("shorter-indexes.sql"),
    include_str!("spent.sql"),
    include_str!("wishes.sql"),
    include_str!("project.sql"),
    include_str!("refused.sql"),
    include_str!("pings.sql"),
    include_str!("added.sql"),
];

/// Statements kept ready: more than the program has.
const STATEMENTS: usize = 64;

/// How often a first opening is tried while another process is making the file.
const TRIES: u32 = 200;

pub(super) fn for_writing(path: &Path) -> Result<Connection, StoreError> {
    make_file(path)?;
    make_private(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(path, flags)?;
    // SQLite opens what it may not write to all the same.
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly);
    }
    prepare_schema(path, &mut connection)?;
    Ok(connection)
}

/// Takes the right to read a store away from everybody but its owner. SQLite gives the files beside it the same rights.
fn make_private(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        file::make_private(&file_beside(path, end));
    }
}

pub(super) fn for_reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(path, flags)?;
    let version = match schema_version(path, &connection) {
        // Readers share a file beside the store, which cannot be made where nothing can be written. Nobody writes there
        // either: without a log, the file is all there is.
        Err(StoreError::Sqlite { source, .. }) if is_out_of_reach(&source) && !has_log(path) => {
            connection = connect_as_it_is(path, flags)?;
            schema_version(path, &connection)?
        }
        Err(StoreError::Full) if !has_log(path) => {
            connection = connect_as_it_is(path, flags)?;
            schema_version(path, &connection)?
        }
        other => other?,
    };
    if version < known_version() {
        return Err(open_error(
            path,
            "it was made by an older trimtab; any command that writes brings it up to date",
        ));
    }
    Ok(connection)
}

/// Opens a store that nobody else has open, to change it in place: without a log, or anything else beside the file.
pub(super) fn open_exclusively(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags)?;
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly);
    }
    connection.busy_timeout(Duration::from_secs(1))?;
    // Before the first look at the file: then readers share nothing, and no file for that is made.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if schema_version(path, &connection)? != known_version() {
        return Err(open_error(
            path,
            "it was made by an older trimtab; any command that writes brings it up to date",
        ));
    }
    let mode: String = connection.query_row("PRAGMA journal_mode = MEMORY", [], |row| row.get(0))?;
    if mode == "memory" { Ok(connection) } else { Err(StoreError::Full) }
}

/// Returns the bytes of the file and its log.
pub(super) fn file_bytes(path: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
    size(path) + size(&file_beside(path, "-wal"))
}

fn file_beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes the folder and an empty file that only its owner can read.
fn make_file(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        make_folder(folder).map_err(|fault| open_error(path, fault))?;
    }
    match file::make_new(path) {
        Ok(()) => Ok(()),
        Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(fault) => Err(open_error(path, fault)),
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags).map_err(|fault| open_error(path, fault))?;
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Else a statement is prepared again for every value it is run with, in search of a better plan: there is only one.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn is_out_of_reach(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
}

fn has_log(path: &Path) -> bool {
    fs::metadata(file_beside(path, "-wal")).is_ok_and(|about| about.len() > 0)
}

/// Opens a file that nobody can change.
fn connect_as_it_is(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let absolute = fs::canonicalize(path).map_err(|fault| open_error(path, fault))?;
    let mut address = "file:".to_owned();
    for letter in absolute.to_string_lossy().chars() {
        match letter {
            '%' => address += "%25",
            '?' => address += "%3f",
            '#' => address += "%23",
            _ => address.push(letter),
        }
    }
    connect(Path::new(&(address + "?immutable=1")), flags | OpenFlags::SQLITE_OPEN_URI)
}

#[expect(clippy::needless_pass_by_value, reason = "errors and words are given away here")]
fn open_error(path: &Path, why: impl ToString) -> StoreError {
    StoreError::Open { path: path.to_owned(), why: why.to_string() }
}

fn known_version() -> i64 {
    crate::codec::to_number(MIGRATIONS.len())
}

/// Returns the schema's version: 0 for an empty file.
fn schema_version(path: &Path, connection: &Connection) -> Result<i64, StoreError> {
    // One moment for all that is read: another process may be making the store.
    let moment = connection.unchecked_transaction()?;
    let pragma = |name: &str| moment.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    // The first look at a table fixes the moment.
    let tables = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    let (tables, application, version) =
        match tables.and_then(|tables| Ok((tables, pragma("application_id")?, pragma("user_version")?))) {
            Ok(all) => all,
            Err(fault) if fault.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                return Err(StoreError::NotAStore { path: path.to_owned() });
            }
            Err(fault) => return Err(fault.into()),
        };
    if application != APPLICATION && tables > 0 {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    if version > known_version() {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: known_version() });
    }
    Ok(version)
}

fn prepare_schema(path: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let version = schema_version(path, connection)?;
    // Commits are on the disk when they return: what was hidden is never lost.
    connection.pragma_update(None, "synchronous", "FULL")?;
    if version == known_version() {
        // A copy that was made of a store is not written ahead yet.
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        return if mode == "wal" { Ok(()) } else { write_ahead(connection) };
    }
    if version == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    write_ahead(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it in the meantime.
    let from: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for migration in MIGRATIONS.iter().skip(crate::codec::to_size(from)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", known_version())?;
    transaction.commit()?;
    Ok(())
}

/// Changing the journal does not wait for others by itself.
fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        let done = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match done {
            Ok(_) => return Ok(()),
            Err(fault) if fault.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && tries < TRIES => {
                tries += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(fault) => return Err(fault.into()),
        }
    }
}
