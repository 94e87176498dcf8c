//! The Bus port: how packets reach workers and how theirs reach us, and its adapters.
//!
//! Every message may be lost, duplicated, late or reordered; nothing above the bus may rely on more. What a bus does
//! promise is documented on [`Bus`].

mod delivery;
pub mod headers;
mod local;
mod nats;
pub mod subject;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

pub use delivery::{Ack, Delivery, MessageKey, Subscription, Word};
pub use local::{ClientInfo, INBOX_LEN_MAX, LocalBus, LocalClient, Sink};
pub use nats::{Login, NatsBus, NatsLink, NatsOpenError, NatsOptions, NatsTls, Secret, examine};

use bytes::Bytes;
use reveille_core::fleet::ServedTenants;
use reveille_core::id::{KeyId, TenantId};

/// One message. `reply` is where an answer is wanted, if anywhere.
#[derive(Debug, Clone)]
pub struct Message {
    pub subject: String,
    pub reply: Option<String>,
    /// The NATS header block as received, or nothing.
    pub headers: Option<Bytes>,
    pub payload: Bytes,
    pub origin: MessageOrigin,
    /// A deduplication id, for messages that may be published more than once: a bus that keeps messages keeps only
    /// the first.
    pub id: Option<String>,
    /// Whose job it is about. A client that does not serve that tenant is passed over, where the bus can tell.
    pub tenant: Option<TenantId>,
}

/// Who sent a message, as far as the transport can vouch for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MessageOrigin {
    /// This process.
    #[default]
    Ourselves,
    /// A client, known by its credential, which says what it may do.
    Client(MessageSender),
    /// The same, and the client is trusted to be a worker: it may see what jobs of any tenant carry.
    Worker(MessageSender),
}

/// The credential that a client authenticated with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSender {
    pub tenant: TenantId,
    /// Nothing if the client was admitted without one.
    pub key: Option<KeyId>,
}

impl Message {
    /// A plain message of our own.
    pub fn new(subject: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self {
            subject: subject.into(),
            reply: None,
            headers: None,
            payload: payload.into(),
            origin: MessageOrigin::Ourselves,
            id: None,
            tenant: None,
        }
    }

    /// The same message, for those only who serve this tenant.
    pub fn about(self, tenant: &TenantId) -> Self {
        Self { tenant: Some(tenant.clone()), ..self }
    }

    /// The same message with these headers, for listeners that understand them.
    pub fn with_headers<'a>(self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { headers: Some(headers::block(pairs)), ..self }
    }

    /// The values of a header.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        headers::values(self.headers.as_deref().unwrap_or_default(), name)
    }
}

/// Whether any subscriber received a published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryReport {
    /// Nobody listens on that subject.
    Nobody,
    /// At least one listener received it; which one, if the transport knows of exactly one.
    Somebody { by: Option<HeardBy> },
}

/// The one connection that received a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardBy {
    pub connection: u64,
    /// What it calls itself.
    pub name: Option<String>,
}

/// What one connection listens on now; no subjects means that it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub connection: u64,
    pub name: Option<String>,
    pub subjects: Vec<String>,
    /// Whose jobs it may be given.
    pub tenants: ServedTenants,
}

impl Listener {
    /// It listens on nothing any more.
    pub fn gone(connection: u64, name: Option<String>) -> Self {
        Self { connection, name, subjects: Vec::new(), tenants: ServedTenants::default() }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    #[error("the bus is not available: {0}")]
    Unavailable(String),
    #[error("{0:?} is not a valid subject")]
    BadSubject(String),
    /// Retrying does not make it smaller.
    #[error("a message of {len} bytes is larger than the {max} that the bus takes")]
    TooLarge { len: usize, max: usize },
}

/// The port. Publishing to our own subscriptions waits for room (so that nothing is dropped on the way in); a remote
/// listener that cannot keep up is disconnected instead (so that memory stays bounded).
#[async_trait::async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Where the bus keeps messages of a subject, it has stored this one when the call returns, and that counts as
    /// received. So does a message with a `reply` on a remote bus: if nobody listens, the requester is told there.
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError>;

    /// Messages on a subject (wildcards allowed), shared within a queue group if one is named. Where the bus keeps
    /// them, a group gets each until one of its members has acknowledged it.
    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError>;

    /// Whether messages can reach us now. While they cannot, a member's silence means nothing.
    fn is_up(&self) -> bool {
        true
    }

    /// Messages that were lost because we did not keep up, as far as we were told.
    fn lost(&self) -> u64 {
        0
    }

    /// Whether it can tell who listens on what. Where it can, a worker that is not seen is not connected.
    fn shows_listeners(&self) -> bool;

    /// Waits until what connections listen on has changed, and returns those that did, each as it is
    /// now. A bus that cannot know never returns.
    async fn listeners_changed(&self) -> Vec<Listener>;
}
