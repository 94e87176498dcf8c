//! What the server is told of messages that it keeps: done, later, never again, or still at it.
//!
//! One task knows every message that was handed out and not yet settled. It passes on what their holders say,
//! and tells the server of those that take their time, so that it does not hand them out again. A holder that
//! vanishes is one that says nothing: the server's patience then runs out by itself.

use super::link::{self, Link};
use crate::{Ack, Word};
use async_nats::jetstream::AckKind;
use async_nats::{Client, Subject};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

/// Orders carried out at once.
const AT_ONCE_MAX: usize = 512;
/// How much is let come together before it is told. The server has patience, and is woken less often.
const PACE: Duration = Duration::from_millis(2);

/// The way in. Nobody waits here: what queues up is at most one word for each message that was handed out, and
/// of those the server hands out no more than `max_ack_pending`.
#[derive(Clone)]
pub(super) struct Acks {
    orders: mpsc::UnboundedSender<Order>,
    number_last: Arc<AtomicU64>,
}

enum Order {
    Open { number: u64, reply: Subject },
    Say { number: u64, word: Word },
    Forget { number: u64 },
    Tell(oneshot::Sender<()>),
}

impl Acks {
    /// The second value is the task.
    pub fn new(
        client: Client,
        progress_every: Duration,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let desk = Desk { client, progress_every, open: BTreeMap::new() };
        (Self { orders, number_last: Arc::default() }, desk.run(inbox))
    }

    /// For a message that says where its ack goes.
    pub fn open(&self, reply: Subject) -> Ack {
        let number = self.number_last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut holder = Holder { number, orders: self.orders.clone(), has_said: false };
        let _ = self.orders.send(Order::Open { number, reply });
        Ack::new(move |word| holder.say(word))
    }

    /// Waits until what was said so far is on its way.
    pub async fn flush(&self) {
        let (told, is_told) = oneshot::channel();
        let _ = self.orders.send(Order::Tell(told));
        let _ = is_told.await;
    }
}

/// Lives in the [`Ack`], and notices when that is dropped without a word.
struct Holder {
    number: u64,
    orders: mpsc::UnboundedSender<Order>,
    has_said: bool,
}

impl Holder {
    fn say(&mut self, word: Word) {
        self.has_said = true;
        let _ = self.orders.send(Order::Say { number: self.number, word });
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if !self.has_said {
            let _ = self.orders.send(Order::Forget { number: self.number });
        }
    }
}

struct Desk {
    client: Client,
    progress_every: Duration,
    /// In the order in which they were handed out: the oldest first.
    open: BTreeMap<u64, Open>,
}

struct Open {
    reply: Subject,
    since: Instant,
}

impl Desk {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        let mut ticker = tokio::time::interval(self.progress_every);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut orders = Vec::with_capacity(AT_ONCE_MAX);
        loop {
            tokio::select! {
                count = inbox.recv_many(&mut orders, AT_ONCE_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for order in orders.drain(..) {
                        self.carry_out(order).await;
                    }
                }
                _ = ticker.tick() => self.tell_progress().await,
            }
            tokio::time::sleep(PACE).await;
        }
    }

    async fn carry_out(&mut self, order: Order) {
        match order {
            Order::Open { number, reply } => {
                self.open.insert(number, Open { reply, since: Instant::now() });
            }
            Order::Say { number, word } => {
                if let Some(open) = self.open.remove(&number) {
                    self.tell(open.reply, kind(word)).await;
                }
            }
            Order::Forget { number } => drop(self.open.remove(&number)),
            Order::Tell(told) => drop(told.send(())),
        }
    }

    /// While the server is away its patience does not run out, and there is nobody to tell.
    async fn tell_progress(&self) {
        if link::now(&self.client) == Link::Away {
            return;
        }
        for open in self.open.values().take_while(|open| open.since.elapsed() >= self.progress_every) {
            self.tell(open.reply.clone(), AckKind::Progress).await;
        }
    }

    /// A word that is lost with the connection is one that was not said: the message comes back.
    async fn tell(&self, reply: Subject, kind: AckKind) {
        if let Err(error) = self.client.publish(reply, kind.into()).await {
            tracing::debug!(%error, "what became of a message could not be said");
        }
    }
}

fn kind(word: Word) -> AckKind {
    match word {
        Word::Done => AckKind::Ack,
        Word::Later(delay) => AckKind::Nak(Some(delay)),
        Word::End => AckKind::Term,
    }
}
