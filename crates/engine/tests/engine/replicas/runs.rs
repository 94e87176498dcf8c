//! Runs of workflows that several servers drive, whichever of them hears what happens.

use super::watching::Watcher;
use super::*;
use crate::sagas::killed::{Fuse, Side, fused};
use reveille_core::flow::{Run, RunState};
use reveille_core::id::{RunId, WorkflowId};
use reveille_core::request::Actor;
use reveille_engine::RunRequest;
use reveille_store::workflows::{RunQuery, WorkflowStore};
use serde_json::Value;

async fn save(server: &Engine, steps: Value) {
    let document = serde_json::from_value(json!({"id": "w", "name": "w", "steps": steps})).unwrap();
    server.workflows().save_workflow(&TenantId::known("default"), document, "ada").await.unwrap();
}

async fn begin(server: &Engine) -> RunId {
    let asked = RunRequest {
        tenant: TenantId::known("default"),
        workflow: WorkflowId::known("w"),
        input: json!({}),
        idempotency_key: None,
        started_by: None,
        actor: Actor::default(),
    };
    server.workflows().start_run(asked).await.unwrap().id().clone()
}

async fn over(server: &Engine, id: &RunId) -> Run {
    let run = server.workflows().run_after(id, server.now() + 600_000).await.unwrap().unwrap();
    assert!(run.head.state.is_terminal(), "{:?}", run.head);
    run
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_wherever_its_jobs_end() {
    let world = World::new();
    let servers = world.two().await;
    let given = world.worker(&servers, "w", 20).await;
    save(&servers[0], json!({
        "first": {"topic": "job.echo"},
        "each": {"topic": "job.echo", "depends_on": ["first"], "for_each": [1, 2, 3, 4, 5, 6], "max_parallel": 3},
        "last": {"topic": "job.echo", "depends_on": ["each"]},
    }))
    .await;
    let mut runs = Vec::new();
    for number in 0..10 {
        runs.push(begin(&servers[number % 2]).await);
    }
    for (number, id) in runs.iter().enumerate() {
        // Whoever asks need not be the one that it was asked for.
        assert_eq!(over(&servers[(number + 1) % 2], id).await.head.state, RunState::Succeeded);
    }
    assert_eq!(given.load(Ordering::Relaxed), 80, "every step was done once");
}

/// Seed 004, section 8: a timer outlives the server that set it, and fires within a second of its time.
#[tokio::test(start_paused = true)]
async fn a_delay_ends_on_time_though_its_server_is_gone() {
    let world = World::new();
    let servers = world.two().await;
    world.worker(&servers, "w", 1).await;
    save(&servers[0], json!({"wait": {"type": "delay", "delay_sec": 30}})).await;
    let id = begin(&servers[0]).await;
    sleep(10_000).await;
    servers[0].kill();
    let run = over(&servers[1], &id).await;
    let took_ms = run.head.ended_at.unwrap().since(run.head.created_at);
    assert!((30_000..31_000).contains(&took_ms), "{took_ms}");
}

/// Wherever one of two is killed, the other does what is left, and nothing twice.
#[tokio::test(start_paused = true)]
async fn what_a_killed_server_owed_its_runs_is_done_by_another() {
    for kill_after_ms in [0, 1, 2, 5, 9, 10, 11, 15, 20, 21, 22, 30, 31, 45, 60] {
        let world = World::new();
        let servers = world.two().await;
        let given = world.worker(&servers, "w", 10).await;
        let undo = json!({"topic": "job.echo"});
        save(
            &servers[0],
            json!({
                "a": {"topic": "job.echo", "compensation": undo},
                "b": {"topic": "job.echo", "depends_on": ["a"], "compensation": undo},
                "bad": {"type": "transform", "depends_on": ["b"], "input": "${steps.b.output.missing.part}"},
            }),
        )
        .await;
        let runs = [begin(&servers[0]).await, begin(&servers[1]).await, begin(&servers[0]).await];
        sleep(kill_after_ms).await;
        servers[0].kill();
        for id in &runs {
            assert_eq!(over(&servers[1], id).await.head.state, RunState::Failed);
            let rollback = over(&servers[1], &reveille_engine::rollback_id(id)).await;
            assert_eq!(rollback.head.state, RunState::Succeeded, "killed after {kill_after_ms} ms");
        }
        let jobs = world.count(&[State::Succeeded]).await;
        assert_eq!(jobs, 3 * 4, "two steps and what undoes them, killed after {kill_after_ms} ms");
        // One that was at the worker when its server died may be sent again.
        assert!(given.load(Ordering::Relaxed) >= jobs);
        servers[1].kill();
    }
}

/// A start that was repeated at another server is one run.
#[tokio::test(start_paused = true)]
async fn a_key_is_one_run_whichever_server_is_asked() {
    let world = World::new();
    let servers = world.two().await;
    save(&servers[0], json!({"wait": {"type": "delay", "delay_sec": 5}})).await;
    let asked = RunRequest {
        tenant: TenantId::known("default"),
        workflow: WorkflowId::known("w"),
        input: json!({}),
        idempotency_key: Some("key".to_owned()),
        started_by: None,
        actor: Actor::default(),
    };
    let (first, second) = tokio::join!(
        servers[0].workflows().start_run(asked.clone()),
        servers[1].workflows().start_run(asked)
    );
    assert_eq!(first.unwrap().id(), second.unwrap().id());
}

/// It is cancelled at one server while the other sends its steps off: nothing goes on behind its back.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_elsewhere_leaves_no_job() {
    for cancel_after_ms in [0, 1, 2, 3, 5, 12] {
        let world = World::new();
        let servers = world.two().await;
        world.worker(&servers, "w", 5_000).await;
        save(
            &servers[0],
            json!({
                "first": {"type": "delay", "delay_sec": 1},
                "each": {"topic": "job.echo", "depends_on": ["first"], "for_each": [1, 2, 3]},
            }),
        )
        .await;
        let id = begin(&servers[0]).await;
        sleep(1_000 + cancel_after_ms).await;
        servers[1].workflows().cancel_run(&id, "ada", "").await.unwrap();
        sleep(1_000).await;
        let going_on =
            world.count(&[State::Pending, State::Scheduled, State::Dispatched, State::Running]).await;
        assert_eq!(going_on, 0, "cancelled after {cancel_after_ms} ms");
        servers.iter().for_each(Engine::kill);
    }
}

