//! The store as others see it: the suite over every adapter that needs a server or a file, and what only one of
//! them can promise.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod postgres;
mod redis;
mod sqlite;
mod workflows;
