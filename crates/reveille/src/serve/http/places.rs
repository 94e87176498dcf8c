//! The places of a listener: one for each connection.
//!
//! A place knows since when we have been waiting for its client: to send the rest of a request, to read an answer,
//! or to ask anything at all. While we work for it, nobody waits for it. From that follows who is closed: whoever
//! keeps us waiting too long, and, when there is no place left, whoever has kept us waiting longest. The same holds among
//! the places of one address, of which there are fewer.

use reveille_core::address::AddressGroup;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often those that keep us waiting are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Places {
    max: usize,
    max_of_address: usize,
    of_address: Arc<AddressCounts>,
    started: Instant,
    taken: Mutex<Vec<Weak<Place>>>,
    freed: Arc<Notify>,
}

pub struct Place {
    /// Whose place it is, and where that is counted; nothing for addresses that many share.
    counted: Option<(AddressGroup, Arc<AddressCounts>)>,
    started: Instant,
    /// Milliseconds since the start when we began to wait for the client; 0 while we work for it.
    waits_since_ms: AtomicU64,
    close: Notify,
    freed: Arc<Notify>,
}

/// How many places each address has.
#[derive(Default)]
struct AddressCounts(Mutex<HashMap<AddressGroup, usize>>);

impl AddressCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<AddressGroup, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self, address: AddressGroup) {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

impl Places {
    pub fn new(max: usize, max_of_address: usize) -> Self {
        Self {
            max,
            max_of_address,
            of_address: Arc::default(),
            started: Instant::now(),
            taken: Mutex::default(),
            freed: Arc::default(),
        }
    }

    /// A place for a newcomer. If there is none, whoever has kept us waiting longest is closed; if we wait for
    /// nobody, the newcomer waits. A newcomer whose address has as many as it may makes its own neighbours give way; if
    /// we wait for none of them, there is no place for it.
    pub async fn take(&self, address: Option<AddressGroup>) -> Option<Arc<Place>> {
        if let Some(address) = address
            && self.of_address.lock().get(&address).is_some_and(|count| *count >= self.max_of_address)
        {
            close_slowest(&mut self.taken(), Some(address))?;
        }
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_take(address) {
                return Some(place);
            }
            freed.await;
        }
    }

    fn try_take(&self, address: Option<AddressGroup>) -> Option<Arc<Place>> {
        let mut taken = self.taken();
        if taken.len() >= self.max {
            taken.retain(|place| place.strong_count() > 0);
        }
        if taken.len() >= self.max {
            close_slowest(&mut taken, None)?;
        }
        let counted = address.map(|address| (address, self.of_address.clone()));
        if let Some((address, counts)) = &counted {
            *counts.lock().entry(*address).or_default() += 1;
        }
        let place = Arc::new(Place {
            counted,
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

    fn address(&self) -> Option<AddressGroup> {
        self.counted.as_ref().map(|(address, _)| *address)
    }

    fn waits_since(&self) -> u64 {
        self.waits_since_ms.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((address, counts)) = &self.counted {
            counts.free(*address);
        }
        self.freed.notify_one();
    }
}

/// Whoever has kept us waiting longest, of one address or of all, is closed. Nothing if we wait for nobody.
fn close_slowest(taken: &mut Vec<Weak<Place>>, address: Option<AddressGroup>) -> Option<()> {
    let is_meant =
        |place: &Arc<Place>| place.waits_since() > 0 && (address.is_none() || place.address() == address);
    let slowest =
        taken.iter().filter_map(Weak::upgrade).filter(is_meant).min_by_key(|place| place.waits_since())?;
    slowest.close.notify_one();
    // Its connection ends by itself; until then there is one more than there may be.
    taken.retain(|place| !std::ptr::eq(place.as_ptr(), Arc::as_ptr(&slowest)));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    async fn take(places: &Places) -> Arc<Place> {
        places.take(None).await.unwrap()
    }

    fn is_closed(place: &Place) -> bool {
        use futures_util::FutureExt as _;
        place.closed().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_kept_us_waiting_longest_makes_room() {
        let places = Places::new(2, 2);
        pass(10).await;
        let first = take(&places).await;
        pass(10).await;
        let second = take(&places).await;
        first.works();
        pass(10).await;
        first.waits_for_client();
        let third = take(&places).await;
        assert!(is_closed(&second), "the first was heard of later");
        assert!(!is_closed(&first) && !is_closed(&third));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_we_work_for_is_not_closed_and_the_newcomer_waits() {
        let places = Arc::new(Places::new(1, 1));
        let first = take(&places).await;
        first.works();
        let newcomer = tokio::spawn({
            let places = places.clone();
            async move { take(&places).await }
        });
        tokio::task::yield_now().await;
        assert!(!newcomer.is_finished() && !is_closed(&first));
        drop(first);
        newcomer.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_slow_are_closed_and_those_we_work_for_are_not() {
        let places = Arc::new(Places::new(9, 9));
        tokio::spawn(places.clone().close_the_slow(Duration::from_secs(30)));
        pass(1000).await;
        let (slow, served) = (take(&places).await, take(&places).await);
        served.works();
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(!is_closed(&slow));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(is_closed(&slow) && !is_closed(&served));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_has_taken_its_places_takes_none_from_others() {
        let places = Places::new(9, 2);
        let [one, another] =
            ["192.0.2.1", "192.0.2.2"].map(|text| Some(AddressGroup::of(text.parse().unwrap())));
        pass(10).await;
        let (first, neighbour) = (places.take(one).await.unwrap(), places.take(another).await.unwrap());
        pass(10).await;
        let second = places.take(one).await.unwrap();
        let third = places.take(one).await.unwrap();
        assert!(is_closed(&first) && !is_closed(&neighbour), "its own slowest makes room");
        drop(first);
        second.works();
        third.works();
        assert!(places.take(one).await.is_none(), "we work for all that it has");
        assert!(places.take(another).await.is_some() && places.take(None).await.is_some());
        drop(second);
        assert!(places.take(one).await.is_some());
        drop((third, neighbour));
        assert!(places.of_address.lock().is_empty(), "who is gone takes no room");
    }
}
