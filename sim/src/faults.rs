//! What goes wrong, how often, and how often it did.

use crate::rng::{Chance, SimRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $usual:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// The usual chance, in ten thousand, each time it could happen.
            fn usual(self) -> Chance {
                match self {
                    $(Self::$name => $usual,)*
                }
            }
        }
    };
}

faults! {
    /// The server dies at a port call that then has no effect.
    CrashBefore = "crash before a step", 12;
    /// The server dies after the call took effect and before it heard so.
    CrashAfter = "crash after a step", 12;
    /// The server dies between two steps.
    CrashBetween = "crash between steps", 300;
    /// Everything stands still for a while, and the server misses its own ticks.
    ServerPaused = "server paused", 300;
    /// One of several servers is stopped, the others are not.
    ServerStopped = "server stopped", 500;
    /// One of several is cut from the store, from the bus, or from everything.
    CutFromStore = "cut from the store", 300;
    CutFromBus = "cut from the bus", 300;
    CutOff = "cut off", 300;
    /// A call does not get there, or its answer comes late, or never: then nobody knows whether it had its effect.
    RequestLost = "request lost", 20;
    AnswerLate = "answer late", 40;
    AnswerLost = "answer lost", 40;
    /// A message goes, and the bus does not say so.
    PublishUnsure = "publish unsure", 60;
    /// A lock lapses while it is held.
    LockLapsed = "lock lapsed", 300;
    /// The server starts with a clock that was set since it died.
    ClockSet = "clock set", 2000;
    /// The server dies while it starts.
    StartFailed = "start failed", 0;
    StoreSlow = "store slow", 100;
    StoreUnavailable = "store unavailable", 300;
    StoreFull = "store full", 300;
    RosterSlow = "roster slow", 100;
    RosterUnavailable = "roster unavailable", 300;
    RosterFull = "roster full", 300;
    /// A start finds no worker snapshot.
    SnapshotMissing = "snapshot missing", 400;
    /// A start waits for it in vain.
    SnapshotLate = "snapshot late", 400;
    /// A start finds a part of it.
    SnapshotCorrupt = "snapshot corrupt", 400;
    /// Another replica changes a job between our look and our commit.
    RivalCommit = "rival commit", 50;
    /// The safety kernel does not answer.
    KernelHung = "kernel hung", 1500;
    KernelFailed = "kernel failed", 1500;
    BusUnavailable = "bus unavailable", 300;
    MessageLost = "message lost", 150;
    MessageRepeated = "message repeated", 200;
    MessageLate = "message late", 250;
    /// Seen, not drawn: late messages are overtaken.
    MessageReordered = "message reordered", 0;
    WorkerDied = "worker died", 500;
    /// It is dead, and its connection does not say so yet.
    WorkerDiedSilently = "worker died silently", 300;
    WorkerRestarted = "worker restarted", 2500;
    WorkerStalled = "worker stalled", 400;
    WorkerReconnected = "worker reconnected", 500;
    /// An operator takes a worker or a pool out of service.
    WorkerDrained = "worker drained", 2500;
    AgentDied = "agent died", 500;
    AgentStalled = "agent stalled", 400;
    AgentReturned = "agent returned", 2500;
    WorkspaceDied = "workspace died", 500;
    WorkspaceReturned = "workspace returned", 2500;
    WorkspaceMoved = "workspace moved", 300;
    /// An A2A request does not reach its workspace.
    A2aRequestLost = "A2A request lost", 600;
    /// It does, and the answer does not come back.
    A2aReplyLost = "A2A reply lost", 600;
    A2aRequestRepeated = "A2A request repeated", 600;
    /// A reader of the event stream loses its connection.
    ReaderLeft = "reader left", 300;
    /// Whoever asked goes away before the answer.
    CallerLeft = "caller left", 400;
    /// Nothing at all happens for many minutes.
    LongIdle = "long idle", 60;
}

/// The faults of one run.
pub struct Faults {
    on: AtomicBool,
    rates: BTreeMap<Fault, Chance>,
    met: Mutex<BTreeMap<Fault, u64>>,
}

impl Faults {
    /// Some runs are calm, some are wild, and each has its own mixture.
    pub fn draw(rng: &SimRng) -> Self {
        let temper = *rng.pick(&[0, 1, 1, 2, 2, 2, 3, 6]);
        let rate = |fault: Fault| fault.usual() * temper * rng.pick(&[0, 1, 1, 2, 4]) / 2;
        let rates = Fault::ALL.iter().map(|fault| (*fault, rate(*fault))).collect();
        Self { on: AtomicBool::new(true), rates, met: Mutex::default() }
    }

    pub fn stop(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    pub fn are_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether it happens now; then it is counted.
    pub fn strikes(&self, fault: Fault, rng: &SimRng) -> bool {
        let struck = self.are_on() && rng.chance(self.rates[&fault]);
        if struck {
            self.count(fault);
        }
        struck
    }

    pub fn count(&self, fault: Fault) {
        *self.met.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
    }

    pub fn met(&self) -> BTreeMap<Fault, u64> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
