//! The only place where wire and core meet. Input here has passed [`crate::packet::decode`]; output passes the same
//! rules at the other end.

mod compensation;
mod incoming;
mod outgoing;

pub use compensation::{compensation, kept_compensation};
pub use incoming::{Introduction, beat, cancellation, introduction, progress, report, request};
pub use outgoing::{
    alert_packet, budget, cancel_packet, dead_letter_packet, dispatch_packet, metadata, priority,
};

/// The sender id in our packets' envelopes.
pub const SENDER: &str = "cordum-scheduler";

/// A packet that is well-formed and still cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Id(#[from] reveille_core::id::BadId),
    #[error("{0}")]
    Field(String),
}
