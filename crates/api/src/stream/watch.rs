//! Watching the stream of events for somebody at the far end of a connection.
//!
//! Nothing is done before it is asked for: the connection asks when it can take more, so a slow client
//! costs a position in a log and no memory. The keepalive has a clock of its own, which no traffic
//! resets. A watch ends when the server drains, and within a second of its caller's key ending.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::Stream;
use reveille_engine::{Audience, Caller, Engine, EventId, NextEvents, Reader, SubscribeError};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often a silent stream looks whether it should end, or owes something.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a watch brings.
pub enum WatchItem {
    Events(NextEvents),
    KeepAlive,
    /// A second has passed.
    Look,
    /// The server shuts down, or the caller's key has ended.
    End,
}

pub struct Watch {
    engine: Engine,
    caller: Arc<Caller>,
    reader: Reader,
    keepalive: Interval,
    look: Interval,
    /// News are not read before this, so that what comes in quick succession is told together.
    not_before: Instant,
    pace: Duration,
}

impl Watch {
    pub fn new(
        engine: &Engine,
        caller: &Arc<Caller>,
        audience: Audience,
        after: Option<EventId>,
        pace: Duration,
    ) -> Result<Self, SubscribeError> {
        let now = Instant::now();
        Ok(Self {
            engine: engine.clone(),
            caller: caller.clone(),
            reader: engine.subscribe(audience, after)?,
            keepalive: every(KEEPALIVE_EVERY, now),
            look: every(LOOK_EVERY, now),
            not_before: now,
            pace,
        })
    }

    pub async fn next(&mut self) -> WatchItem {
        if self.engine.is_draining() {
            return WatchItem::End;
        }
        let (reader, not_before) = (&mut self.reader, self.not_before);
        let news = async {
            sleep_until(not_before).await;
            reader.next().await
        };
        // Clocks first, so that however much there is to tell, they are not forgotten.
        tokio::select! {
            biased;
            _ = self.keepalive.tick() => WatchItem::KeepAlive,
            _ = self.look.tick() => {
                if self.engine.access().still_holds(&self.caller) { WatchItem::Look } else { WatchItem::End }
            }
            news = news => {
                self.not_before = Instant::now() + self.pace;
                WatchItem::Events(news)
            }
        }
    }
}

fn every(period: Duration, now: Instant) -> Interval {
    let mut interval = interval_at(now + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// An answer that goes on for as long as both sides want.
pub fn answer(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt;
    let mut response = Response::new(Body::from_stream(frames.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
