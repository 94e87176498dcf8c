//! The client against a real server: an engine behind the API's own router, on a free port.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod errors;
mod fleet;
mod house;
mod jobs;
mod models;
mod runs;
mod tls;
