//! The core as others see it: what pages promise of it.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod faults;
mod seed_004;
