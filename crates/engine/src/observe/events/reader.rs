//! Somebody who reads the stream at their own pace.

use super::shared::PositionLookup;
use super::{Audience, Event, EventId, Events, SUBSCRIBERS_MAX};
use reveille_core::quota::{OverQuota, TenantQuota};
use std::sync::Arc;
use tokio::sync::Notify;

pub struct Reader {
    events: Arc<Events>,
    audience: Audience,
    start: ReaderStart,
    seq: u64,
    /// The life of the stream that `seq` counts in.
    life: u64,
    published: Arc<Notify>,
}

enum ReaderStart {
    /// It came with a position. `reads` is how often the shared stream had been read by then.
    From {
        after: EventId,
        reads: u64,
    },
    Afresh,
    Over,
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum NextEvents {
    /// It is new here, or was too slow: what it knows is not enough. It needs a snapshot, and reads on
    /// from here.
    StartAfresh(EventId),
    Events(Vec<(EventId, Arc<Event>)>),
}

/// Why nobody more may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    #[error(transparent)]
    Tenant(#[from] OverQuota),
    #[error("{SUBSCRIBERS_MAX} streams of events are open, and no more can be")]
    Server,
}

impl Events {
    /// Reads on from `after`, or from now on.
    pub fn subscribe(
        self: &Arc<Self>,
        audience: Audience,
        after: Option<EventId>,
    ) -> Result<Reader, SubscribeError> {
        let mut logs = self.lock();
        let (last, life, reads) = (logs.last, logs.reading.life, logs.reading.reads);
        if logs.readers >= SUBSCRIBERS_MAX {
            return Err(SubscribeError::Server);
        }
        let log = logs.of(&audience);
        if let Audience::Tenant(_) = audience {
            TenantQuota::Subscribers.check(log.readers as u64, self.subscribers_max as u64)?;
        }
        log.readers += 1;
        let published = log.published.clone();
        logs.readers += 1;
        drop(logs);
        let start = after.map_or(ReaderStart::Afresh, |after| ReaderStart::From { after, reads });
        Ok(Reader { events: self.clone(), audience, start, seq: last, life, published })
    }
}

impl Reader {
    /// The next events, when there are any. Dropping the future loses nothing.
    pub async fn next(&mut self) -> NextEvents {
        loop {
            let published = self.published.clone();
            let heard = published.notified();
            tokio::pin!(heard);
            // From here on an event is noticed, even one that comes before the first poll.
            heard.as_mut().enable();
            if let Some(next) = self.poll() {
                return next;
            }
            heard.await;
        }
    }

    /// What there is already, if anything.
    pub fn poll(&mut self) -> Option<NextEvents> {
        let events = self.events.clone();
        let mut logs = events.lock();
        if !logs.reading.is_begun {
            return None;
        }
        let (last, begins, life) = (logs.last, logs.begins, logs.reading.life);
        match std::mem::replace(&mut self.start, ReaderStart::Over) {
            ReaderStart::Over => {}
            ReaderStart::Afresh => self.life = life.wrapping_sub(1),
            ReaderStart::From { after, reads } => match logs.find(&self.audience, after, events.epoch, reads)
            {
                PositionLookup::Here => (self.seq, self.life) = (after.seq, life),
                PositionLookup::Gone => self.life = life.wrapping_sub(1),
                PositionLookup::NotYet => {
                    self.start = ReaderStart::From { after, reads };
                    return None;
                }
            },
        }
        let log = logs.of(&self.audience);
        if self.life != life || self.seq < log.dropped.max(begins) {
            (self.seq, self.life) = (last, life);
            return Some(NextEvents::StartAfresh(events.id(last)));
        }
        let batch = log.after(self.seq);
        self.seq = batch.last()?.seq;
        Some(NextEvents::Events(batch.into_iter().map(|event| (events.id(event.seq), event)).collect()))
    }

    pub fn audience(&self) -> &Audience {
        &self.audience
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut logs = self.events.lock();
        let log = logs.of(&self.audience);
        log.readers = log.readers.saturating_sub(1);
        logs.readers = logs.readers.saturating_sub(1);
    }
}
