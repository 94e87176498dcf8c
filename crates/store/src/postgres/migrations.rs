//! The tables, migrated when they are opened.
//!
//! Replicas that start together take turns, using a PostgreSQL lock. While versions are mixed the older one keeps
//! running on newer tables, so a migration only ever adds; but an older one does not start on them.

use super::database::DatabaseError;
use super::errors;
use crate::StoreError;
use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;
use std::time::Duration;
use tokio::time::timeout;

/// Not sqlx's own name for it: others may use the database too.
pub(super) const TABLE: &str = "reveille_migrations";
const MIGRATED_WITHIN: Duration = Duration::from_mins(5);

/// In their order; one that was released never changes.
const MIGRATIONS: [(i64, &str, &str); 2] = [
    (1, "roster", include_str!("../../migrations/0001_roster.sql")),
    (2, "sessions and rotation", include_str!("../../migrations/0002_sessions_and_rotation.sql")),
];

pub(super) async fn run(pool: &PgPool) -> Result<(), DatabaseError> {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    migrator.dangerous_set_table_name(TABLE);
    match timeout(MIGRATED_WITHIN, migrator.run(pool)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(MigrateError::VersionMissing(found))) => {
            Err(DatabaseError::Newer { found: found as u64, known: MIGRATIONS.len() as u64 })
        }
        // Someone else's tables with our names, or no right to create any.
        Ok(Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)))
            if errors::is_about_sql(&error) =>
        {
            Err(StoreError::Refused(format!("the tables cannot be made: {error}")).into())
        }
        Ok(Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))) => {
            Err(errors::translate(&error).into())
        }
        Ok(Err(error)) => Err(StoreError::Corrupt(error.to_string()).into()),
        Err(_) => {
            Err(StoreError::Unavailable("PostgreSQL did not bring its tables up to date in time".to_owned())
                .into())
        }
    }
}
