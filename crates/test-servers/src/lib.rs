//! Real engines for tests: Redis (one, or a cluster of them), NATS and PostgreSQL, each on a free port with a folder of its own.
//!
//! A server ends with the value that stands for it, and with the test process, however that ends. Nothing
//! else on the machine is touched. Whoever needs one that is not installed is told how to install it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a rig that cannot be set up is a failed test")]

mod cluster;
mod nats;
mod postgres;
mod redis;
mod server;
mod wire;

pub use cluster::RedisCluster;
pub use nats::Nats;
pub use postgres::{Guard, Postgres};
pub use redis::{Fsync, Redis};
pub use server::Server;
pub use wire::Wire;
