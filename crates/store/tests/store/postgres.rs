//! What PostgreSQL promises beyond the port.

mod errors;
mod ledger;

use reveille_store::postgres::{Database, PostgresOptions};
use sqlx::Connection;
use sqlx::postgres::PgConnection;

async fn open(url: &str) -> Database {
    Database::open(&PostgresOptions::new(url)).await.unwrap()
}

/// A session of its own, behind the ledger's back.
async fn session(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn tamper(url: &str, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut session(url).await).await.unwrap();
}
