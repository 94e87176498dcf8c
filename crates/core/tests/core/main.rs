//! The core as others see it: what each part of it promises, and what pages promise of it.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod approval;
mod expression;
mod faults;
mod fleet;
mod flow;
mod life;
mod placement;
mod policy;
mod reconcile;
mod scan;
mod seed_004;
mod spans;
