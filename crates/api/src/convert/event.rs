//! The fleet, counted.

use reveille_api_types::event::Counts;
use reveille_engine::Count;

pub fn counts(count: Count) -> Counts {
    Counts {
        total: count.total,
        online: count.total - count.offline,
        busy: count.busy,
        degraded: count.degraded,
        offline: count.offline,
    }
}
