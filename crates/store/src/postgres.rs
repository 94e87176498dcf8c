//! PostgreSQL, for what servers share beyond their jobs: one database, one pool, and the audit trail in it.
//!
//! Other crates keep their own tables in the same database, through [`Database`]: the roster does. All of these
//! tables are created here, in one list of migrations, because a database has one version.

mod database;
mod errors;
mod ledger;
mod migrations;
pub mod rows;
pub mod text;

pub use database::{Database, DatabaseError, PostgresOptions};
pub use errors::translate;
pub use ledger::PostgresLedger;
