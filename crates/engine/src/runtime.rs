//! What every room is handed: time and chance, the settings, the rules in force, and tasks that end with the engine.

use crate::clock::{Clock, Rng};
use crate::evaluation::EvaluationPool;
use crate::rules::Rules;
use crate::settings::Settings;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::time::Millis;
use reveille_wire::cap::BusPacket;
use reveille_wire::{packet, sign};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A handle; clones are the same runtime.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    settings: Settings,
    rules: RwLock<Arc<Rules>>,
    evaluations: EvaluationPool,
    tasks: TaskTracker,
    killed: CancellationToken,
    draining: AtomicBool,
    recovered: AtomicBool,
}

impl Runtime {
    pub fn new(clock: Arc<dyn Clock>, rng: Arc<dyn Rng>, settings: Settings) -> Self {
        Self(Arc::new(Inner {
            clock,
            rng,
            settings,
            rules: RwLock::default(),
            evaluations: EvaluationPool::default(),
            tasks: TaskTracker::new(),
            killed: CancellationToken::new(),
            draining: AtomicBool::new(false),
            recovered: AtomicBool::new(false),
        }))
    }

    pub fn now(&self) -> Millis {
        self.0.clock.now()
    }

    pub fn random(&self) -> u64 {
        self.0.rng.next_u64()
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// A packet of ours as it is sent: signed, where signatures are asked for.
    pub fn encode(&self, packet: &BusPacket) -> Bytes {
        match &self.settings().packet_key.0 {
            Some(key) => sign::sign(packet, key),
            None => packet::encode(packet),
        }
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.0.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these rules hold. Returns what held before.
    pub fn set_rules(&self, rules: Arc<Rules>) -> Arc<Rules> {
        std::mem::replace(&mut *self.0.rules.write().unwrap_or_else(PoisonError::into_inner), rules)
    }

    /// Where what somebody else wrote is worked out.
    pub fn evaluations(&self) -> &EvaluationPool {
        &self.0.evaluations
    }

    /// Runs a task that ends with the engine. In a box it is moved once, and not by all that is around it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let (task, killed) = (Box::pin(task), self.0.killed.clone());
        self.0.tasks.spawn(async move {
            killed.run_until_cancelled(task).await;
        });
    }

    /// Runs to its end even if whoever asked goes away meanwhile: what is committed must be acted on.
    pub async fn run_detached<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (answer, answered) = oneshot::channel();
        let work = Box::pin(work);
        self.spawn(async move {
            let _ = answer.send(work.await);
        });
        match answered.await {
            Ok(answer) => answer,
            // The engine was killed; as with kill -9, nobody is left to answer.
            Err(_) => std::future::pending().await,
        }
    }

    pub fn tasks_len(&self) -> usize {
        self.0.tasks.len()
    }

    /// Is cancelled when the engine ends.
    pub fn end(&self) -> CancellationToken {
        self.0.killed.clone()
    }

    /// Stops between any two steps, as kill -9 would.
    pub fn kill(&self) {
        self.0.killed.cancel();
    }

    /// Waits until every task has ended.
    pub async fn join(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    pub fn begin_drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Whether everything that was owed at the start has been picked up.
    pub fn is_recovered(&self) -> bool {
        self.0.recovered.load(Ordering::Relaxed)
    }

    pub fn set_recovered(&self) {
        self.0.recovered.store(true, Ordering::Relaxed);
    }

    /// A new id: ordered by time, unguessable enough to be shared.
    pub fn new_job_id(&self) -> JobId {
        JobId::known(self.new_uuid())
    }

    pub fn new_uuid(&self) -> String {
        let (high, low) = (self.random().to_be_bytes(), self.random().to_be_bytes());
        let mut random = [0; 10];
        random[..8].copy_from_slice(&high);
        random[8..].copy_from_slice(&low[..2]);
        uuid::Builder::from_unix_timestamp_millis(self.now().0.max(0) as u64, &random).into_uuid().to_string()
    }
}

/// How long to leave a store or a roster alone that has just failed.
pub const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// And a bus.
pub const PUBLISH_PAUSE: Duration = Duration::from_secs(2);
