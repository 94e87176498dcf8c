//! The `A2aClient` port: how a message reaches an agent at its URL, and its HTTP adapter.
//!
//! Agents tell us their URLs themselves, so a URL is a stranger's word: whoever registers could
//! point us at the database next door or at the cloud's metadata service. [`AddressRules`] say where
//! messages may go, and [`HttpA2aClient`] connects only to addresses that were checked against them.
//!
//! [`message`] holds what is said: the JSON-RPC of the A2A protocol (agent to agent), as pure functions.
//!
//! Deliberately not here: retries, queues and the states of a delegation. A client sends once.

mod http;
pub mod message;
mod rules;

pub use http::{
    A2aTarget, ADDRESSES_TRIED_MAX, CONNECT_MAX, HEADERS_MAX, HttpA2aClient, HttpFetcher, URL_BYTES_MAX,
};
pub use rules::{AddressBlock, AddressRules, BadRule, Why};

use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The largest body that is sent.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// The largest body that is read.
pub const REPLY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// One message to one agent.
#[derive(Clone)]
pub struct A2aRequest {
    pub url: String,
    /// JSON, at most [`REQUEST_BYTES_MAX`].
    pub body: Bytes,
    /// Headers beside those that HTTP itself and the JSON need.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// How long everything together may take, from the name lookup to the last byte of the answer.
    pub patience: Duration,
}

/// Runs on the thread that writes to the socket: it must be short and must not block.
pub type Received = Box<dyn FnOnce() + Send>;

/// What came back, whatever its status; redirects are replies too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aReply {
    pub status: u16,
    pub body: Bytes,
    /// How long it asks to be left alone (`Retry-After`, in seconds).
    pub retry_after: Option<Duration>,
}

impl A2aReply {
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), retry_after: None }
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum A2aError {
    /// The request may not go there, or may not go like that; trying again changes nothing.
    #[error("refused: {0}")]
    Refused(String),
    /// No byte of the request left: the name, the connection or TLS failed.
    #[error("not reachable: {0}")]
    Unreachable(String),
    /// The request left, whole or in part, and no whole answer came. The agent may have acted on it.
    #[error("no whole answer: {0}")]
    Broken(String),
    /// Patience ended. Whether the request was handed over, `received` has told.
    #[error("no answer in time")]
    TimedOut,
    /// The request or its answer is longer than allowed.
    #[error("larger than allowed: {REQUEST_BYTES_MAX} bytes out, {REPLY_BYTES_MAX} bytes back")]
    TooLarge,
}

/// The port. Dropping a future of it ends the connection.
#[async_trait::async_trait]
pub trait A2aClient: Send + Sync + 'static {
    /// Whether messages may go to this URL at all: http or https, a host, no credentials in it, and
    /// every address that the host resolves to is allowed. Asked when a workspace registers; it is
    /// no promise about tomorrow, because names move, and so [`A2aClient::post`] asks again.
    async fn check(&self, url: &str) -> Result<(), A2aError>;

    /// Posts JSON and waits for the answer.
    ///
    /// `received` is called once, when the whole request has been handed over to a connection that
    /// was accepted, and else never. A server that answers without reading everything (it may have
    /// read enough to say no) gives a reply without it.
    async fn post(&self, request: A2aRequest, received: Received) -> Result<A2aReply, A2aError>;
}

/// Header values stay out of logs: one of them may be a credential.
impl fmt::Debug for A2aRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        formatter
            .debug_struct("A2aRequest")
            .field("url", &self.url)
            .field("body_bytes", &self.body.len())
            .field("headers", &names)
            .field("patience", &self.patience)
            .finish()
    }
}
