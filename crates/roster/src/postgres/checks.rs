//! What there is to say of a PostgreSQL server, without changing anything there.

use crate::RosterError;
use reveille_core::finding::Finding;
use reveille_core::time::Millis;
use reveille_store::postgres::{PostgresOptions, translate};
use sqlx::{Connection, PgConnection};
use std::time::Duration;

const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// PostgreSQL's clock may be this far from ours.
const SKEW_MS_MAX: i64 = 1_000;

/// Looks at version, clock, how commits reach the disk, and whether there are tables of ours.
pub async fn examine(options: &PostgresOptions, now: Millis) -> Result<Vec<Finding>, RosterError> {
    let options = options.connect_options()?;
    let looked = tokio::time::timeout(ANSWERS_WITHIN, look(&options, now)).await;
    match looked {
        Ok(found) => found.map_err(|error| translate(&error).into()),
        Err(_) => Err(RosterError::Unavailable("it does not answer".to_owned())),
    }
}

async fn look(options: &sqlx::postgres::PgConnectOptions, now: Millis) -> sqlx::Result<Vec<Finding>> {
    let mut connection = PgConnection::connect_with(options).await?;
    let (version, ms, commit, tables): (String, f64, String, bool) = sqlx::query_as(
        "SELECT current_setting('server_version'), EXTRACT(EPOCH FROM clock_timestamp())::float8 * 1000, \
         current_setting('synchronous_commit'), to_regclass('presence') IS NOT NULL",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    let skew = (now.0 - ms as i64).abs();
    let clock = format!("its clock is {skew} ms from ours");
    let commit_words = format!("synchronous_commit {commit}");
    Ok(vec![
        Finding::Good(format!("version {version}")),
        if skew > SKEW_MS_MAX { Finding::Risky(clock) } else { Finding::Good(clock) },
        if commit == "off" {
            Finding::Risky(format!(
                "{commit_words}: a crash loses the last moments of keys and of the audit trail"
            ))
        } else {
            Finding::Good(commit_words)
        },
        Finding::Good(
            if tables { "tables are there" } else { "no tables yet: the first server makes them" }.to_owned(),
        ),
    ])
}
