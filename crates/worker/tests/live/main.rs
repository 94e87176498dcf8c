//! The worker against real servers: what a scheduler sees of it on the bus and in the blob store.
//!
//! Each test has servers of its own, from the one helper in `servers`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod answers;
mod endings;
mod jobs;
mod outages;
mod scheduler;
mod servers;
