//! Both doors over real sockets: what the wire looks like, and that stock clients are at home.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what helps a test may fail like one")]
#![allow(clippy::format_collect, reason = "pipelines are built once per test")]

mod http;
mod limited;
mod memory_blobs;
mod nats;
mod resp;
mod sessions;
mod stock_clients;
mod support;
mod throughput;
mod tls;
mod unauthenticated;
mod unix;
