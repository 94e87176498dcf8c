//! Letters to agents as others send them: what is said, where it may go, and what comes back.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod http;
mod message;
mod rules;
