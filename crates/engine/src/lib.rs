//! The shell around the core: load, decide, commit, send.
//!
//! [`Engine`] holds the rooms: `jobs`, `placement`, `fleet`, `cluster`, `roster`, `workflows`, `delegations`, `access`
//! and `observe`. Each is a component with private fields; which may call which is drawn in ARCHITECTURE.md and
//! checked by `cargo xtask tidy`. HTTP, the bus and the command line call the same methods, so a rule holds on
//! every surface or on none. What a job owes is always derived from the job itself; everything in memory can be
//! lost at any moment and is built again from the store.

mod access;
mod base;
mod clock;
mod cluster;
mod delegations;
mod diagnostics;
mod engine;
mod evaluation;
mod fleet;
mod hook;
mod intake;
mod janitor;
mod jobs;
mod locks;
mod observe;
mod placement;
mod retry;
mod roster;
pub mod rules;
mod runtime;
mod secret;
#[cfg(test)]
mod seed_004;
mod settings;
mod tick;
mod workflows;

pub use access::{
    ADDRESSES_MAX, Access, BrowserSession, Caller, ENDED_SESSIONS_MAX, ENDED_SESSIONS_PER_KEY_MAX,
    ENVIRONMENT_KEY, KEY_PREFIX, KeyError, KeyStanding, NewKey, NewPublicKey, PERSON_COOKIE_LEN_MAX,
    PersonSession, PersonSignInError, ROTATION_OVERLAP_MS, ROTATION_OVERLAP_MS_MAX, RotateError, Rotation,
    SESSION_MS, SESSION_TOKEN_LEN, SIGN_IN_MS_MAX, ServerKey, SignedIn, Unidentified, WORKER_SESSION_MS,
};
pub use clock::{Clock, Rng, SeededRng, SystemClock, SystemRng};
pub use cluster::{Cluster, Lease};
pub use delegations::{DelegateError, Delegations, TakenDelegation};
pub use engine::{Engine, Parts, StartError};
pub use evaluation::TooManyQuestions;
pub use fleet::workspaces::{
    NewWorkspace, Patch, RegisteredWorkspace, Whereabouts, WorkspaceAct, WorkspaceClaim, WorkspaceError,
    WorkspaceRegistration, WorkspaceRemoval, WorkspaceView, Workspaces,
};
pub use fleet::{
    BeatError, Census, Count, DRAIN_SECONDS, DRAIN_SECONDS_MAX, Fleet, Snapshot, WorkerView, in_hand,
    is_away, is_degraded, says_busy,
};
pub use jobs::{
    ApprovalOutcome, BlobRead, Difference, DriveError, Explainer, Explanation, HeldReadError, Jobs, Named,
    REPLAY_MAX, Replay, ReplayError, Retried, RetryError, Submission, SubmitError, Submitted, Submitter,
};
pub use observe::audit_writer::Unrecorded;
pub use observe::checkpoints::{
    BadSigningKey, CheckpointError, Checkpoints, FoundLink, LinkState, SignedCheckpoint, VerifyingKey,
};
pub use observe::events::{
    Audience, Event, EventId, Events, NextEvents, Reader, SubscribeError, What, WorkerChange,
};
pub use observe::metrics::{Circuit, Figures, Metrics};
pub use placement::{Ahead, EligibleWorkers};
pub use rules::{BadFile, RuleFiles, Rules};
pub use settings::{
    LimitSettings, OutputSettings, PacketKey, SessionSecret, Settings, SignatureMode, SigningSeed,
};
pub use workflows::{
    DryRunReport, DryStep, Judged, RerunError, RunError, RunLocks, RunRequest, SaveError, StartRunError,
    Started, Workflows, rollback_id, rollback_of,
};
