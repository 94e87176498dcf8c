//! The buses as others see them: the suite over each of them, and what only one of them can promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod local;
mod nats;
