//! The one stream of what happens, tenant by tenant. SSE, the Molecule socket and the `OpenOrca` console are
//! views of it.
//!
//! An event is small: it says who changed, not how. A view looks up how things stand when it writes the
//! event out, so a reader that was slow for a moment gets the latest and nothing twice as much.
//!
//! Each tenant has a short log. Readers hold a position in it, not a queue, so a slow reader costs no
//! memory; one whose position has left the log is told that it missed something and starts from a
//! fresh snapshot. Operators read a log of their own, over all tenants.
//!
//! A server that is alone numbers its events itself. Several share what the store keeps (`cluster/event_log.rs`): each reads all
//! of it into its logs, and a position is good at every one of them.

mod reader;
mod shared;

pub use reader::{NextEvents, Reader, SubscribeError};
pub use shared::{LogItem, LoggedEvent, Unlogged};

use reveille_core::flow::RunState;
use reveille_core::id::{JobId, RunId, TenantId, Topic, WorkerId, WorkflowId, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events kept for one tenant.
const TENANT_LOG_LEN_MAX: usize = 4_096;
/// Events kept for operators.
const OPERATOR_LOG_LEN_MAX: usize = 16_384;
/// Events kept for all tenants together. A tenant that goes beyond pays with its own oldest.
const KEPT_MAX: usize = 262_144;
/// What the payloads of one log may come to.
const LOG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Events handed to a reader at once.
const BATCH_LEN_MAX: usize = 512;
/// Readers of all tenants together, and of operators.
const SUBSCRIBERS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub seq: u64,
    pub at: Millis,
    pub tenant: TenantId,
    pub what: What,
    /// Bytes of its payload, about.
    weight: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    Worker {
        member: Member,
        change: WorkerChange,
    },
    Job {
        id: JobId,
        topic: Topic,
        state: State,
        before: Option<State>,
        worker: Option<WorkerId>,
    },
    /// A run of a workflow is in another state; or it is said again, since nobody knows whether it was said: then
    /// it was in this one before.
    Run {
        id: RunId,
        workflow: WorkflowId,
        state: RunState,
        before: Option<RunState>,
        revision: u64,
    },
    /// Something in Molecule's words, such as `WORKSPACE_ONLINE`.
    Workspace {
        id: WorkspaceId,
        name: Cow<'static, str>,
        payload: Arc<Value>,
    },
}

impl What {
    /// A job was committed.
    pub fn of_job(job: &Job) -> Self {
        Self::Job {
            id: job.id().clone(),
            topic: job.request.topic.clone(),
            state: job.state(),
            before: job.state_before(),
            worker: job.worker().cloned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WorkerChange {
    Joined,
    Changed,
    /// Its TTL has lapsed; it is still known.
    Offline,
    /// It is known no longer.
    Left,
    Drained,
    Undrained,
}

impl WorkerChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Changed => "changed",
            Self::Offline => "offline",
            Self::Left => "left",
            Self::Drained => "drained",
            Self::Undrained => "undrained",
        }
    }
}

/// Whose events somebody may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    Tenant(TenantId),
    Everyone,
}

impl Audience {
    pub fn includes(&self, tenant: &TenantId) -> bool {
        match self {
            Self::Everyone => true,
            Self::Tenant(own) => own == tenant,
        }
    }
}

/// A position in the stream, good for this life of the server, or at every server that shares the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    epoch: u64,
    seq: u64,
}

impl EventId {
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, seq) = text.split_once('-')?;
        Some(Self { epoch: u64::from_str_radix(epoch, 16).ok()?, seq: seq.parse().ok()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.epoch, self.seq)
    }
}

pub struct Events {
    epoch: u64,
    logs: Mutex<Logs>,
    /// Where several servers share the event log: what this one publishes goes there.
    log_writer: Option<shared::LogWriter>,
    /// Readers that one tenant may have.
    subscribers_max: usize,
}

#[derive(Default)]
struct Logs {
    last: u64,
    /// Nothing is known of what came before.
    begins: u64,
    kept: usize,
    /// Readers of all logs.
    readers: usize,
    /// How far the reading of what is shared has got; for whoever waits for it.
    reading: shared::Reading,
    everyone: AudienceLog,
    tenants: FxHashMap<TenantId, AudienceLog>,
}

