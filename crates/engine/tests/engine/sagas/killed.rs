//! A server that dies at any commit of a saga, before it counts or just after: every compensation is made once, and
//! in order.

use super::*;
use reveille_store::suite::hooked::{HookedStore, StoreHook};
use reveille_store::workflows::suite::hooked;
use reveille_store::workflows::{MemoryWorkflows, RunCommit};
use reveille_store::{Commit, JobStore, Step, StoreError};
use std::sync::Mutex;
use tokio::sync::Notify;

/// Counts commits of jobs and runs together, and ends the server at one of them.
pub struct Fuse {
    left: Mutex<Option<u32>>,
    side: Side,
    /// Commits so far.
    pub made: Mutex<u32>,
    pub blown: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Side {
    Before,
    After,
}

impl Fuse {
    pub fn new(commits: Option<u32>, side: Side) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(commits), side, made: Mutex::new(0), blown: Notify::new() })
    }

    /// A server that is dead commits nothing more, and hears of nothing.
    async fn commit<T>(&self, commit: impl Future<Output = T>) -> T {
        let is_final = {
            let mut left = self.left.lock().unwrap();
            *self.made.lock().unwrap() += 1;
            match &mut *left {
                Some(0) => None,
                Some(left) => {
                    *left -= 1;
                    Some(*left == 0)
                }
                None => Some(false),
            }
        };
        match is_final {
            Some(false) => return commit.await,
            Some(true) if self.side == Side::After => drop(commit.await),
            _ => {}
        }
        if is_final == Some(true) {
            self.blown.notify_one();
        }
        std::future::pending().await
    }
}

struct FusedHook(Arc<Fuse>);

#[async_trait::async_trait]
impl StoreHook for FusedHook {
    async fn commit(&self, store: &dyn Store, step: Step) -> Result<Commit, StoreError> {
        self.0.commit(store.commit(step)).await
    }
}

/// Runs whose commits count towards the fuse.
pub fn fused(flows: MemoryWorkflows, fuse: Arc<Fuse>) -> impl WorkflowStore {
    hooked::HookedWorkflows::new(flows, FusedHook(fuse))
}

#[async_trait::async_trait]
impl hooked::WorkflowHook for FusedHook {
    async fn commit(&self, flows: &dyn WorkflowStore, step: RunStep) -> Result<RunCommit, StoreError> {
        self.0.commit(flows.commit(step)).await
    }
}

/// The client: three jobs, one after the other, and then it waits until nothing is owed any more.
async fn drive(world: &World, engine: &Engine) {
    for (id, topic, undo) in
        [("a", "job.a", "job.undo.a"), ("b", "job.b", "job.undo.b"), ("c", "job.c", "job.undo.a")]
    {
        ask(engine, job(id, "trip", topic, undo)).await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let jobs = world.store.live(None, 10).await.unwrap().items;
        let runs = world.workflows.live(None, 10).await.unwrap().items;
        if jobs.is_empty() && runs.is_empty() {
            return;
        }
    }
}

/// Says how many commits it took, if the server was not killed.
async fn saga(kill_at: Option<u32>, side: Side) -> u32 {
    let world = World::failing_at_c();
    let fuse = Fuse::new(kill_at, side);
    let store = HookedStore::new(world.store.clone(), FusedHook(fuse.clone()));
    let flows = fused(world.workflows.clone(), fuse.clone());
    let mut engine = world.start_on(Arc::new(store), Arc::new(flows)).await;
    tokio::select! {
        () = drive(&world, &engine) => assert_eq!(kill_at, None, "the fuse was never reached"),
        () = fuse.blown.notified() => {
            engine.kill();
            tokio::time::sleep(Duration::from_millis(50)).await;
            engine = world.start().await;
            drive(&world, &engine).await;
        }
    }
    let what = format!("killed {side:?} commit {kill_at:?}");
    // A worker may be given the same job again after a kill; it is the same job.
    let mut first = Vec::new();
    for done in done(&world) {
        if !first.contains(&done) {
            first.push(done);
        }
    }
    assert_eq!(
        first,
        ["job.a of a", "job.b of b", "job.c of c", "job.undo.b of b", "job.undo.a of a"],
        "{what}"
    );
    let undone = compensations(&engine).await;
    assert_eq!(undone.len(), 2, "{what}");
    assert!(undone.iter().all(|job| job.state() == State::Succeeded), "{what}");
    let stack = stack_of(&engine, "default", "trip").await;
    assert_eq!(stack.head.compensations, 2, "{what}");
    engine.kill();
    *fuse.made.lock().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_saga_outlives_its_server_at_whichever_commit_it_is_killed() {
    let commits = saga(None, Side::After).await;
    assert!(commits > 20, "{commits} commits: is anything counted?");
    for kill_at in 1..=commits {
        saga(Some(kill_at), Side::Before).await;
        saga(Some(kill_at), Side::After).await;
    }
}
