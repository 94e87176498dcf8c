//! The shell around the core: load, decide, commit, send.
//!
//! [`Engine`] is the one way in. HTTP, the bus and the command line call the same methods, so a rule
//! holds on every surface or on none. What a job owes is always derived from the job itself; the
//! floor, the timers and the waiters here can be lost at any moment and are built again from the store.

mod clock;
mod dispatch;
mod drive;
mod engine;
mod explain;
mod intake;
mod janitor;
mod keys;
mod metrics;
mod notices;
mod presence;
mod recover;
pub mod rules;
mod submit;
mod tick;
mod timers;
mod trouble;
mod turns;
mod views;
mod waiters;

pub use clock::{Clock, Dice, SeededDice, SystemClock, SystemDice};
pub use drive::DriveError;
pub use engine::{Engine, Parts, Settings};
pub use explain::Explanation;
pub use keys::{Caller, KEY_PREFIX, KeyError, NewKey};
pub use metrics::Metrics;
pub use rules::{RuleFiles, Rules};
pub use submit::{Submission, SubmitError, Submitted, Submitter};
pub use views::WorkerView;
