//! Results on their way, each sent until somebody answers.
//!
//! One task owns the results that wait. Each is published with its own reply subject under one inbox;
//! any reply settles it, whether from a scheduler that has written the result down or from a stream
//! that keeps it. "Nobody listens" and silence are followed by another try, and so is a reconnect: what
//! was written into a connection that broke may never have left.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::{packet, subject};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::connect::ConnectionWatch;
use crate::error::Error;
use crate::traced_packet::TracedPacket;

/// How many results may wait for their answer; then handlers wait too.
pub const WAITING_MAX: usize = 10_000;

/// How long an answer is waited for, at first.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// The pause after "nobody listens", at first.
const SILENCE_PAUSE: Duration = Duration::from_millis(250);
/// Neither grows beyond this.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A result is given up after this time with a connection; a reconnect starts it anew.
const GIVE_UP_AFTER: Duration = Duration::from_mins(2);
/// How often the waiting results are looked through for those that are due.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Where finished jobs hand in their results.
pub struct Results {
    room: Arc<Semaphore>,
    outgoing: mpsc::UnboundedSender<(TracedPacket, ResultPermit)>,
}

/// A place among the waiting results, given back when the result is settled.
pub struct ResultPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Results {
    /// Starts the task that settles results; it ends when the last handle is dropped.
    pub async fn start(nats: Client, link: ConnectionWatch) -> Result<Self, Error> {
        let inbox = nats.new_inbox();
        let replies = nats.subscribe(format!("{inbox}.*")).await?;
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let settler =
            Settler { nats, inbox, replies, link, incoming, waiting: HashMap::new(), next_token: 0 };
        tokio::spawn(settler.run());
        Ok(Self { room: Arc::new(Semaphore::new(WAITING_MAX)), outgoing })
    }

    /// Waits until there is room for one more result.
    pub async fn room(&self) -> ResultPermit {
        // The semaphore is never closed, so a permit always comes.
        ResultPermit { _permit: Arc::clone(&self.room).acquire_owned().await.ok() }
    }

    pub fn send(&self, traced_packet: TracedPacket, room: ResultPermit) {
        // The channel needs no limit of its own: the room is the limit.
        if self.outgoing.send((traced_packet, room)).is_err() {
            tracing::error!("a result was lost: the settling task is gone");
        }
    }

    /// Resolves when no result waits.
    pub async fn settled(&self) {
        let _all = self.room.acquire_many(WAITING_MAX as u32).await;
    }

    pub fn waiting(&self) -> usize {
        WAITING_MAX - self.room.available_permits()
    }
}

struct Settler {
    nats: Client,
    inbox: String,
    replies: Subscriber,
    link: ConnectionWatch,
    incoming: mpsc::UnboundedReceiver<(TracedPacket, ResultPermit)>,
    waiting: HashMap<u64, UnsettledResult>,
    next_token: u64,
}

struct UnsettledResult {
    traced_packet: TracedPacket,
    _room: ResultPermit,
    tries: u32,
    due_at: Instant,
    give_up_at: Instant,
}

impl Settler {
    async fn run(mut self) {
        let mut sweep = interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                handed_in = self.incoming.recv() => match handed_in {
                    Some((traced_packet, room)) => self.take(traced_packet, room).await,
                    None => return,
                },
                Some(reply) = self.replies.next() => self.settle(&reply),
                Ok(()) = self.link.changed() => self.start_over(),
                _ = sweep.tick(), if !self.waiting.is_empty() => self.sweep().await,
            }
        }
    }

    async fn take(&mut self, traced_packet: TracedPacket, room: ResultPermit) {
        let (token, now) = (self.next_token, Instant::now());
        self.next_token += 1;
        let waiting = UnsettledResult {
            traced_packet,
            _room: room,
            tries: 0,
            due_at: now,
            give_up_at: now + GIVE_UP_AFTER,
        };
        self.waiting.insert(token, waiting);
        if self.is_connected() {
            self.publish(token, now).await;
        }
    }

    async fn publish(&mut self, token: u64, now: Instant) {
        let Some(waiting) = self.waiting.get_mut(&token) else { return };
        waiting.due_at = now + pause(ANSWER_WAIT, waiting.tries);
        waiting.tries += 1;
        let (reply, traced_packet) = (format!("{}.{token}", self.inbox), waiting.traced_packet.clone());
        if let Err(error) = traced_packet.request(&self.nats, subject::JOB_RESULT, reply).await {
            tracing::warn!(%error, "cannot publish a result; retrying");
        }
    }

    fn settle(&mut self, reply: &Message) {
        let token = reply.subject.rsplit('.').next().and_then(|token| token.parse().ok());
        let Some(token) = token else { return };
        if reply.status != Some(StatusCode::NO_RESPONDERS) {
            self.waiting.remove(&token);
        } else if let Some(waiting) = self.waiting.get_mut(&token) {
            waiting.due_at = Instant::now() + pause(SILENCE_PAUSE, waiting.tries.saturating_sub(1));
        }
    }

    /// With a new connection everything that waits is due.
    fn start_over(&mut self) {
        let now = Instant::now();
        for waiting in self.waiting.values_mut() {
            (waiting.tries, waiting.due_at, waiting.give_up_at) = (0, now, now + GIVE_UP_AFTER);
        }
    }

    async fn sweep(&mut self) {
        if !self.is_connected() {
            return;
        }
        let now = Instant::now();
        for (_, given_up) in self.waiting.extract_if(|_, waiting| waiting.give_up_at <= now) {
            tracing::warn!(
                job_id = job_of(&given_up.traced_packet.packet),
                "the result was not acknowledged; giving up"
            );
        }
        let due: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.due_at <= now)
            .map(|(token, _)| *token)
            .collect();
        for token in due {
            self.publish(token, now).await;
        }
    }

    fn is_connected(&self) -> bool {
        *self.link.borrow()
    }
}

/// Whose result a packet of ours is.
fn job_of(packet: &[u8]) -> String {
    match packet::decode(packet).map(|packet| packet.payload) {
        Ok(Some(Payload::JobResult(result))) => result.job_id,
        _ => String::new(),
    }
}

/// Doubles with every try.
fn pause(first: Duration, tries: u32) -> Duration {
    first.saturating_mul(1 << tries.min(16)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_limit() {
        let seconds = |tries| pause(ANSWER_WAIT, tries).as_secs();
        assert_eq!([0, 1, 2, 3, u32::MAX].map(seconds), [2, 4, 5, 5, 5]);
        assert_eq!(pause(SILENCE_PAUSE, 1), Duration::from_millis(500));
    }
}