/// Whoever watches runs and keeps the highest revision of each knows how it stands, at whichever commit a server is
/// killed: what it had no time to say is said by the one that takes over.
#[tokio::test(start_paused = true)]
async fn what_a_killed_server_did_to_a_run_is_told_all_the_same() {
    let mut commits = 0;
    for kill_at in (0..).map(|number| (number > 0).then_some(number)) {
        if kill_at.is_some_and(|number| number > commits) {
            break;
        }
        let world = World::new();
        let fuse = Fuse::new(kill_at, Side::After);
        let flows = fused(world.workflows.clone(), fuse.clone());
        let servers = [
            world.replica("a").local_bus(&world.bus).workflows(Arc::new(flows)).start().await.engine,
            world.server("bb").await,
        ];
        sleep(5_000).await;
        let mut watcher = Watcher::new();
        watcher.read(&servers[1], "default").await;
        save(
            &servers[1],
            json!({
                "wait": {"type": "delay", "delay_sec": 5},
                "tell": {"type": "notify", "depends_on": ["wait"], "input": {"message": "done"}},
            }),
        )
        .await;
        // What it was asked for may never be answered: then it dies.
        let begun = {
            let server = servers[0].clone();
            tokio::spawn(async move { begin(&server).await })
        };
        if kill_at.is_some() {
            fuse.blown.notified().await;
            servers[0].kill();
            begun.abort();
        } else {
            over(&servers[1], &begun.await.unwrap()).await;
            commits = *fuse.made.lock().unwrap();
        }
        sleep(30_000).await;
        watcher.read(&servers[1], "default").await;
        let told = watcher.seen.iter().filter_map(|(_, what)| match what {
            What::Run { revision, state, .. } => Some((*revision, *state)),
            _ => None,
        });
        let stored =
            world.workflows.runs(&RunQuery { limit: 10, ..RunQuery::default() }).await.unwrap().items;
        let states: Vec<_> = stored.iter().map(|head| (head.revision, head.state)).collect();
        assert_eq!(states.len(), 1, "killed at {kill_at:?}");
        assert_eq!(states[0].1, RunState::Succeeded, "killed at {kill_at:?}");
        assert_eq!(told.max_by_key(|(revision, _)| *revision), Some(states[0]), "killed at {kill_at:?}");
        servers[1].kill();
    }
    assert!(commits >= 3, "{commits} commits: is anything counted?");
}
