//! Doors: what stock SDKs connect to on a single machine, so that no server has to be installed.
//!
//! [`nats`] speaks the NATS client protocol over the local bus, [`resp`] speaks the part of the
//! Redis protocol that blob stores use over the store's blobs. Both ask the [`Gate`] who a client
//! is and decide nothing else. With many machines the real servers stand here instead.
//!
//! With a certificate both speak TLS only ([`tls`] says how), else they are for loopback.

mod accept;
mod gate;
mod linger;
pub mod nats;
pub mod resp;
pub mod tls;

pub use gate::{Denied, Gate, Guest, OpenGate, Role};
