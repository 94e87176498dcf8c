//! What goes over HTTP: the requests and answers of the native API (`/api/v1`), one file a noun, with the names and
//! spellings of `docs/openapi.json`.
//!
//! The server, its console, the client and the command line share these shapes, so that none of them keeps a copy. They are
//! plain data: text, numbers, lists. How they are made of what the engine knows is in `crates/api` (`convert`). With the
//! feature `schema` they describe themselves for the API's description.
//!
//! Times are as they go over the wire: of jobs and approvals microseconds since the epoch, of everything else RFC 3339.

pub mod approval;
pub mod audit;
pub mod dead_letter;
pub mod dead_packet;
pub mod drain;
pub mod dry_run;
pub mod error;
pub mod event;
pub mod graph;
pub mod job;
pub mod json;
pub mod key;
pub mod overview;
pub mod policy;
pub mod presence;
pub mod quarantine;
pub mod run;
pub mod submit;
pub mod system;
pub mod worker;
pub mod workflow;
