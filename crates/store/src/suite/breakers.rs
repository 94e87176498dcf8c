//! Breakers: one value for everybody, and no change is lost.

use crate::Store;
use reveille_core::breaker::Breaker;
use reveille_core::time::Millis;
use std::sync::Arc;
use tokio::task::JoinSet;

const RIVALS: u32 = 32;

pub async fn run(store: &Arc<dyn Store>) {
    a_breaker_begins_closed_and_is_what_was_last_swapped_in(&**store).await;
    of_many_failures_at_once_each_counts(store).await;
}

pub async fn a_breaker_begins_closed_and_is_what_was_last_swapped_in(store: &dyn Store) {
    let (closed, open) = (Breaker::default(), Breaker::Open { until: Millis(30_000) });
    assert_eq!(store.breaker("suite-swap").await.unwrap(), closed);
    assert!(!store.swap_breaker("suite-swap", open, closed).await.unwrap());
    assert!(store.swap_breaker("suite-swap", closed, open).await.unwrap());
    assert!(!store.swap_breaker("suite-swap", closed, open).await.unwrap());
    assert_eq!(store.breaker("suite-swap").await.unwrap(), open);
    assert_eq!(store.breaker("suite-other").await.unwrap(), closed);
    let half_open = Breaker::HalfOpen { probes: 2, answers: 1, until: Millis(32_000) };
    assert!(store.swap_breaker("suite-swap", open, half_open).await.unwrap());
    assert_eq!(store.breaker("suite-swap").await.unwrap(), half_open);
}

pub async fn of_many_failures_at_once_each_counts(store: &Arc<dyn Store>) {
    let mut rivals = JoinSet::new();
    for _ in 0..RIVALS {
        let store = Arc::clone(store);
        rivals.spawn(async move {
            loop {
                let before = store.breaker("suite-count").await.unwrap();
                let Breaker::Closed { failures } = before else { panic!("{before:?}") };
                let after = Breaker::Closed { failures: failures + 1 };
                if store.swap_breaker("suite-count", before, after).await.unwrap() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    rivals.join_all().await;
    assert_eq!(store.breaker("suite-count").await.unwrap(), Breaker::Closed { failures: RIVALS });
}
