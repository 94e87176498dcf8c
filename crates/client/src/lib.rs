//! A client for Reveille: small, blocking, typed.
//!
//! ```no_run
//! use reveille_client::{Client, Error, JobFilter, NewJob};
//! use serde_json::json;
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Error> {
//!     let client = Client::new("http://127.0.0.1:8080", "vk_…")?;
//!     let job = NewJob::new("job.echo").context(json!({ "question": "why?" }));
//!     let submitted = match client.jobs().submit(&job) {
//!         Err(Error::Refused { code, message, .. }) if code == "safety_denied" => {
//!             println!("policy says no: {message}");
//!             return Ok(());
//!         }
//!         answer => answer?,
//!     };
//!     let job = client.jobs().wait(&submitted.job_id, Duration::from_mins(1))?;
//!     println!("{} {}", job.state, job.result);
//!     let echoes = JobFilter { topic: Some("job.echo"), ..JobFilter::default() };
//!     for done in client.jobs().list(&echoes, 100) {
//!         println!("{}", done?.worker_id);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Calls are grouped by noun and named as in the client for Python:
//!
//! | noun | what it can do |
//! |---|---|
//! | [`client.jobs()`](Jobs) | `submit` `get` `wait` `list` `cancel` `explain` |
//! | [`client.approvals()`](Approvals) | `list` `list_all` `approve` `reject` |
//! | [`client.workers()`](Workers) | `list` `get` `drain` `undrain` |
//! | [`client.runs()`](Runs) | `start` `get` `wait` `list` `cancel` |
//! | [`client.presence()`](Presence) | `beat` `beats` |
//!
//! Everything else that the server can do is behind [`Client::get`], [`Client::post`], [`Client::delete`] and
//! [`Client::list`], with a type of your own or `serde_json::Value`.
//!
//! - A list fetches its pages as it is read.
//! - `wait` asks the server to wait, again and again until it is over or patience is.
//! - Nothing is asked again by itself. What may be asked for twice has an `idempotency_key`.
//! - The key goes to the server that was named and nowhere else: no redirect is followed.
//! - Over `https://` it believes what the system believes, or whom it is told to ([`Client::trusting`]).
//!
//! The stream of events and asking asynchronously are not here. Whoever has a runtime asks from a thread that may
//! block; a [`Client`] is cheap to clone.

mod approvals;
mod client;
mod error;
mod jobs;
pub mod models;
mod pages;
mod presence;
mod runs;
mod tls;
mod workers;

pub use approvals::Approvals;
pub use client::Client;
pub use error::Error;
pub use jobs::{JobFilter, Jobs, NewJob};
pub use pages::Pages;
pub use presence::Presence;
pub use runs::{RunFilter, Runs};
pub use workers::Workers;

pub use reveille_api_types::approval::Resolution;
pub use reveille_api_types::job::JOB_ENDS;
pub use reveille_api_types::presence::Beat;
pub use reveille_api_types::run::RUN_ENDS;
