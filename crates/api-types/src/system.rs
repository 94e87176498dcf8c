//! What a server is at.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct System {
    pub at: String,
    /// The server that answers; empty where there is only one.
    pub server: String,
    /// Those that share the work, by their last beat; none where there is only one.
    pub servers: Vec<String>,
    /// It is cut off from what it shares with others, and takes no work.
    pub cut_off: bool,
    /// It has read what it had to do before it started.
    pub recovered: bool,
    /// The policy in force.
    pub policy: String,
    /// When this server last wrote the snapshot of the workers; nothing if it has not.
    pub snapshot_written_at: Option<String>,
    pub circuits: Vec<CircuitState>,
    /// Who holds which lock, of all servers; nothing while the store does not answer. Each decision about a job takes one
    /// for a moment; those are not listed.
    pub locks: Option<Vec<LockHeld>>,
    /// There are more locks than are listed.
    pub more_locks: bool,
    /// Decisions about jobs that this server is at.
    pub decisions: usize,
    /// When this server looks at a job again.
    pub job_timers: Timers,
    /// When this server looks at a run again.
    pub run_timers: Timers,
}

/// A circuit breaker of the safety kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CircuitState {
    pub name: String,
    /// `closed`, `open` or `half-open`.
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LockHeld {
    pub name: String,
    /// What its holder does; empty for a lock that this server does not know.
    pub purpose: String,
    /// The server that has it; empty where there is only one.
    pub holder: String,
    /// When it lapses, unless it is renewed before.
    pub until: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Timers {
    /// How many are owed.
    pub owed: usize,
    /// When the next is due; one that has passed is late.
    pub next_at: Option<String>,
}
