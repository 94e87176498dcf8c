//! Errors of a NATS server, in sentences that say what to do.

use crate::BusError;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::{ConnectError, ConnectErrorKind};
use std::error::Error;
use std::path::PathBuf;

/// Why a bus could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NatsOpenError {
    /// It is not shown: it may hold a password.
    #[error("NATS server number {number} is not an address; one looks like nats://host:4222")]
    Address { number: usize },
    #[error("NATS at {servers} cannot be reached: {why}")]
    Unreachable { servers: String, why: String },
    #[error("NATS at {servers} does not accept {login}")]
    Refused { servers: String, login: String },
    #[error("{} cannot be used: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("NATS at {servers} has no JetStream for us ({why}); put `jetstream {{}}` into its configuration")]
    NoJetStream { servers: String, why: String },
    #[error(
        "the stream {name} keeps {theirs}, which is in the way of {ours}; take it out with \
         `nats stream edit {name} --subjects=…`, or the stream with `nats stream rm {name}`"
    )]
    Overlap { name: String, theirs: String, ours: String },
    #[error(
        "the stream {name} is there with {what}, which cannot be changed; when nothing in it is needed any more, \
         take it out with `nats stream rm {name}` and start again"
    )]
    Unlike { name: String, what: String },
    #[error("the streams cannot be listed: {why}")]
    Streams { why: String },
    #[error(
        "the stream {name} cannot be set up: {why}; it asks for {bytes} bytes, which nats.stream_bytes_max changes"
    )]
    Stream { name: String, why: String, bytes: i64 },
    #[error(
        "NATS at {servers} does not let us hear ourselves ({why}); we must be allowed to publish and subscribe on {inbox}"
    )]
    Deaf { servers: String, inbox: String, why: String },
    #[error("NATS at {servers} went away while the bus was opened: {why}")]
    Away { servers: String, why: String },
}

/// Why the connection failed.
pub(super) fn unconnected(error: &ConnectError, servers: String, login: String) -> NatsOpenError {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            NatsOpenError::Refused { servers, login }
        }
        _ => NatsOpenError::Unreachable { servers, why: words(error) },
    }
}

/// Why a message was not stored.
pub(super) fn unkept(error: &PublishError, subject: &str) -> BusError {
    BusError::Unavailable(match error.kind() {
        PublishErrorKind::StreamNotFound => format!("no stream keeps {subject}"),
        _ => words(error),
    })
}

pub(super) fn away(error: &(dyn Error + 'static)) -> BusError {
    BusError::Unavailable(words(error))
}

/// The messages of an error and its causes, without repetitions.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
