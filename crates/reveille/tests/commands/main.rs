//! The binary as it is: a server of its own, and commands that ask it.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod checkpoints;
mod server;
