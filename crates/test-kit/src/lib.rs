//! What the tests of an engine and of its surfaces are made of.
//!
//! A [`TestWorld`] is what outlives a server: clock, store, roster, workflows. [`TestWorld::engine`] puts an engine on it, with
//! a default for every part, so that a test names only what it is about. Beside it are a [`TestWorker`] on the local bus,
//! a [`TestHttp`] client that calls a router without a socket, a [`TestProvider`] of identities, and ways to wait. What one test file alone needs stays
//! in that file.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

mod clock;
mod http;
mod jobs;
mod packets;
mod provider;
mod server;
mod sse;
mod wait;
mod worker;
mod world;

pub use clock::{NOON, TestClock};
pub use http::{Reply, TestHttp, serve};
pub use jobs::{job, new_job, state, submission, submit, wait_for_state};
pub use packets::{job_packet, packet, succeeded};
pub use provider::{CLIENT_ID, CLIENT_SECRET, REDIRECT_URL, TestAlgorithm, TestPerson, TestProvider};
pub use server::{EngineBuilder, TestServer, create_key, worker_key};
pub use sse::Sse;
pub use wait::{eventually, pass, soon};
pub use worker::{Reporter, TestWorker, beat, idle, introduce, keep_beating};
pub use world::{TestWorld, policy, rules, tenant};
