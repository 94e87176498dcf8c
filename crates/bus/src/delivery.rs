//! What a subscription yields: a message, its place in a stream, and its acknowledgement.
//!
//! A bus that keeps messages redelivers each of them until [`Ack::done`] or [`Ack::end`] is called. On a bus that
//! keeps nothing there is nothing to acknowledge: its acks are empty and cost nothing.

use crate::Message;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// One message as it was delivered to us.
#[derive(Debug)]
pub struct Delivery {
    pub message: Message,
    pub ack: Ack,
    /// Which of the kept messages it is; nothing if the bus does not keep it.
    pub from: Option<MessageKey>,
}

/// A kept message, the same in every process that it is delivered to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageKey {
    pub stream: Arc<str>,
    /// The group that it was delivered to: two groups process the same message independently.
    pub durable: Arc<str>,
    pub seq: u64,
    /// When the bus received it, in its own milliseconds. A recreated stream counts from one again.
    pub kept_at: i64,
    /// How many times it was delivered, including this one.
    pub delivered: u64,
}

/// Settles a message. Until then the bus is told that it is in progress, however long it takes. If this is dropped
/// unsettled, the message is redelivered after a while, here or elsewhere.
#[derive(Default)]
pub struct Ack(Option<Box<dyn FnOnce(Word) + Send>>);

/// The ways to settle a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Done,
    Later(Duration),
    End,
}

impl Ack {
    /// For adapters: whom to notify. Dropping it unsettled must leave the message where it is.
    pub fn new(tell: impl FnOnce(Word) + Send + 'static) -> Self {
        Self(Some(Box::new(tell)))
    }

    /// It was processed.
    pub fn done(self) {
        self.say(Word::Done);
    }

    /// Not now: redeliver it after this time.
    pub fn later(self, delay: Duration) {
        self.say(Word::Later(delay));
    }

    /// It can never be processed, and must not be redelivered.
    pub fn end(self) {
        self.say(Word::End);
    }

    fn say(self, word: Word) {
        if let Some(tell) = self.0 {
            tell(word);
        }
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Ack(owed)" } else { "Ack(none)" })
    }
}

/// A message that nobody keeps.
impl From<Message> for Delivery {
    fn from(message: Message) -> Self {
        Self { message, ack: Ack::default(), from: None }
    }
}

/// The receiving end of [`Bus::subscribe`](crate::Bus::subscribe); dropping it unsubscribes.
pub struct Subscription {
    deliveries: mpsc::Receiver<Delivery>,
}

impl Subscription {
    /// For adapters: their end of the channel shows when it was dropped.
    pub fn new(deliveries: mpsc::Receiver<Delivery>) -> Self {
        Self { deliveries }
    }

    /// The next message; nothing once the bus is gone.
    pub async fn recv(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// The next message, if one has already arrived.
    pub fn try_recv(&mut self) -> Option<Delivery> {
        self.deliveries.try_recv().ok()
    }

    /// How many have already arrived.
    pub fn waiting(&self) -> usize {
        self.deliveries.len()
    }
}

/// Messages that nobody has read are released to other members at once.
impl Drop for Subscription {
    fn drop(&mut self) {
        self.deliveries.close();
        while let Ok(delivery) = self.deliveries.try_recv() {
            delivery.ack.later(Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_word_is_said_once_and_silence_says_nothing() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let ack = || {
            let said = said.clone();
            Ack::new(move |word| said.lock().unwrap().push(word))
        };
        ack().done();
        ack().later(Duration::from_secs(2));
        ack().end();
        drop(ack());
        Ack::default().done();
        let words = [Word::Done, Word::Later(Duration::from_secs(2)), Word::End];
        assert_eq!(*said.lock().unwrap(), words);
    }

    #[tokio::test]
    async fn what_nobody_looked_at_is_given_back() {
        let (deliveries, subscription) = mpsc::channel(2);
        let mut subscription = Subscription::new(subscription);
        let (tell, mut told) = mpsc::unbounded_channel();
        for number in [1, 2] {
            let tell = tell.clone();
            let ack = Ack::new(move |word| tell.send((number, word)).unwrap());
            let delivery = Delivery { message: Message::new("a", ""), ack, from: None };
            deliveries.send(delivery).await.unwrap();
        }
        drop(subscription.recv().await);
        drop(subscription);
        assert_eq!(told.try_recv().unwrap(), (2, Word::Later(Duration::ZERO)));
        assert!(told.try_recv().is_err());
    }
}
