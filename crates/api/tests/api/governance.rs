//! Governance as a whole: an engine, its HTTP surface, its bus and two workers, on time that the test owns.

mod draw;
mod faults;
mod judged;
mod ledger;
mod output_modes;
mod spy;
mod world;
