//! Opening the data file, or refusing to.
//!
//! A file that is not ours, is damaged, or was written by a newer version is left exactly as it was. A new file is
//! created under another name and renamed when it is complete, so that a crash halfway leaves nothing that looks like
//! a data file.
//!
//! Two servers on one file would each trust their own memory of it, so a lock file beside it keeps the second one
//! out. The lock is the kernel's: it ends with the process, however that ends.

use super::schema;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Up to this size a file is checked in full when it is opened; for larger ones that would take too long, and damage
/// is found where it is read.
const CHECKED_LEN_MAX: u64 = 64 * 1024 * 1024;

/// How long to wait for a foreign tool that holds the database.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Statements that a connection keeps prepared, beside those of the store's own tables.
const STATEMENTS_MAX: usize = 128;

const HEADER_LEN: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Why a data file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path}: another process has this data file open")]
    Locked { path: PathBuf },
    #[error("{path}: this is not a data file of Reveille: {what}")]
    Foreign { path: PathBuf, what: String },
    #[error(
        "{path}: a newer version of Reveille wrote this data file \
         (it has schema {found}, this version knows up to {known})"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{path}: the data file is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("{path}: cannot open the data file: {what}")]
    Unusable { path: PathBuf, what: String },
}

/// A data file that we hold exclusively, for as long as this lives.
pub(super) struct DataFile {
    path: PathBuf,
    _lock: File,
}

impl DataFile {
    /// Locks the file, creates it if it does not exist, and checks whether it can be used.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = Self { path: path.to_owned(), _lock: lock(path)? };
        if is_absent(path)? {
            create(path)?;
        }
        check_header(path)?;
        file.check_content()?;
        file.upgrade()?;
        Ok(file)
    }

    /// The connection that writes. Every commit is on disk before it returns (`FULL`); checkpoints are rare because
    /// they make commits wait.
    pub fn writer(&self) -> Result<Connection, OpenError> {
        self.connect(
            OpenFlags::SQLITE_OPEN_READ_WRITE,
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 16000;
             PRAGMA journal_size_limit = 134217728;
             PRAGMA cache_size = -65536;",
        )
    }

    /// A connection that only reads; it sees whatever was committed before each query.
    pub fn reader(&self) -> Result<Connection, OpenError> {
        self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY, "PRAGMA cache_size = -8192;")
    }

    /// The file that holds commits until a checkpoint.
    pub fn log(&self) -> PathBuf {
        beside(&self.path, "-wal")
    }

    fn connect(&self, flags: OpenFlags, pragmas: &str) -> Result<Connection, OpenError> {
        let connection = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| unreadable(&self.path, &error))?;
        let prepare = || {
            connection.busy_timeout(BUSY_WAIT)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            connection.execute_batch(
                "PRAGMA foreign_keys = OFF;
                 PRAGMA temp_store = MEMORY;
                 PRAGMA mmap_size = 0;",
            )?;
            connection.execute_batch(pragmas)
        };
        prepare().map_err(|error| unreadable(&self.path, &error))?;
        Ok(connection)
    }

    /// Lets SQLite check the file, including its log.
    fn check_content(&self) -> Result<(), OpenError> {
        let path = &self.path;
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
        let ask = |sql: &str| {
            connection
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .map_err(|error| unreadable(path, &error))
        };
        let version = ask("PRAGMA user_version")? as u32;
        check_identity(path, ask("PRAGMA application_id")? as u32, version)?;
        for table in schema::tables(version) {
            let sql = format!("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '{table}'");
            if ask(&sql)? != 1 {
                let what = format!("its table {table} is missing");
                return Err(OpenError::Damaged { path: path.clone(), what });
            }
        }
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() > CHECKED_LEN_MAX) {
            return Ok(());
        }
        let finding: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| unreadable(path, &error))?;
        if finding != "ok" {
            return Err(OpenError::Damaged { path: path.clone(), what: finding });
        }
        Ok(())
    }

    /// Migrates a sound file of an older version to ours, all or nothing.
    fn upgrade(&self) -> Result<(), OpenError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE, "PRAGMA synchronous = FULL;")?;
        let upgrade = || {
            let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version < schema::VERSION {
                connection.execute_batch(&schema::upgrade(version))
            } else {
                Ok(())
            }
        };
        upgrade().map_err(|error| unreadable(&self.path, &error))
    }
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let name = beside(path, "-lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| unusable(path, &format!("{}: {error}", name.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(unusable(path, &format!("{}: {error}", name.display()))),
    }
}

