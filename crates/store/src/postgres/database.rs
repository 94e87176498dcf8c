//! The pool: how a connection is opened, lent, and dropped when it stops answering.

use super::{errors, migrations};
use crate::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};
use std::str::FromStr;
use std::time::Duration;
use tokio::time::timeout;

const CONNECTIONS_MAX: u32 = 8;
/// For a connection that works, from the pool or a new one.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3);
/// For one statement, by PostgreSQL's own clock.
const STATEMENT_MS_MAX: u32 = 10_000;
/// For the next statement in a transaction. A stalled replica must not hold locks that others wait for.
const IDLE_MS_MAX: u32 = 5_000;
/// For everything in one call of the port. A server that has vanished from the network does not answer at all.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// How many times a conflicting transaction is tried.
const TRIES: usize = 3;

/// PostgreSQL's address and our credentials. It cannot be printed: it contains a password.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user@host:port/database?sslmode=verify-full&sslrootcert=…`
    pub url: String,
    /// Takes precedence over the one in the address.
    pub password: Option<String>,
}

impl PostgresOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), password: None }
    }

    /// As sqlx has it.
    pub fn connect_options(&self) -> Result<PgConnectOptions, StoreError> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            let problem = "the address of PostgreSQL begins with postgres:// or postgresql://";
            return Err(StoreError::Refused(problem.to_owned()));
        }
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(|error| StoreError::Refused(format!("the address of PostgreSQL: {error}")))?;
        let options = match &self.password {
            Some(password) => options.password(password),
            None => options,
        };
        let options = if options.get_application_name().is_none() {
            options.application_name("reveille")
        } else {
            options
        };
        Ok(options.options([("client_min_messages", "warning")]))
    }
}

/// Why a database could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DatabaseError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "a newer version of Reveille wrote these tables \
         (they have schema {found}, this version knows up to {known})"
    )]
    Newer { found: u64, known: u64 },
}

/// A handle; clones share one pool.
#[derive(Clone)]
pub struct Database {
    pool: PgPool,
}

impl Database {
    /// Connects, and creates or migrates the tables. Tables of a newer version are left as they are.
    pub async fn open(options: &PostgresOptions) -> Result<Self, DatabaseError> {
        let options = options.connect_options()?;
        // A migration may take longer than our statements may, and whatever its session holds is released with it.
        let alone = pool(1).connect_lazy_with(options.clone());
        let migrated = migrations::run(&alone).await;
        alone.close().await;
        migrated?;
        let limits =
            [("statement_timeout", STATEMENT_MS_MAX), ("idle_in_transaction_session_timeout", IDLE_MS_MAX)];
        let options = options.options(limits);
        Ok(Self { pool: pool(CONNECTIONS_MAX).connect_lazy_with(options) })
    }

    /// Does the work on its own connection, once.
    pub async fn ask<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
    ) -> Result<T, StoreError> {
        match timeout(ANSWERED_WITHIN, self.lend(work)).await {
            Ok(answer) => answer.map_err(|error| errors::translate(&error)),
            Err(_) => Err(silence()),
        }
    }

    /// Does the work, and starts over if another transaction conflicted.
    pub async fn insist<T, W: AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>>(
        &self,
        work: impl Fn() -> W,
    ) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            match timeout(ANSWERED_WITHIN, self.lend(work())).await {
                Ok(Err(error)) if tries < TRIES && errors::is_collision(&error) => tries += 1,
                Ok(answer) => return answer.map_err(|error| errors::translate(&error)),
                Err(_) => return Err(silence()),
            }
        }
    }

    async fn lend<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>) -> sqlx::Result<T> {
        let mut loan = Loan { connection: self.pool.acquire().await?, is_done: false };
        let answer = work(&mut loan.connection).await;
        loan.is_done = true;
        answer
    }
}

/// A connection in use. One that was given up on is closed and never reused: PostgreSQL rolls back what was begun on
/// it, and the pool does not wait for an answer that may never come.
struct Loan {
    connection: PoolConnection<Postgres>,
    is_done: bool,
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.is_done {
            self.connection.close_on_drop();
        }
    }
}

fn pool(connections_max: u32) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(connections_max).acquire_timeout(CONNECTED_WITHIN)
}

fn silence() -> StoreError {
    StoreError::Unavailable("PostgreSQL did not answer in time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::ConnectOptions;

    #[test]
    fn a_password_of_its_own_counts_before_the_one_in_the_address() {
        let mut options = PostgresOptions::new("postgres://ann:old@host/fleet?sslmode=verify-full");
        let password = |options: &PostgresOptions| {
            options.connect_options().unwrap().to_url_lossy().password().map(str::to_owned)
        };
        assert_eq!(password(&options).as_deref(), Some("old"));
        options.password = Some("new".to_owned());
        assert_eq!(password(&options).as_deref(), Some("new"));
    }

    #[tokio::test]
    async fn no_error_tells_the_password() {
        let bad =
            ["mysql://ann:hidden@host/x", "postgres://ann:hidden@host:port/x", "postgres://ann:hidden@[/x"];
        for url in bad.into_iter().chain(["postgres://ann:hidden@127.0.0.1:1/x?sslmode=wrong"]) {
            let error = Database::open(&PostgresOptions::new(url)).await.err().unwrap();
            assert!(matches!(error, DatabaseError::Store(StoreError::Refused(_))), "{error:?}");
            assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
        }
        // Nobody listens there.
        let error =
            Database::open(&PostgresOptions::new("postgres://ann:hidden@127.0.0.1:1/x")).await.err().unwrap();
        assert!(matches!(error, DatabaseError::Store(StoreError::Unavailable(_))), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
    }
}
