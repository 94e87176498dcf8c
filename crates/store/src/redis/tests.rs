//! The suite over a real Redis, and what only this adapter can promise.

use super::*;
use crate::ledger::MemoryLedger;
use crate::suite::{self, ManualClock};
use reveille_rig::Redis;

const NOW: Millis = Millis(1_800_000_000_000);

async fn open(redis: &Redis, database: u8, clock: &ManualClock) -> RedisStore {
    let options =
        RedisOptions { url: redis.url(database), uses_our_clock: true, ..RedisOptions::default() };
    RedisStore::open(options, Arc::new(MemoryLedger::default()), clock.clock()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_promise() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let store: Arc<dyn Store> = Arc::new(open(&redis, 0, &clock).await);
    suite::run(&store, &clock).await;
}
