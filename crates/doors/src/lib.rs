//! Doors: what stock SDKs connect to on a single machine, so that neither NATS nor Redis has to be installed.
//!
//! [`nats`] speaks the NATS client protocol over the local bus, [`resp`] speaks the part of the Redis protocol that
//! blob stores use over the store's blobs. Both ask the [`Gate`] who a client is, and whether it still
//! is, and decide nothing else. With many machines the real servers take their place.
//!
//! With a certificate both speak TLS only ([`tls`] says how); without one they are for loopback. Either may be a Unix
//! socket instead ([`UnixDoor`]).

mod accept;
mod gate;
mod input;
mod linger;
mod listener;
pub mod nats;
pub mod resp;
mod session;
pub mod tls;
mod unauthenticated;

pub use gate::{Denied, Gate, Guest, Listening, OpenGate, Role, Standing};
pub use listener::{DoorListener, UnixDoor};
