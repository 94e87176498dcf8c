//! Acknowledgements to the server for messages that it keeps: done, later, never again, or in progress.
//!
//! One task knows every message that was delivered and not yet settled. It sends the acknowledgements, and reports
//! progress for messages that take long, so that the server does not redeliver them. A handle that is dropped
//! unsettled sends nothing: the server's ack wait then runs out.

use super::link::{self, NatsLink};
use crate::{Ack, Word};
use async_nats::jetstream::AckKind;
use async_nats::{Client, Subject};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

/// Commands handled in one batch.
const AT_ONCE_MAX: usize = 512;
/// How long acknowledgements are collected before they are sent, so that the server is woken less often.
const PACE: Duration = Duration::from_millis(2);

/// The handle. It never waits: at most one command is queued for each delivered message, and the server delivers no
/// more than `max_ack_pending`.
#[derive(Clone)]
pub(super) struct Acks {
    commands: mpsc::UnboundedSender<AckCommand>,
    number_last: Arc<AtomicU64>,
}

enum AckCommand {
    Open { number: u64, reply: Subject },
    Settle { number: u64, word: Word },
    Forget { number: u64 },
    Flush(oneshot::Sender<()>),
}

impl Acks {
    /// The second value is the task.
    pub fn new(
        client: Client,
        progress_every: Duration,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let task = AckTask { client, progress_every, open: BTreeMap::new() };
        (Self { commands, number_last: Arc::default() }, task.run(inbox))
    }

    /// For a message that says where its ack goes.
    pub fn open(&self, reply: Subject) -> Ack {
        let number = self.number_last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut handle = AckHandle { number, commands: self.commands.clone(), is_settled: false };
        let _ = self.commands.send(AckCommand::Open { number, reply });
        Ack::new(move |word| handle.settle(word))
    }

    /// Waits until the acknowledgements so far have been sent.
    pub async fn flush(&self) {
        let (flushed, is_flushed) = oneshot::channel();
        let _ = self.commands.send(AckCommand::Flush(flushed));
        let _ = is_flushed.await;
    }
}

/// Lives in the [`Ack`], and notices when that is dropped unsettled.
struct AckHandle {
    number: u64,
    commands: mpsc::UnboundedSender<AckCommand>,
    is_settled: bool,
}

impl AckHandle {
    fn settle(&mut self, word: Word) {
        self.is_settled = true;
        let _ = self.commands.send(AckCommand::Settle { number: self.number, word });
    }
}

impl Drop for AckHandle {
    fn drop(&mut self) {
        if !self.is_settled {
            let _ = self.commands.send(AckCommand::Forget { number: self.number });
        }
    }
}

struct AckTask {
    client: Client,
    progress_every: Duration,
    /// In delivery order: the oldest first.
    open: BTreeMap<u64, PendingAck>,
}

struct PendingAck {
    reply: Subject,
    since: Instant,
}

impl AckTask {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<AckCommand>) {
        let mut ticker = tokio::time::interval(self.progress_every);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut commands = Vec::with_capacity(AT_ONCE_MAX);
        loop {
            tokio::select! {
                count = inbox.recv_many(&mut commands, AT_ONCE_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for command in commands.drain(..) {
                        self.handle(command).await;
                    }
                }
                _ = ticker.tick() => self.report_progress().await,
            }
            tokio::time::sleep(PACE).await;
        }
    }

    async fn handle(&mut self, command: AckCommand) {
        match command {
            AckCommand::Open { number, reply } => {
                self.open.insert(number, PendingAck { reply, since: Instant::now() });
            }
            AckCommand::Settle { number, word } => {
                if let Some(open) = self.open.remove(&number) {
                    self.acknowledge(open.reply, kind(word)).await;
                }
            }
            AckCommand::Forget { number } => drop(self.open.remove(&number)),
            AckCommand::Flush(flushed) => drop(flushed.send(())),
        }
    }

    /// While the server is away its ack wait does not run out, and nothing can be sent.
    async fn report_progress(&self) {
        if link::now(&self.client) == NatsLink::Away {
            return;
        }
        for open in self.open.values().take_while(|open| open.since.elapsed() >= self.progress_every) {
            self.acknowledge(open.reply.clone(), AckKind::Progress).await;
        }
    }

    /// An acknowledgement that is lost with the connection was not sent: the message is redelivered.
    async fn acknowledge(&self, reply: Subject, kind: AckKind) {
        if let Err(error) = self.client.publish(reply, kind.into()).await {
            tracing::debug!(%error, "an acknowledgement could not be sent");
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
