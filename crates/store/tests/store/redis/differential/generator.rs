//! Calls that a seed makes up.

use super::{JOBS, Sequence};
use crate::redis::NOW;
use bytes::Bytes;
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId, Topic, WorkerId};
use reveille_core::job::{Attempt, Job, Phase, State};
use reveille_core::policy::Decision;
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use reveille_store::{AboutPacket, BlobKey, DeadPacket, Preconditions, Quota, Receipt, Step, suite};
use std::sync::Arc;

const LOCKS: [&str; 2] = ["lock-a", "lock-b"];

/// One call, the same for both stores. A lock is named by the call that took it.
#[derive(Debug, Clone)]
pub enum Call {
    Commit { step: Box<Step>, under: Option<usize> },
    Open { job: JobId, message: Receipt },
    OpenNew { job: JobId, message: Receipt },
    TakeLock { name: &'static str, ttl_ms: i64 },
    Renew { lock: usize, ttl_ms: i64 },
    Unlock { lock: usize },
    Put { key: BlobKey, value: Bytes, expires_at: Millis, mode: Mode },
    DeleteBlobs { keys: Vec<BlobKey> },
    RemoveDeadLetter { job: JobId },
    Bury { packet: Box<DeadPacket> },
    Beat,
    Adopt { silent: &'static str },
    AppendEvents { batch: u64, items: Vec<Bytes> },
    Swap { before: Breaker, after: Breaker },
    Prune { ended_before: Millis, now: Millis },
}

#[derive(Debug, Clone)]
pub enum Mode {
    Always,
    IfAbsent,
    Under(usize),
}

impl Sequence<'_> {
    pub fn next_call(&mut self) -> Call {
        let job = self.random.below(JOBS);
        let job = self.id(job);
        match self.random.below(30) {
            0..12 => self.commit(),
            12..15 => Call::Open { job, message: self.message() },
            15 => Call::OpenNew { job, message: self.message() },
            16 | 17 => {
                Call::TakeLock { name: self.random.pick(&LOCKS), ttl_ms: self.random.pick(&[1_000, 10_000]) }
            }
            18 => Call::Renew { lock: self.lock(), ttl_ms: 5_000 },
            19 => Call::Unlock { lock: self.lock() },
            20 | 21 => {
                let lock = self.lock();
                Call::Put {
                    key: self.random.pick(&keys_of(&job)),
                    value: Bytes::from(self.random.next().to_string()),
                    expires_at: self.clock.now() + self.random.pick(&[0, 1_000, 100_000]),
                    mode: self.random.pick(&[Mode::Always, Mode::IfAbsent, Mode::Under(lock)]),
                }
            }
            22 => Call::DeleteBlobs { keys: keys_of(&job) },
            23 => Call::RemoveDeadLetter { job },
            24 => {
                let about = AboutPacket {
                    subject: "a.subject".to_owned(),
                    reason: "nobody knows".to_owned(),
                    deliveries: self.random.below(9),
                    len: 0,
                    buried_at: self.clock.now(),
                };
                let key = format!("STREAM:{}", self.random.below(4));
                Call::Bury { packet: Box::new(DeadPacket::new(&key, about, &Bytes::from_static(b"content"))) }
            }
            25 => Call::Beat,
            26 => Call::Adopt { silent: self.random.pick(&["first", "second", "nobody"]) },
            27 => Call::AppendEvents {
                batch: self.random.below(3),
                items: vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")],
            },
            28 => {
                let breakers =
                    [Breaker::default(), Breaker::Closed { failures: 1 }, Breaker::Open { until: NOW }];
                Call::Swap { before: self.random.pick(&breakers), after: self.random.pick(&breakers) }
            }
            _ => Call::Prune {
                ended_before: self.clock.now() + self.random.pick(&[-5_000, 1]),
                now: self.clock.now(),
            },
        }
    }

    fn commit(&mut self) -> Call {
        let now = self.clock.now();
        let before = self.before();
        let mut under = None;
        let mut step = match before {
            Some(before) => {
                under = self.random.one_in(3).then(|| self.lock());
                let after = self.changed(&before);
                Step::change(&before, after)
            }
            None => Step::insert(self.new_job()),
        };
        let id = step.job.id().clone();
        if self.random.one_in(4) {
            let key = self.random.pick(&keys_of(&id));
            step.blobs = vec![(key, Bytes::from_static(b"of a step"), now + self.random.pick(&[1, 100_000]))];
        }
        if self.steps_have_events {
            step.event = Some(Bytes::from(format!("{id} {}", step.job.revision)));
        }
        let max = |random: &mut Random| random.one_in(4).then(|| random.below(3) as u32);
        let quota = Quota {
            worker_max: max(&mut self.random),
            tenant_max: max(&mut self.random),
            topic_max: max(&mut self.random),
            queue_max: max(&mut self.random).map(u64::from),
            approvals_max: max(&mut self.random),
        };
        let answers = self.random.one_in(4).then(|| self.message());
        let step = step.on(Preconditions { quota, under: None, answers });
        Call::Commit { step: Box::new(step), under }
    }

    /// What a step is decided on: mostly a job as it is, sometimes as it was, and for a new one nothing.
    fn before(&mut self) -> Option<Arc<Job>> {
        if self.versions.is_empty() || self.random.one_in(3) {
            return None;
        }
        let version = self.random.pick(&self.versions);
        if self.random.one_in(5) {
            return Some(version);
        }
        self.versions.iter().rev().find(|job| job.id() == version.id()).cloned()
    }

    fn new_job(&mut self) -> Job {
        let now = self.clock.now();
        let id = self.random.below(JOBS);
        let mut job = suite::new_job("any", "any", now);
        let request = Arc::make_mut(&mut job.request);
        request.id = self.id(id);
        request.tenant = tenant(self.random.below(2));
        request.topic = Topic::known(self.random.pick(&["job.a", "job.b"]));
        request.trace_id = match self.random.below(3) {
            0 => String::new(),
            1 => self.id(0).to_string(),
            _ => request.id.to_string(),
        };
        let key = self.random.below(4);
        request.idempotency_key = (key < 2).then(|| format!("key-{key}"));
        match self.random.below(4) {
            0 => suite::audit::judged(&job, self.random.pick(&[Decision::Allow, Decision::Deny]), now),
            1 => self.changed(&job),
            _ => job,
        }
    }

    /// The same job in any phase: a store does not ask whether one follows from the other.
    fn changed(&mut self, job: &Job) -> Job {
        let now = self.clock.now();
        let attempt = Attempt {
            number: 1,
            worker: self.random.pick(&[None, Some("worker-1"), Some("worker-2")]).map(WorkerId::known),
            pool: None,
            dispatched_at: now,
            progress: None,
        };
        let scheduled = Phase::Scheduled { waiting_since: now, not_before: now };
        let phase = match self.random.below(8) {
            0 => Phase::ApprovalRequired,
            1 => scheduled,
            2 | 3 => Phase::Dispatched(attempt),
            4 => Phase::Running(attempt),
            _ => {
                let state =
                    self.random.pick(&[State::Succeeded, State::Failed, State::Denied, State::Timeout]);
                let mut ended = suite::ended(job, state, now);
                if let Phase::Ended(ending) = &mut ended.phase {
                    ending.reason = self.random.pick(&[None, Some(Reason::ALL[0]), Some(Reason::ALL[1])]);
                }
                return if self.random.one_in(2) { reveille_core::life::settled(&ended) } else { ended };
            }
        };
        Job { phase, updated_at: now, ..job.clone() }
    }

    fn lock(&mut self) -> usize {
        // One that was taken a moment ago is of more interest than an old one.
        let taken = self.memory.locks.iter().enumerate().filter(|(_, lock)| lock.is_some());
        let mut taken: Vec<usize> = taken.map(|(call, _)| call).collect();
        let recent = taken.split_off(taken.len().saturating_sub(3));
        if recent.is_empty() { usize::MAX } else { self.random.pick(&recent) }
    }

    fn message(&mut self) -> Receipt {
        Receipt::new("STREAM", "consumer", self.random.below(8), 0)
    }

    /// Blobs have no prefix, so that ids are a sequence's own.
    pub fn id(&self, number: u64) -> JobId {
        JobId::known(format!("{}-{number}", self.seed))
    }
}

/// A step without all that its job says.
pub fn words(call: &Call) -> String {
    let Call::Commit { step, under } = call else { return format!("{call:?}") };
    let Step { job, preconditions, blobs, .. } = &**step;
    let (id, tenant, topic, state) = (job.id(), &job.request.tenant, &job.request.topic, job.state());
    let worker = job.attempt().map(|attempt| &attempt.worker);
    format!(
        "Commit {id} ({tenant} {topic}) on {:?}: {state} at {worker:?}, under {under:?} {preconditions:?} {blobs:?}",
        step.expects()
    )
}

pub fn tenant(number: u64) -> TenantId {
    TenantId::known(["a:b", "t"][number as usize])
}

pub fn keys_of(id: &JobId) -> Vec<BlobKey> {
    vec![BlobKey::context_of(id), BlobKey::result_of(id), BlobKey::parse(&format!("art:{id}")).unwrap()]
}

/// `SplitMix64`: the same numbers for the same seed, for ever.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}
