//! What a set of runs must have seen, beside faults and states, to prove anything.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

macro_rules! situations {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Situation {
            $($(#[$doc])* $name,)*
        }

        impl Situation {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

situations! {
    ColdStart = "cold start";
    WarmStart = "warm start";
    /// A worker that was restored and never heard again has gone.
    RestoredGone = "restored and gone";
    /// A job went to a worker that is known from the snapshot and has not beaten yet.
    GivenBeforeBeat = "given before a beat";
    /// A worker had a job when it was drained.
    DrainedAtWork = "drained at work";
    /// A tenant, or a topic, had as many jobs at workers as it may.
    TenantFull = "tenant at its limit";
    PeopleBusy = "as many before people as may";
    TopicFull = "topic at its limit";
    WorkerFull = "worker at its limit";
    /// A server picked up jobs of one that had fallen silent.
    TakenOver = "jobs taken over";
    /// A server found that it had been taken for dead.
    TakenForDead = "taken for dead";
    /// A kept packet went to another server than before.
    HandedToAnother = "packet to another server";
    /// A server's word on a kept packet did not reach the bus.
    AckLost = "ack lost";
    /// A packet came again and was known.
    PacketKnown = "packet known";
    /// Two servers were about to act on messages about one job.
    JobBusy = "job busy";
    /// A step came without its lock, or found no room any more.
    Fenced = "step fenced";
    QuotaExceeded = "no room any more";
    DrainOutlived = "drain outlived a start";
    /// A key opened a server that had not made it, or opened none any more because of what another server, or another
    /// life, was told.
    KeyKnownElsewhere = "key known elsewhere";
    KeyRevokedElsewhere = "key revoked elsewhere";
    KeyExpired = "key expired";
    /// A browser was signed out because of what another server, or another life, was told.
    SignedOutElsewhere = "signed out elsewhere";
    AgentOffline = "agent offline";
    AgentBack = "agent back";
    AgentRestored = "agent restored";
    /// A reader came back and read on where it was.
    ReaderResumed = "reader resumed";
    /// A reader was told that it has missed something.
    ReaderAfresh = "reader started afresh";
    /// Another safety kernel judged a job, and looked at a result.
    KernelJudged = "judged by a kernel";
    KernelLooked = "looked at by a kernel";
    WorkspaceOffline = "workspace offline";
    WorkspaceBack = "workspace back";
    DelegationCompleted = "delegation completed";
    DelegationFailed = "delegation failed";
    /// A delegation went back to wait for another try.
    DelegationAgain = "delegation tried again";
    /// An A2A request came to its workspace more than once.
    A2aRequestAgain = "A2A request again";
    RunFailed = "run failed";
    RunDenied = "run denied";
    RunCancelled = "run cancelled";
    /// A step of a run was a run.
    RunInRun = "run within a run";
    /// A run ended in another life of the server than it began in, and one that undoes another.
    RunOutlived = "run outlived a start";
    RolledBack = "run undone";
    RollbackOutlived = "rollback outlived a start";
    /// A step waited for its time, and the server started anew meanwhile.
    TimerOutlived = "timer outlived a start";
    StepAgain = "step tried again";
    /// What a step had sent off was not wanted any more.
    CalledBack = "step called back";
    /// A start was asked for again, and was known.
    StartRepeated = "start repeated";
    /// A workspace told in a call of its own how a delegation went.
    AnsweredLater = "answered later";
}

#[derive(Default)]
pub struct Situations(Mutex<BTreeMap<Situation, u64>>);

impl Situations {
    pub fn record(&self, sight: Situation) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(sight).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<Situation, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