#[derive(Default)]
struct AudienceLog {
    entries: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The last event that is no longer here.
    dropped: u64,
    readers: usize,
    published: Arc<Notify>,
}

impl AudienceLog {
    /// Adds an event; says by how many the log has grown.
    fn push(&mut self, event: &Arc<Event>, len_max: usize) -> isize {
        let before = self.entries.len() as isize;
        self.entries.push_back(event.clone());
        self.bytes += event.weight;
        while self.entries.len() > len_max.max(1) || (self.bytes > LOG_BYTES_MAX && self.entries.len() > 1) {
            self.drop_oldest();
        }
        if self.readers > 0 {
            self.published.notify_waiters();
        }
        self.entries.len() as isize - before
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.dropped = oldest.seq;
            self.bytes -= oldest.weight;
        }
    }

    fn after(&self, seq: u64) -> Vec<Arc<Event>> {
        let from = self.entries.partition_point(|event| event.seq <= seq);
        self.entries.range(from..).take(BATCH_LEN_MAX).cloned().collect()
    }
}

impl Events {
    pub fn new(epoch: u64) -> Self {
        let reading = shared::Reading::unneeded();
        Self { epoch, ..Self::of(Logs { reading, ..Logs::default() }) }
    }

    fn of(logs: Logs) -> Self {
        Self { epoch: 0, logs: Mutex::new(logs), log_writer: None, subscribers_max: SUBSCRIBERS_MAX }
    }

    /// The same, with so many readers of one tenant at most.
    pub fn limited(self, subscribers_max: usize) -> Self {
        Self { subscribers_max, ..self }
    }

    pub fn publish(&self, at: Millis, tenant: &TenantId, what: What) {
        if let Some(writer) = &self.log_writer {
            return self.append(writer, at, tenant, what);
        }
        let mut logs = self.lock();
        let seq = logs.last + 1;
        logs.push(seq, at, tenant, what);
    }

    fn id(&self, seq: u64) -> EventId {
        EventId { epoch: self.epoch, seq }
    }

