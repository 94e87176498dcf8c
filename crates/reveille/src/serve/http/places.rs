//! The places of a listener: one for each connection.
//!
//! A place knows since when we have been waiting for its client: to send the rest of a request, to read an answer,
//! or to ask anything at all. While we work for it, nobody waits for it. From that follows who is closed: whoever
//! keeps us waiting too long, and, when there is no place left, whoever has kept us waiting longest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often those that keep us waiting are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Places {
    max: usize,
    started: Instant,
    taken: Mutex<Vec<Weak<Place>>>,
    freed: Arc<Notify>,
}

pub struct Place {
    started: Instant,
    /// Milliseconds since the start when we began to wait for the client; 0 while we work for it.
    waits_since_ms: AtomicU64,
    close: Notify,
    freed: Arc<Notify>,
}

impl Places {
    pub fn new(max: usize) -> Self {
        Self { max, started: Instant::now(), taken: Mutex::default(), freed: Arc::default() }
    }

    /// A place for a newcomer. If there is none, whoever has kept us waiting longest is closed; if we wait for
    /// nobody, the newcomer waits.
    pub async fn take(&self) -> Arc<Place> {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_take() {
                return place;
            }
            freed.await;
        }
    }

    fn try_take(&self) -> Option<Arc<Place>> {
        let mut taken = self.taken();
        if taken.len() >= self.max {
            taken.retain(|place| place.strong_count() > 0);
        }
        if taken.len() >= self.max {
            let waiting = taken.iter().filter_map(Weak::upgrade).filter(|place| place.waits_since() > 0);
            let slowest = waiting.min_by_key(|place| place.waits_since())?;
            slowest.close.notify_one();
            // Its connection ends by itself; until then there is one more than there may be.
            taken.retain(|place| !std::ptr::eq(place.as_ptr(), Arc::as_ptr(&slowest)));
        }
        let place = Arc::new(Place {
            started: self.started,
            waits_since_ms: AtomicU64::new(0),
            close: Notify::new(),
            freed: self.freed.clone(),
        });
        place.waits_for_client();
        taken.push(Arc::downgrade(&place));
        Some(place)
    }

    /// Closes whoever keeps us waiting for longer than that.
    pub async fn close_the_slow(self: Arc<Self>, within: Duration) {
        let mut looks = tokio::time::interval(LOOK_EVERY.min(within / 4));
        loop {
            looks.tick().await;
            let limit_ms = self.started.elapsed().saturating_sub(within).as_millis() as u64;
            let mut taken = self.taken();
            taken.retain(|place| place.strong_count() > 0);
            for place in taken.iter().filter_map(Weak::upgrade) {
                if (1..=limit_ms).contains(&place.waits_since()) {
                    place.close.notify_one();
                }
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Weak<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// It is the client's turn.
    pub fn waits_for_client(&self) {
        let now_ms = self.started.elapsed().as_millis() as u64;
        self.waits_since_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    /// It is ours.
    pub fn works(&self) {
        self.waits_since_ms.store(0, Ordering::Relaxed);
    }

    /// Returns when the place is to be given up.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    fn waits_since(&self) -> u64 {
        self.waits_since_ms.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    fn is_closed(place: &Place) -> bool {
        use futures_util::FutureExt as _;
        place.closed().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_kept_us_waiting_longest_makes_room() {
        let places = Places::new(2);
        pass(10).await;
        let first = places.take().await;
        pass(10).await;
        let second = places.take().await;
        first.works();
        pass(10).await;
        first.waits_for_client();
        let third = places.take().await;
        assert!(is_closed(&second), "the first was heard of later");
        assert!(!is_closed(&first) && !is_closed(&third));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_we_work_for_is_not_closed_and_the_newcomer_waits() {
        let places = Arc::new(Places::new(1));
        let first = places.take().await;
        first.works();
        let newcomer = tokio::spawn({
            let places = places.clone();
            async move { places.take().await }
        });
        tokio::task::yield_now().await;
        assert!(!newcomer.is_finished() && !is_closed(&first));
        drop(first);
        newcomer.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_slow_are_closed_and_those_we_work_for_are_not() {
        let places = Arc::new(Places::new(9));
        tokio::spawn(places.clone().close_the_slow(Duration::from_secs(30)));
        pass(1000).await;
        let (slow, served) = (places.take().await, places.take().await);
        served.works();
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(!is_closed(&slow));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(is_closed(&slow) && !is_closed(&served));
    }
}
