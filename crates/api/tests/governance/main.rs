//! Governance as a whole: an engine, its HTTP surface, its bus and two workers, on time that the test owns.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod draw;
mod faults;
mod judged;
mod ledger;
mod output_modes;
mod spy;
mod world;
