//! Those who watch: at whichever server, they are told everything once and in order.

use super::*;
use reveille_core::fleet::Beat;
use reveille_core::id::WorkerId;

/// What somebody is told, one after the other, at whichever server.
pub struct Watcher {
    at: Option<EventId>,
    pub seen: Vec<(EventId, What)>,
    pub afresh: usize,
}

impl Watcher {
    /// Reads on at a server until it has been quiet for a while.
    pub async fn read(&mut self, server: &Engine, tenant: &str) {
        let audience = Audience::Tenant(TenantId::known(tenant));
        let mut reader = server.subscribe(audience, self.at).unwrap();
        while let Ok(news) = tokio::time::timeout(Duration::from_secs(10), reader.next()).await {
            match news {
                NextEvents::StartAfresh(id) => {
                    self.at = Some(id);
                    self.afresh += 1;
                }
                NextEvents::Events(events) => {
                    for (id, event) in events {
                        assert_eq!(event.tenant, TenantId::known(tenant));
                        self.at = Some(id);
                        self.seen.push((id, event.what.clone()));
                    }
                }
            }
        }
    }

    pub fn new() -> Self {
        Self { at: None, seen: Vec::new(), afresh: 0 }
    }

    fn states_of(&self, job: &str) -> Vec<State> {
        let states = self.seen.iter().filter_map(|(_, what)| match what {
            What::Job { id, state, .. } if id.as_str() == job => Some(*state),
            _ => None,
        });
        states.collect()
    }

    fn changes_of(&self, worker: &str) -> Vec<WorkerChange> {
        let changes = self.seen.iter().filter_map(|(_, what)| match what {
            What::Worker { member, change } if member.id.as_str() == worker => Some(*change),
            _ => None,
        });
        changes.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_goes_on_at_another_server_and_misses_nothing() {
    let world = World::new();
    let servers = world.two().await;
    let mut watcher = Watcher::new();
    watcher.read(&servers[0], "default").await;
    let mut elsewhere = Watcher::new();
    elsewhere.read(&servers[1], "acme").await;
    world.worker(&servers, "w", 100).await;
    for round in 0..6 {
        for number in 0..10 {
            submit(&servers[number % 2], &format!("j{round}-{number}")).await.unwrap();
        }
        watcher.read(&servers[round % 2], "default").await;
    }
    assert_eq!(watcher.afresh, 1, "once, at the start");
    for round in 0..6 {
        for number in 0..10 {
            let states = watcher.states_of(&format!("j{round}-{number}"));
            let expected = [State::Dispatched, State::Running, State::Succeeded];
            // A fast job was never seen to run; one that waited was scheduled first.
            let told = states.iter().filter(|state| **state != State::Scheduled);
            assert!(told.eq(expected.iter()), "{round}-{number}: {states:?}");
        }
    }
    assert_eq!(watcher.changes_of("w")[0], WorkerChange::Joined);
    let joined = watcher.changes_of("w").iter().filter(|change| **change == WorkerChange::Joined).count();
    assert_eq!(joined, 1, "two servers heard it, one told");
    elsewhere.read(&servers[1], "acme").await;
    assert_eq!((elsewhere.seen.len(), elsewhere.afresh), (0, 1), "another tenant's events are none of its");
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_server_committed_is_told_all_the_same() {
    let world = World::new();
    let servers = world.two().await;
    let mut watcher = Watcher::new();
    watcher.read(&servers[0], "default").await;
    submit(&servers[0], "j").await.unwrap();
    servers[0].kill();
    watcher.read(&servers[1], "default").await;
    assert_eq!((watcher.states_of("j"), watcher.afresh), (vec![State::Scheduled], 1));
}

#[tokio::test(start_paused = true)]
async fn a_position_that_no_server_gave_out_is_not_waited_for() {
    let world = World::new();
    let servers = world.two().await;
    submit(&servers[0], "j").await.unwrap();
    sleep(1_000).await;
    let far = EventId::parse(&format!("0-{}", u64::MAX / 2));
    for at in [far, EventId::parse("7-1")] {
        let mut reader = servers[1].subscribe(Audience::Everyone, at).unwrap();
        let news = tokio::time::timeout(Duration::from_secs(5), reader.next()).await.unwrap();
        assert!(matches!(news, NextEvents::StartAfresh(_)), "{news:?}");
    }
}

/// A worker that all hear, and all hear no more: it joined once and left once.
#[tokio::test(start_paused = true)]
async fn what_all_servers_notice_is_told_once() {
    let world = World::new();
    let servers = world.two().await;
    let mut watcher = Watcher::new();
    watcher.read(&servers[0], "default").await;
    for name in ["w1", "w2", "w3", "w4"] {
        for server in &servers {
            server.fleet().beat(&WorkerId::known(name), &TenantId::known("default"), &Beat::default());
        }
    }
    sleep(60_000).await;
    watcher.read(&servers[1], "default").await;
    for name in ["w1", "w2", "w3", "w4"] {
        let changes = watcher.changes_of(name);
        let ends = changes.iter().filter(|change| **change != WorkerChange::Changed);
        assert!(ends.eq(&[WorkerChange::Joined, WorkerChange::Left]), "{name}: {changes:?}");
    }
    // With one of them gone the other tells of everybody.
    servers[0].kill();
    for name in ["v1", "v2", "v3", "v4"] {
        servers[1].fleet().beat(&WorkerId::known(name), &TenantId::known("default"), &Beat::default());
    }
    watcher.read(&servers[1], "default").await;
    for name in ["v1", "v2", "v3", "v4"] {
        assert_eq!(watcher.changes_of(name), [WorkerChange::Joined], "{name}");
    }
    assert_eq!(watcher.afresh, 1);
}