    fn lock(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Logs {
    fn push(&mut self, seq: u64, at: Millis, tenant: &TenantId, what: What) {
        let weight = match &what {
            What::Workspace { payload, .. } => weight(payload),
            What::Worker { .. } | What::Job { .. } | What::Run { .. } => 0,
        };
        self.last = seq;
        let event = Arc::new(Event { seq, at, tenant: tenant.clone(), what, weight });
        self.everyone.push(&event, OPERATOR_LOG_LEN_MAX);
        let is_full = self.kept >= KEPT_MAX;
        let log = match self.tenants.get_mut(tenant) {
            Some(log) => log,
            None => self.tenants.entry(tenant.clone()).or_default(),
        };
        let len_max = if is_full { log.entries.len() } else { TENANT_LOG_LEN_MAX };
        let grown = log.push(&event, len_max.min(TENANT_LOG_LEN_MAX));
        self.kept = self.kept.saturating_add_signed(grown);
    }

    fn of(&mut self, audience: &Audience) -> &mut AudienceLog {
        match audience {
            Audience::Everyone => &mut self.everyone,
            Audience::Tenant(tenant) => self.tenants.entry(tenant.clone()).or_default(),
        }
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(name, value)| name.len() + weight(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::quota::{OverQuota, TenantQuota};

    fn job(number: usize) -> What {
        let id = JobId::known(format!("j{number}"));
        What::Job { id, topic: Topic::known("t"), state: State::Pending, before: None, worker: None }
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::known(name)
    }

    fn seqs(next: Option<NextEvents>) -> Vec<u64> {
        match next {
            Some(NextEvents::Events(events)) => events.iter().map(|(_, event)| event.seq).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reader_starts_afresh_and_then_sees_its_own_tenant_only() {
        let events = Arc::new(Events::new(7));
        events.publish(Millis(1), &tenant("a"), job(1));
        let mut reader = events.subscribe(Audience::Tenant(tenant("a")), None).unwrap();
        let mut operator = events.subscribe(Audience::Everyone, None).unwrap();
        assert!(matches!(reader.poll(), Some(NextEvents::StartAfresh(_))));
        assert!(matches!(operator.poll(), Some(NextEvents::StartAfresh(_))));
        events.publish(Millis(2), &tenant("b"), job(2));
        assert_eq!(reader.poll(), None);
        events.publish(Millis(3), &tenant("a"), job(3));
        assert_eq!(seqs(reader.poll()), [3]);
        assert_eq!(seqs(operator.poll()), [2, 3]);
    }

    #[test]
    fn a_reader_that_comes_back_reads_on_where_it_was() {
        let events = Arc::new(Events::new(7));
        for number in 0..10 {
            events.publish(Millis(1), &tenant("a"), job(number));
        }
        let at = EventId::parse("7-4").unwrap();
        assert_eq!(at.to_string(), "7-4");
        let mut reader = events.subscribe(Audience::Tenant(tenant("a")), Some(at)).unwrap();
        assert_eq!(seqs(reader.poll()), [5, 6, 7, 8, 9, 10]);
        for stale in ["8-4", "7-99"] {
            let mut reader = events.subscribe(Audience::Tenant(tenant("a")), EventId::parse(stale)).unwrap();
            assert!(matches!(reader.poll(), Some(NextEvents::StartAfresh(_))), "{stale}");
        }
        assert_eq!(EventId::parse("nonsense"), None);
    }

    #[test]
    fn large_payloads_push_old_events_out() {
        let events = Arc::new(Events::new(1));
        let card = Arc::new(Value::String("x".repeat(64 * 1024)));
        for _ in 0..1_000 {
            let id = WorkspaceId::known("w");
            let what = What::Workspace { id, name: "WORKSPACE_ONLINE".into(), payload: card.clone() };
            events.publish(Millis(1), &tenant("a"), what);
        }
        let logs = events.lock();
        assert!(logs.tenants[&tenant("a")].bytes <= LOG_BYTES_MAX);
        assert!(logs.everyone.entries.len() < 200);
    }

    #[test]
    fn a_slow_reader_costs_nothing_and_one_noisy_tenant_takes_no_others_history() {
        let events = Arc::new(Events::new(1));
        events.publish(Millis(1), &tenant("quiet"), job(0));
        let mut slow = events.subscribe(Audience::Tenant(tenant("noisy")), None).unwrap();
        slow.poll();
        for number in 0..TENANT_LOG_LEN_MAX * 3 {
            events.publish(Millis(1), &tenant("noisy"), job(number));
        }
        assert!(matches!(slow.poll(), Some(NextEvents::StartAfresh(_))));
        assert!(events.lock().kept <= TENANT_LOG_LEN_MAX + 1);
        let mut quiet = events.subscribe(Audience::Tenant(tenant("quiet")), EventId::parse("1-0")).unwrap();
        assert_eq!(seqs(quiet.poll()), [1]);
    }

    #[test]
    fn a_tenant_that_opens_every_stream_it_may_leaves_the_others_theirs() {
        let events = Arc::new(Events::new(1).limited(2));
        let subscribe = |name: &str| events.subscribe(Audience::Tenant(tenant(name)), None);
        let (first, _second) = (subscribe("greedy").unwrap(), subscribe("greedy").unwrap());
        let over = OverQuota { quota: TenantQuota::Subscribers, max: 2 };
        assert_eq!(subscribe("greedy").map(drop), Err(SubscribeError::Tenant(over)));
        assert!(subscribe("modest").is_ok());
        assert!(events.subscribe(Audience::Everyone, None).is_ok());
        drop(first);
        assert!(subscribe("greedy").is_ok());
    }

    #[test]
    fn there_are_so_many_readers_and_no_more() {
        let events = Arc::new(Events::new(1));
        let open = |number: usize| events.subscribe(Audience::Tenant(tenant(&number.to_string())), None);
        let readers: Vec<Reader> = (0..SUBSCRIBERS_MAX).map(|number| open(number).unwrap()).collect();
        assert_eq!(open(SUBSCRIBERS_MAX).map(drop), Err(SubscribeError::Server));
        drop(readers);
        assert!(open(0).is_ok());
    }
}
