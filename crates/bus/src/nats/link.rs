//! Whether the NATS server is connected. The client reconnects for ever; this makes its state visible.

use async_nats::connection::State;
use async_nats::{Client, Event, ServerError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How often we check ourselves: under a flood of events the client may drop the one that mattered.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsLink {
    Connected,
    /// Publishing fails now; subscriptions resume with the server.
    Away,
}

/// What the client's callbacks record. It exists before the client does.
#[derive(Default)]
pub(super) struct ConnectionLog {
    /// Counts reconnection attempts. What was sent before one and answered after it may have been sent on two
    /// connections.
    pub attempts: AtomicU64,
    /// Messages that were dropped because a subscription of ours did not keep up, as far as we were told.
    pub slow_consumers: AtomicU64,
    pub changed: Notify,
}

impl ConnectionLog {
    /// The client calls this before each attempt to learn how long to wait.
    pub fn next_attempt(&self, attempt: usize) -> Duration {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = Duration::from_millis(2_u64.saturating_pow(doublings));
        if doublings == 0 { Duration::ZERO } else { pause.min(RECONNECT_PAUSE_MAX) }
    }

    pub fn note(&self, event: &Event) {
        match event {
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                self.slow_consumers.fetch_add(1, Ordering::Relaxed);
            }
            Event::ServerError(error) => tracing::warn!(%error, "the NATS server reports an error"),
            Event::LameDuckMode => tracing::info!("the NATS server is shutting down (lame duck mode)"),
            _ => {}
        }
        self.changed.notify_one();
    }
}

/// Publishes the link's state for as long as anyone may watch it. A link that broke and came back between two checks
/// counts as a change too: the server may be a different one.
pub(super) async fn watch(client: Client, log: Arc<ConnectionLog>, link: watch::Sender<NatsLink>) {
    let mut attempts_seen = log.attempts.load(Ordering::SeqCst);
    loop {
        let _ = tokio::time::timeout(LOOKS_EVERY, log.changed.notified()).await;
        let (before, now, attempts) = (*link.borrow(), now(&client), log.attempts.load(Ordering::SeqCst));
        match now {
            NatsLink::Away if before != now => tracing::warn!("NATS is unreachable; reconnecting"),
            NatsLink::Connected if before != now || attempts != attempts_seen => {
                tracing::info!("NATS is reachable again");
            }
            NatsLink::Away | NatsLink::Connected => continue,
        }
        attempts_seen = attempts;
        link.send_replace(now);
    }
}

pub(super) fn now(client: &Client) -> NatsLink {
    match client.connection_state() {
        State::Connected => NatsLink::Connected,
        State::Pending | State::Disconnected => NatsLink::Away,
    }
}
