//! What is counted, recorded and told once for all servers.

use super::watching::Watcher;
use super::*;
use reveille_engine::{Rules, WorkspaceClaim};

/// One after the other, so that each has heard of the last. What is more than the rule allows is turned away,
/// whoever is asked.
#[tokio::test(start_paused = true)]
async fn together_they_count_how_often_is_too_often() {
    let mut world = World::new();
    let velocity = json!({"max_requests": 10, "window_seconds": 60, "key": "tenant"});
    let rules = json!([{"id": "flood", "decision": "throttle", "velocity": velocity}]);
    world.policy = policy(json!({"default_decision": "allow", "rules": rules}));
    let servers = world.two().await;
    for round in 0..3 {
        let mut taken = 0;
        for number in 0..40 {
            let outcome = submit(&servers[number % 2], &format!("j{round}-{number}")).await.unwrap();
            taken += usize::from(matches!(outcome, Submitted::New(_)));
            sleep(10).await;
        }
        assert_eq!(taken, 10, "in round {round}");
        sleep(61_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_policy_is_recorded_once() {
    let world = World::new();
    let servers = [world.server("a").await, world.server("bb").await];
    sleep(5_000).await;
    let changes = async || {
        let query =
            AuditQuery { event_type: Some(EventType::PolicyChange), limit: 100, ..AuditQuery::default() };
        let page = world.store.audit(&query).await.unwrap();
        page.items.iter().map(|entry| entry.draft.policy_version.clone()).collect::<Vec<_>>()
    };
    assert_eq!(changes().await, [Policy::builtin().snapshot()], "both started with it");
    let policy = policy(json!({"default_decision": "deny"}));
    for server in &servers {
        server.use_rules(Rules { policy: policy.clone(), ..Rules::default() });
    }
    sleep(5_000).await;
    assert_eq!(changes().await, [policy.snapshot(), Policy::builtin().snapshot()]);
    for server in &servers {
        server.use_rules(Rules { policy: Policy::builtin(), ..Rules::default() });
        sleep(1_000).await;
    }
    let builtin = Policy::builtin();
    assert_eq!(
        changes().await,
        [builtin.snapshot(), policy.snapshot(), builtin.snapshot()],
        "and back again"
    );
}

/// Begun at one server, ended at the other.
#[tokio::test(start_paused = true)]
async fn a_delegation_is_told_once_to_its_end_at_whichever_server() {
    let world = World::new();
    let servers = world.two().await;
    let tenant = TenantId::known("default");
    let mut workspaces = Vec::new();
    for name in ["boss", "helper"] {
        let new = NewWorkspace { name: name.to_owned(), ..NewWorkspace::default() };
        let made = servers[0].workspaces().create_workspace(&tenant, new, "ann").await.unwrap();
        let url = format!("http://{name}.example/");
        let registration =
            WorkspaceRegistration { id: made.id.clone(), url, agent_card: serde_json::json!({}) };
        let claim = WorkspaceClaim::Key(tenant.clone());
        servers[0].workspaces().register_workspace(&claim, registration, "ann").await.unwrap();
        workspaces.push(made.id.clone());
    }
    sleep(3_000).await;
    let mut watcher = Watcher::new();
    watcher.read(&servers[1], "default").await;
    for round in 0..4 {
        for (at, id) in servers.iter().flat_map(|at| workspaces.iter().map(move |id| (at, id))) {
            at.workspaces()
                .workspace_beat(id, Pulse { uptime_seconds: 5, ..Pulse::default() })
                .await
                .unwrap();
        }
        let boss = servers[round % 2].workspaces().workspace(&tenant, &workspaces[0]).unwrap();
        let taken = servers[round % 2]
            .delegations()
            .delegate(&boss, None, &workspaces[1], "think", None, None)
            .await
            .unwrap();
        let id = taken.job.id().clone();
        sleep(1_000).await;
        assert_eq!(world.job(id.as_str()).await.state(), State::Running);
        let other = &servers[(round + 1) % 2];
        let helper = other.workspaces().workspace(&tenant, &workspaces[1]).unwrap();
        // Both may be told; one of them ends it.
        for server in [other, &servers[round % 2]] {
            server.delegations().report_delegation(&helper, &id, Ok("42".to_owned())).await.unwrap();
        }
        watcher.read(&servers[0], "default").await;
        let rows = servers[0].delegations().delegations_of(&workspaces[0]).await.unwrap();
        assert_eq!(rows.iter().find(|row| row.id == id).unwrap().status, DelegationStatus::Completed);
        let told: Vec<&str> = watcher.seen.iter().filter_map(|(_, what)| delegated(what, &id)).collect();
        let expected = [
            "DELEGATION_SENT",
            "pending",
            "dispatched",
            "received",
            "in_progress",
            "completed",
            "DELEGATION_COMPLETE",
        ];
        assert_eq!(told, expected, "in round {round}");
    }
    assert_eq!(watcher.afresh, 1);
}

/// What is told of one delegation: the status, or the name of the event.
fn delegated<'a>(what: &'a What, job: &JobId) -> Option<&'a str> {
    let What::Workspace { name, payload, .. } = what else { return None };
    if payload.get("delegation_id")?.as_str()? != job.as_str() {
        return None;
    }
    if name == "DELEGATION_STATUS" { payload.get("status")?.as_str() } else { Some(name) }
}
