//! Drains: one for each worker or pool, until it is taken back.

use super::{NOW, write};
use crate::{Change, Roster};
use reveille_core::id::{PoolId, WorkerId};
use reveille_core::presence::{Drain, Drained};

pub async fn run(roster: &dyn Roster) {
    a_drain_lasts_until_it_is_taken_back(roster).await;
}

/// The only check that writes drains, so that it may look at all of them.
pub async fn a_drain_lasts_until_it_is_taken_back(roster: &dyn Roster) {
    // A pool and a worker may have the same name.
    let pool = drain(Drained::Pool(PoolId::known("a")), 1);
    let worker = drain(Drained::Worker(WorkerId::known("a")), 2);
    let last = drain(Drained::Worker(WorkerId::known("z")), 3);
    for drain in [&pool, &last, &worker, &last] {
        write(roster, Change::Drain(drain.clone())).await;
    }
    let workers_first = [worker.clone(), last.clone(), pool.clone()];
    assert_eq!(roster.drains().await.unwrap(), workers_first);

    let longer = Drain { until: NOW + 100, by: "somebody else".to_owned(), ..pool };
    write(roster, Change::Drain(longer.clone())).await;
    for _ in 0..2 {
        write(roster, Change::Undrain(worker.what.clone())).await;
        assert_eq!(roster.drains().await.unwrap(), [last.clone(), longer.clone()]);
    }
    roster.write([last, longer].map(|drain| Change::Undrain(drain.what)).to_vec()).await.unwrap();
    assert_eq!(roster.drains().await.unwrap(), []);
}

fn drain(what: Drained, ms: i64) -> Drain {
    Drain { what, since: NOW, until: NOW + ms, by: "operator".to_owned() }
}
