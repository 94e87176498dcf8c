//! The engine as a whole. All of it is one binary: each would link everything that an engine is made of.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod dead_packets;
mod examples;
mod flows;
mod kept;
mod kernel;
mod leases;
mod limits;
mod metrics;
mod nats;
mod packets;
mod reconcile;
mod records;
mod replicas;
mod sagas;
mod signatures;
mod traces;
mod warm_start;
mod worker_credentials;
