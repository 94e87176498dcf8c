//! How many there are, counted once for all who watch.

use reveille_engine::{Census, Engine};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Counting takes at most one part in so many of the time: a large fleet is counted less often.
const SHARE: u32 = 20;

#[derive(Default)]
pub struct Tally(Mutex<Option<CachedCensus>>);

struct CachedCensus {
    at: Instant,
    cost: Duration,
    census: Arc<Census>,
}

impl Tally {
    /// The latest count, and whether it was taken after `since`. If it was not, ask again later.
    pub fn after(&self, engine: &Engine, since: Instant) -> (Arc<Census>, bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*kept {
            let is_fresh = kept.at > since;
            if is_fresh || kept.at.elapsed() < kept.cost * SHARE {
                return (kept.census.clone(), is_fresh);
            }
        }
        let at = Instant::now();
        let census = Arc::new(engine.fleet().census());
        *kept = Some(CachedCensus { at, cost: at.elapsed(), census: census.clone() });
        (census, true)
    }
}
