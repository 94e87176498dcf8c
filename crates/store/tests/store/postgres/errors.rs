//! What PostgreSQL's own errors become, raised by PostgreSQL itself.

use super::open;
use reveille_store::StoreError;
use reveille_test_servers::Postgres;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use std::sync::atomic::{AtomicU32, Ordering};

async fn raise(connection: &mut PgConnection, code: &str) -> sqlx::Result<()> {
    let sql = format!("DO $$ BEGIN RAISE EXCEPTION 'so' USING ERRCODE = '{code}'; END $$");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}

#[tokio::test]
async fn only_what_is_wrong_with_the_change_itself_is_refused() {
    let server = Postgres::start();
    let database = open(&server.database()).await;
    for (codes, expected) in [
        ("53100", "full"),
        ("08006 25006 25P03 28P01 42501 42P01 53200 53300 57014 57P01 57P03", "unavailable"),
        ("22021 23505 23514 54000", "refused"),
        ("XX001 XX002", "corrupt"),
    ] {
        for code in codes.split(' ') {
            let error =
                database.ask(async |connection: &mut _| raise(connection, code).await).await.unwrap_err();
            let found = match error {
                StoreError::Full(_) => "full",
                StoreError::Unavailable(_) => "unavailable",
                StoreError::Refused(_) => "refused",
                StoreError::Corrupt(_) => "corrupt",
            };
            assert_eq!(found, expected, "{code}");
        }
    }
}

#[tokio::test]
async fn a_transaction_that_others_are_in_the_way_of_is_tried_three_times() {
    let server = Postgres::start();
    let database = &open(&server.database()).await;
    let tries = &AtomicU32::new(0);
    let failing = async |code: &str, times: u32| {
        tries.store(0, Ordering::SeqCst);
        let work = || {
            async |connection: &mut PgConnection| {
                let mut transaction = connection.begin().await?;
                if tries.fetch_add(1, Ordering::SeqCst) < times {
                    raise(&mut transaction, code).await?;
                }
                transaction.commit().await
            }
        };
        (database.insist(work).await.is_ok(), tries.load(Ordering::SeqCst))
    };
    for code in ["40001", "40P01"] {
        assert_eq!(failing(code, 0).await, (true, 1));
        assert_eq!(failing(code, 2).await, (true, 3));
        assert_eq!(failing(code, 3).await, (false, 3));
    }
    assert_eq!(failing("57014", 1).await, (false, 1), "nobody was in its way");
}
