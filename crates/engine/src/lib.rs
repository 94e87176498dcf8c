//! The shell around the core: load, decide, commit, send.
//!
//! [`Engine`] is the one way in. HTTP, the bus and the command line call the same methods, so a rule
//! holds on every surface or on none. What a job owes is always derived from the job itself; the
//! placement, the timers and the waiters here can be lost at any moment and are built again from the store.

mod agents;
mod approvals;
mod calls;
mod chorus;
mod clerk;
mod clock;
mod dead_letters;
mod dead_packets;
mod delegate;
mod dispatch;
mod doubts;
mod drains;
mod drive;
mod engine;
mod events;
mod explain;
mod flows;
mod follow;
mod hearing;
mod hints;
mod inside;
mod intake;
mod janitor;
mod keys;
mod known;
mod lease;
mod letters;
mod metrics;
mod net;
mod news;
mod notices;
mod output;
mod presence;
mod reach;
mod readable;
mod reconciler;
mod recover;
mod replay;
mod replayer;
mod replica;
pub mod rules;
mod run_lock;
mod safety;
mod scribe;
mod seals;
#[cfg(test)]
mod seed_004;
mod settings;
mod snapshot;
mod story;
mod submit;
mod survey;
mod tick;
mod timers;
mod trouble;
mod turns;
mod views;
mod waiters;
mod warm;
mod workspaces;

pub use agents::BeatError;
pub use approvals::Answered;
pub use clock::{Clock, Rng, SeededRng, SystemClock, SystemRng};
pub use dead_letters::{Retried, RetryError};
pub use delegate::{DelegateError, Taken};
pub use drains::{DRAIN_SECONDS, DRAIN_SECONDS_MAX};
pub use drive::DriveError;
pub use engine::{Engine, Parts};
pub use events::{Audience, Event, EventId, Events, News, Reader, What, WorkerChange};
pub use explain::{Explainer, Explanation};
pub use flows::{
    Asked, DryRun, DryStep, Judged, RerunError, RunError, SaveError, StartRunError, Started, rollback_id,
    rollback_of,
};
pub use keys::{Caller, KEY_PREFIX, KeyError, NewKey};
pub use lease::Lease;
pub use metrics::{Figures, Metrics};
pub use reach::EligibleWorkers;
pub use replay::{Difference, REPLAY_MAX, Replay};
pub use rules::{BadFile, RuleFiles, Rules};
pub use run_lock::RunLocks;
pub use safety::Circuit;
pub use seals::SEAL_LEN;
pub use settings::{LimitSettings, OutputSettings, Settings};
pub use snapshot::Snapshot;
pub use submit::{Submission, SubmitError, Submitted, Submitter};
pub use survey::{Census, Count, in_hand, is_away, is_degraded, says_busy};
pub use timers::Ahead;
pub use views::WorkerView;
pub use workspaces::{
    NewWorkspace, Patch, Registered, Registration, Removed, Whereabouts, WorkspaceError, WorkspaceView,
};