/// Whether there is nothing yet. A log without its file is not nothing: it holds commits, and a new file beside it
/// would adopt them.
fn is_absent(path: &Path) -> Result<bool, OpenError> {
    let len = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(unusable(path, &error)),
    };
    if len(path)? > 0 {
        return Ok(false);
    }
    if len(&beside(path, "-wal"))? > 0 {
        let what = "it is missing or empty, but its log (-wal) is not".to_owned();
        return Err(OpenError::Damaged { path: path.to_owned(), what });
    }
    Ok(true)
}

fn create(path: &Path) -> Result<(), OpenError> {
    let draft = beside(path, "-new");
    for leftover in [draft.clone(), beside(&draft, "-wal"), beside(&draft, "-shm")] {
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unusable(path, &error)),
            _ => {}
        }
    }
    let write = || {
        let connection = Connection::open(&draft)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN;")?;
        connection.execute_batch(&schema::create())?;
        connection.execute_batch("COMMIT;")?;
        connection.close().map_err(|(_, error)| error)
    };
    write().map_err(|error| unusable(path, &error))?;
    let publish = || {
        fs::rename(&draft, path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    };
    publish().map_err(|error| unusable(path, &error))
}

/// Checks the first bytes before SQLite sees the file at all.
fn check_header(path: &Path) -> Result<(), OpenError> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    File::open(path)
        .and_then(|file| file.take(HEADER_LEN as u64).read_to_end(&mut header))
        .map_err(|error| unusable(path, &error))?;
    if header.len() < HEADER_LEN || !header.starts_with(MAGIC) {
        let what = "it is no SQLite database".to_owned();
        return Err(OpenError::Foreign { path: path.to_owned(), what });
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    check_identity(path, number(68), number(60))?;
    check_length(path, u16::from_be_bytes([header[16], header[17]]))
}

/// A file that was truncated within a page: SQLite itself would count the rest as a page and fail to read it. With a
/// log beside it the file may end mid-page, because a checkpoint was interrupted; the log repairs that.
fn check_length(path: &Path, page_len: u16) -> Result<(), OpenError> {
    let len = fs::metadata(path).map_err(|error| unusable(path, &error))?.len();
    // The format writes a page of 65,536 bytes as 1.
    let page_len = if page_len == 1 { 65_536 } else { u64::from(page_len.max(512)) };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = fs::metadata(log).is_ok_and(|log| log.len() > 0);
    if len % page_len == 0 || has_log {
        return Ok(());
    }
    Err(OpenError::Damaged {
        path: path.to_owned(),
        what: format!("its length of {len} bytes ends within a page"),
    })
}

fn check_identity(path: &Path, application: u32, version: u32) -> Result<(), OpenError> {
    let path = path.to_owned();
    if application != schema::APPLICATION_ID {
        let what = format!("it is a database of another program (application_id {application:#010x})");
        return Err(OpenError::Foreign { path, what });
    }
    match version {
        0 => Err(OpenError::Damaged { path, what: "it has no schema version".to_owned() }),
        1..=schema::VERSION => Ok(()),
        found => Err(OpenError::Newer { path, found, known: schema::VERSION }),
    }
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Damaged { path: path.to_owned(), what: error.to_string() }
        }
        _ => unusable(path, error),
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> OpenError {
    OpenError::Unusable { path: path.to_owned(), what: error.to_string() }
}

/// The path with a suffix: `reveille.db-wal`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
