//! PostgreSQL errors as store errors.
//!
//! Only what is wrong with the change itself is `Refused`: it would be refused again. A missing right, a wrong
//! password or a read-only standby is for an operator to fix, and then the same call works.

use crate::StoreError;
use sqlx::Error;

/// Whether another transaction conflicted, so that a retry may succeed.
pub(super) fn is_collision(error: &Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01"))
}

/// Whether PostgreSQL cannot run a statement: a name is taken or missing, or a right is missing.
pub(super) fn is_about_sql(error: &Error) -> bool {
    code(error).is_some_and(|code| code.starts_with("42"))
}

/// In our words.
pub fn translate(error: &Error) -> StoreError {
    let Some(code) = code(error) else { return without_code(error) };
    // Names what was violated, never a value: a value may be a secret.
    let words = error.as_database_error().map(|error| error.message().to_owned()).unwrap_or_default();
    match &*code {
        "53100" => StoreError::Full("the disk of PostgreSQL is full"),
        "23505" if constraint(error) == Some("keys_hash") => {
            StoreError::Refused("a key has the secret of another key".to_owned())
        }
        // Bad data, a violated rule, a limit of PostgreSQL's own.
        code if code.starts_with("22") || code.starts_with("23") || code.starts_with("54") => {
            StoreError::Refused(words)
        }
        // It says itself that its files are damaged.
        "XX001" | "XX002" => StoreError::Corrupt(words),
        code => StoreError::Unavailable(format!("{words} ({code})")),
    }
}

fn without_code(error: &Error) -> StoreError {
    match error {
        Error::ColumnDecode { .. } | Error::Decode(_) | Error::RowNotFound | Error::TypeNotFound { .. } => {
            StoreError::Corrupt(error.to_string())
        }
        Error::Encode(_) => StoreError::Refused(error.to_string()),
        Error::PoolTimedOut => {
            StoreError::Unavailable("PostgreSQL cannot be reached, or is too busy".to_owned())
        }
        _ => StoreError::Unavailable(error.to_string()),
    }
}

fn code(error: &Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn constraint(error: &Error) -> Option<&str> {
    error.as_database_error()?.constraint()
}
