//! Fuzzing: everything that reads what a stranger wrote, fed with what nobody would write.
//!
//! A [`FuzzTarget`] takes any bytes and asserts what must hold of them, which is more than not to panic: that frames do
//! not depend on how the bytes were cut, that what was read and written again reads the same, that an evaluation keeps
//! to its meter. Inputs begin with the files under `corpus/`, which are small, made by hand, and hold every input that
//! once broke something.
//!
//! The driver here is plain Rust, so that it runs with the toolchain that builds the server, in CI and for everybody.
//! It knows nothing of coverage: a target says what an input did ([`FuzzSignal`]), and inputs that did something new
//! are kept and changed further. Whoever has a nightly compiler can hand the same targets to libFuzzer (`libfuzzer/`).

pub mod corpus;
mod driver;
mod mutator;
mod rng;
mod signal;
pub mod targets;
mod watchdog;

pub use driver::{FuzzFailure, FuzzTally, fuzz};
pub use signal::FuzzSignal;
pub use targets::{FuzzTarget, TARGETS};
pub use watchdog::Watchdog;
