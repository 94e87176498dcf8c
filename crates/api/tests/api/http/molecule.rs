//! The Molecule registry over the real router, with real agents on loopback.

pub mod agent;
pub mod delegating;
mod permission;
pub mod platform;
mod registering;
mod restarting;
mod retiring;
mod slow_agents;
mod status;
mod talking;
mod watching;
