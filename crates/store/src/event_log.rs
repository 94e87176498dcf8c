//! The event log: the events that servers sharing a store publish to their subscribers, in one order for all of them.

use crate::StoreError;
use bytes::Bytes;
use std::time::Duration;

/// How many events are kept; a few more may stay.
pub const EVENT_LOG_KEPT_MAX: usize = 65_536;
/// How large the log may grow; if events are larger, fewer are kept.
pub const EVENT_LOG_BYTES_MAX: usize = 64 << 20;
/// How many events are read at once.
pub const EVENT_LOG_LEN_MAX: usize = 2_000;

/// Events in the order of the log, each with its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventPage {
    pub items: Vec<(u64, Bytes)>,
    /// The oldest and the newest place still kept; nothing if the log is empty.
    pub kept: Option<(u64, u64)>,
}

/// The port.
///
/// **What it guarantees.** The log is as durable as the store, and kept only for a while: the last
/// [`EVENT_LOG_KEPT_MAX`] events, fewer if they are large. All servers read the same events in the same order; places
/// only grow, and a place is never reused. The event of a step exists exactly once if the step counts, and never
/// otherwise. Other events exist exactly once if `append_events` returned successfully, but only if their server
/// lived to append them: such events are at most once. A reader that keeps its place sees every event once; one that
/// has lost it reads again from where it began. **After a gap** (`kept` begins after the reader's place, or ends
/// before it, because a Redis has lost its last second) the reader does not know what it has missed: it drops what it
/// has built from events, tells its subscribers to reload the state they watch, and reads on from the oldest place
/// that is kept. The log is therefore a way to learn of a change early and never the only record of it. The two other
/// ways are weaker: a message between servers over the bus is neither stored nor ordered and may be lost, so that
/// nothing but speed depends on it; the roster's `Generations` keep no history at all, and say only that something is
/// to be read again.
#[async_trait::async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Events after a place, as soon as there is one, and after `wait` in any case; at most [`EVENT_LOG_LEN_MAX`].
    async fn read_events(&self, _after: u64, _wait: Duration) -> Result<EventPage, StoreError> {
        Ok(EventPage::default())
    }

    /// Appends events that belong to no step, in this order. `batch` numbers what one server appends: the same batch
    /// again, because its answer was lost, appends nothing.
    async fn append_events(&self, _batch: u64, _items: &[Bytes]) -> Result<(), StoreError> {
        Ok(())
    }
}
