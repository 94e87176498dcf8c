//! The Molecule registry over the real router, with real agents on loopback.

mod agent;
mod delegating;
mod permission;
mod platform;
mod registering;
mod restarting;
mod retiring;
mod slow_agents;
mod status;
mod talking;
mod watching;
