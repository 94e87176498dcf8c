//! Rules broken on purpose, in the wrappers around the ports and never in the product: a simulation
//! that does not notice these would not notice the bug that looks like them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breakage {
    /// The store acknowledges a commit and drops it.
    LoseCommit,
    /// The store ignores which revision a change was decided on.
    SkipCas,
    /// The store forgets some live jobs when it is asked after a restart.
    ForgetLive,
    /// Beats keep coming from workers that are dead.
    GhostBeats,
    /// The store puts an ended job back to what it was.
    DoubleEnd,
    /// The bus has a dispatch before the store has it.
    Unjudged,
    /// A dispatch is stored with the verdict of a policy that never held.
    ForgeVerdict,
    /// The bus swallows dead letters and says they were sent.
    MuteDeadLetters,
    /// The store takes an idempotency key for unused.
    ForgetKeys,
    /// A worker gets what was meant for its neighbour.
    Misroute,
    /// A start is told that there is no worker snapshot.
    IgnoreSnapshot,
    /// Workers from the snapshot that were never heard again stay listed.
    KeepRestored,
    /// The server is told that agents may be silent for as long as they like.
    IgnoreAgentTtl,
    /// A tenant's stream has everybody's events.
    MixTenants,
    /// The roster loses a rung of every delegation.
    SkipRung,
    /// A repeated A2A request gets another id.
    RenameA2aRequest,
    /// The roster acknowledges a drain and drops it.
    ForgetDrains,
    /// The roster acknowledges that a key is there, or revoked, and drops it.
    ForgetNewKeys,
    ForgetRevocations,
    /// The roster acknowledges that a browser has signed out, and drops it.
    ForgetSignOuts,
    /// A start finds keys without their ends.
    KeepExpired,
    /// A member's row never goes back in time, however far ahead it is.
    KeepTheFuture,
    /// The store records some decisions a second time.
    RecordTwice,
    /// A start finds no live job: none of them has a timer. The safety net makes that good, late.
    LoseTimers,
    /// The same, and the store never lets the safety net begin.
    NoNet,
    /// The server is told that tenants may have as many jobs at workers as they like.
    IgnoreLimits,
    /// The server is told that as many jobs of a tenant may wait for a person as like to.
    IgnoreQuotas,
    /// The store does not list the jobs that are at workers when it is asked after a restart.
    HideActive,
    /// The store does not ask whether there is room.
    DropRoom,
    /// The store says that the living are silent, and lets others have their jobs.
    RobTheLiving,
    /// The store never says that anybody has fallen silent.
    NoTakeOver,
    /// A call whose answer was lost is said to have failed for good.
    UnknownIsFailure,
    /// The bus forgets what it keeps as soon as it has handed it out.
    LoseKept,
    /// The run that undoes another is acknowledged and dropped.
    ForgetRollback,
    /// A rollback's list is stored with its first entry twice, or first to last.
    UndoTwice,
    UndoInOrder,
    /// A delay is over, and is stored as if it were not.
    FireTwice,
    /// The end of a step is acknowledged and dropped.
    DropOutcome,
    /// A run is stored without its key.
    StartTwice,
    /// The store does not look at locks. What is compared and swapped makes that good.
    SkipFence,
    /// The store knows no message again, and lets everybody open a job. The same makes that good.
    ForgetReceipts,
    /// Servers do not hear each other. They look.
    MuteServers,
}

impl Breakage {
    /// Those that must be noticed.
    pub const ALL: [(&str, Self); 38] = [
        ("lose-commit", Self::LoseCommit),
        ("skip-cas", Self::SkipCas),
        ("forget-live", Self::ForgetLive),
        ("ghost-beats", Self::GhostBeats),
        ("double-end", Self::DoubleEnd),
        ("unjudged", Self::Unjudged),
        ("forge-judgement", Self::ForgeVerdict),
        ("mute-dead-letters", Self::MuteDeadLetters),
        ("forget-keys", Self::ForgetKeys),
        ("misroute", Self::Misroute),
        ("ignore-snapshot", Self::IgnoreSnapshot),
        ("keep-restored", Self::KeepRestored),
        ("ignore-agent-ttl", Self::IgnoreAgentTtl),
        ("mix-tenants", Self::MixTenants),
        ("skip-rung", Self::SkipRung),
        ("rename-letter", Self::RenameA2aRequest),
        ("forget-drains", Self::ForgetDrains),
        ("forget-new-keys", Self::ForgetNewKeys),
        ("forget-revocations", Self::ForgetRevocations),
        ("forget-sign-outs", Self::ForgetSignOuts),
        ("keep-expired", Self::KeepExpired),
        ("keep-the-future", Self::KeepTheFuture),
        ("record-twice", Self::RecordTwice),
        ("no-net", Self::NoNet),
        ("ignore-limits", Self::IgnoreLimits),
        ("ignore-quotas", Self::IgnoreQuotas),
        ("hide-active", Self::HideActive),
        ("drop-room", Self::DropRoom),
        ("rob-the-living", Self::RobTheLiving),
        ("no-take-over", Self::NoTakeOver),
        ("unknown-is-failure", Self::UnknownIsFailure),
        ("lose-kept", Self::LoseKept),
        ("forget-rollback", Self::ForgetRollback),
        ("undo-twice", Self::UndoTwice),
        ("undo-in-order", Self::UndoInOrder),
        ("fire-twice", Self::FireTwice),
        ("drop-outcome", Self::DropOutcome),
        ("start-twice", Self::StartTwice),
    ];

    /// Those that must be made good.
    pub const SURVIVED: [(&str, Self); 4] = [
        ("lose-timers", Self::LoseTimers),
        ("skip-fence", Self::SkipFence),
        ("forget-receipts", Self::ForgetReceipts),
        ("mute-servers", Self::MuteServers),
    ];

    pub fn parse(word: &str) -> Option<Self> {
        let mut known = Self::ALL.iter().chain(&Self::SURVIVED);
        known.find(|(name, _)| *name == word).map(|(_, breakage)| *breakage)
    }

    /// Whether jobs of the life before have no timers. What is promised about how soon things happen to them
    /// does not hold then; that they end does.
    pub fn loses_timers(self) -> bool {
        matches!(self, Self::LoseTimers | Self::NoNet)
    }

    /// Whether it shows only where one server counts by itself; several ask in the commit.
    pub fn is_of_one_alone(self) -> bool {
        self == Self::HideActive
    }
}
