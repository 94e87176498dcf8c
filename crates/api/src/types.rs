//! What goes over HTTP, and its conversion from and to the core, one file a noun.

pub mod agent;
pub mod approval;
pub mod audit;
pub mod compensation;
pub mod dead_letter;
pub mod dead_packet;
pub mod drain;
pub mod dry_run;
pub mod error;
pub mod event;
pub mod graph;
pub mod job;
pub mod key;
pub mod molecule;
pub mod openorca;
pub mod overview;
pub mod policy;
pub mod quarantine;
pub mod submit;
pub mod system;
pub mod text;
pub mod worker;
pub mod workflow;
