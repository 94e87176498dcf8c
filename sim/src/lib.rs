//! The deterministic simulation: the real engine, one or several of it, on a store and a bus that misbehave on
//! purpose.
//!
//! One seed makes one world: workers, jobs, people, rules and faults. Time is virtual, there is one
//! thread, and every draw comes from the seed, so a run can be repeated to the byte. A run stirs for a
//! while with faults on, then lets things settle with faults off, and then every promise is checked;
//! what can be checked while it happens is checked there.
//!
//! Deliberately not here: real sockets, disks and processes. Other tests have those; this one has
//! every order of events that they would meet once in a year.

pub mod a2a;
pub mod agents;
pub mod archive;
pub mod backend;
pub mod beats;
pub mod breakage;
pub mod bus;
pub mod chaos;
pub mod clock;
pub mod coverage;
pub mod delegations;
pub mod faults;
pub mod flows;
pub mod invariants;
pub mod kernel;
pub mod key_holders;
pub mod links;
mod network;
pub mod operators;
pub mod outages;
pub mod panics;
pub mod people;
pub mod plan;
pub mod readers;
pub mod results;
pub mod rng;
pub mod roster;
pub mod server;
pub mod situations;
pub mod store;
mod stream;
pub mod submitters;
pub mod trace;
pub mod traces;
pub mod watch;
pub mod workers;
pub mod workspaces;
pub mod world;

pub use breakage::Breakage;
pub use coverage::Coverage;
pub use world::{SeedFailure, SeedOutcome, Verbosity, run};
