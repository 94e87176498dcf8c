//! What the local bus promises beyond the port: who received a message, who listens, and remote clients.

use reveille_bus::{
    Bus, ClientInfo, DeliveryReport, INBOX_LEN_MAX, Listener, LocalBus, LocalClient, Message, MessageOrigin,
    MessageSender, Sink, suite,
};
use reveille_core::fleet::ServedTenants;
use reveille_core::id::TenantId;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// A remote client's sink that records what it receives, until it is told to refuse.
#[derive(Default)]
struct Notebook {
    notes: Mutex<Vec<(u64, String)>>,
    refuses: AtomicBool,
}

impl Sink for Notebook {
    fn deliver(&self, sid: u64, message: &Message) -> bool {
        self.notes.lock().unwrap().push((sid, String::from_utf8_lossy(&message.payload).into_owned()));
        !self.refuses.load(Relaxed)
    }
}

impl Notebook {
    fn take(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut *self.notes.lock().unwrap())
    }

    fn payloads(&self) -> Vec<String> {
        self.take().into_iter().map(|(_, payload)| payload).collect()
    }
}

fn acme() -> MessageSender {
    MessageSender { tenant: TenantId::known("acme"), key: None }
}

fn attach(bus: &LocalBus, name: &str) -> (LocalClient, Arc<Notebook>) {
    join_for(bus, name, ServedTenants::Everyone)
}

fn join_for(bus: &LocalBus, name: &str, tenants: ServedTenants) -> (LocalClient, Arc<Notebook>) {
    let notebook = Arc::new(Notebook::default());
    let info = ClientInfo { name: Some(name.into()), sender: acme(), is_worker: false, tenants };
    (bus.attach(info, notebook.clone()), notebook)
}

async fn publish(bus: &LocalBus, subject: &str, payload: &str) -> DeliveryReport {
    bus.publish(Message::new(subject, payload.to_owned())).await.unwrap()
}

/// Who received it, by name.
async fn heard_by(bus: &LocalBus, subject: &str, payload: &str) -> Option<String> {
    name_of(publish(bus, subject, payload).await)
}

fn name_of(heard: DeliveryReport) -> Option<String> {
    match heard {
        DeliveryReport::Somebody { by } => by?.name,
        DeliveryReport::Nobody => None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_local_bus_keeps_the_promises_of_the_port() {
    suite::run(&LocalBus::new()).await;
}

#[tokio::test]
async fn the_only_connection_that_took_a_message_is_named() {
    let bus = LocalBus::new();
    let (one, _) = attach(&bus, "one");
    let (two, _) = attach(&bus, "two");
    one.subscribe(1, "job.echo", None).unwrap();
    one.subscribe(2, "job.*", None).unwrap();
    assert_eq!(
        heard_by(&bus, "job.echo", "x").await.as_deref(),
        Some("one"),
        "two subscriptions, one connection"
    );
    two.subscribe(1, "job.echo", None).unwrap();
    assert_eq!(publish(&bus, "job.echo", "x").await, DeliveryReport::Somebody { by: None });
    let _ours = bus.subscribe("job.quiet", None).await.unwrap();
    assert_eq!(heard_by(&bus, "job.quiet", "x").await.as_deref(), Some("one"));
    one.rename(Some("uno".into()));
    assert_eq!(heard_by(&bus, "job.quiet", "x").await.as_deref(), Some("uno"));
}

#[tokio::test]
async fn a_queue_group_takes_turns_across_patterns_and_kinds_of_members() {
    let bus = LocalBus::new();
    let (one, one_notes) = attach(&bus, "one");
    let (two, two_notes) = attach(&bus, "two");
    one.subscribe(1, "job.echo", Some("q")).unwrap();
    two.subscribe(1, "job.*", Some("q")).unwrap();
    let mut ours = bus.subscribe("job.>", Some("q")).await.unwrap();
    for number in 0..6 {
        publish(&bus, "job.echo", &number.to_string()).await;
    }
    let mut shares = vec![one_notes.payloads(), two_notes.payloads(), Vec::new()];
    while let Some(delivery) = ours.try_recv() {
        shares[2].push(String::from_utf8(delivery.message.payload.to_vec()).unwrap());
    }
    assert!(shares.iter().all(|share| share.len() == 2), "{shares:?}");
}

#[tokio::test]
async fn a_member_that_refuses_is_forgotten_and_another_takes_its_turn() {
    let bus = LocalBus::new();
    let (slow, slow_notes) = attach(&bus, "slow");
    let (good, good_notes) = attach(&bus, "good");
    slow.subscribe(1, "job.echo", Some("q")).unwrap();
    slow.subscribe(2, "worker.slow.jobs", None).unwrap();
    good.subscribe(1, "job.echo", Some("q")).unwrap();
    slow_notes.refuses.store(true, Relaxed);
    assert_eq!(heard_by(&bus, "job.echo", "x").await.as_deref(), Some("good"));
    assert_eq!(heard_by(&bus, "job.echo", "y").await.as_deref(), Some("good"));
    assert_eq!(good_notes.payloads(), ["x", "y"]);
    assert_eq!(publish(&bus, "worker.slow.jobs", "z").await, DeliveryReport::Nobody);
    assert_eq!(slow_notes.payloads(), ["x"], "it was asked once");
}

#[tokio::test]
async fn a_client_speaks_for_its_tenant_whatever_it_claims() {
    let bus = LocalBus::new();
    let (client, _) = attach(&bus, "one");
    let mut ours = bus.subscribe("sys.>", None).await.unwrap();
    client.publish(Message::new("sys.heartbeat", "beat")).await.unwrap();
    assert_eq!(ours.recv().await.unwrap().message.origin, MessageOrigin::Client(acme()));
}

#[tokio::test]
async fn without_echo_a_client_does_not_hear_itself() {
    let bus = LocalBus::new();
    let (mut client, notes) = attach(&bus, "one");
    let (other, other_notes) = attach(&bus, "two");
    client.subscribe(1, "chat", None).unwrap();
    client.subscribe(2, "chat", Some("q")).unwrap();
    other.subscribe(1, "chat", Some("q")).unwrap();
    client.set_echo(false);
    for payload in ["a", "b"] {
        let heard = client.publish(Message::new("chat", payload)).await.unwrap();
        assert_eq!(name_of(heard).as_deref(), Some("two"));
    }
    assert_eq!(notes.payloads(), [""; 0]);
    assert_eq!(other_notes.payloads(), ["a", "b"]);
}

#[tokio::test]
async fn telling_a_client_reaches_nobody_else() {
    let bus = LocalBus::new();
    let (client, notes) = attach(&bus, "one");
    let mut ours = bus.subscribe("sys.job.result", None).await.unwrap();
    assert_eq!(client.tell(Message::new("sys.job.result", "503")).await.unwrap(), DeliveryReport::Nobody);
    client.subscribe(4, "sys.job.*", None).unwrap();
    let heard = client.tell(Message::new("sys.job.result", "503")).await.unwrap();
    assert_eq!(name_of(heard).as_deref(), Some("one"));
    assert_eq!(notes.take(), [(4, "503".to_owned())]);
    assert!(ours.try_recv().is_none());
}

#[tokio::test]
async fn a_subscription_ends_after_as_many_messages_as_it_asked_for() {
    let bus = LocalBus::new();
    let (client, notes) = attach(&bus, "one");
    client.subscribe(1, "tick", None).unwrap();
    publish(&bus, "tick", "1").await;
    client.unsubscribe(1, Some(2));
    publish(&bus, "tick", "2").await;
    assert_eq!(publish(&bus, "tick", "3").await, DeliveryReport::Nobody);
    assert_eq!(notes.payloads(), ["1", "2"]);
    assert_eq!(client.subscription_count(), 0);

    client.subscribe(1, "tick", None).unwrap();
    publish(&bus, "tick", "4").await;
    client.unsubscribe(1, Some(1));
    assert_eq!(publish(&bus, "tick", "5").await, DeliveryReport::Nobody, "it has had its one already");
}

#[tokio::test]
async fn a_number_in_use_keeps_its_subject() {
    let bus = LocalBus::new();
    let (client, _) = attach(&bus, "one");
    client.subscribe(1, "first", None).unwrap();
    client.subscribe(1, "second", None).unwrap();
    assert_eq!(publish(&bus, "second", "x").await, DeliveryReport::Nobody);
    assert_eq!(heard_by(&bus, "first", "x").await.as_deref(), Some("one"));
}

#[tokio::test]
async fn changes_are_reported_once_each_as_it_is_now() {
    let bus = LocalBus::new();
    let (client, _) = attach(&bus, "one");
    client.subscribe(1, "_INBOX.abc.*", None).unwrap();
    client.subscribe(2, "worker.one.jobs", None).unwrap();
    client.subscribe(3, "job.echo", Some("job.echo")).unwrap();
    client.subscribe(4, "job.gone", None).unwrap();
    client.unsubscribe(4, None);
    let listener = |subjects: &[&str]| Listener {
        connection: client.connection(),
        name: Some("one".into()),
        subjects: subjects.iter().map(ToString::to_string).collect(),
        tenants: ServedTenants::Everyone,
    };
    assert_eq!(bus.listeners_changed().await, [listener(&["job.echo", "worker.one.jobs"])]);
    let gone = Listener::gone(client.connection(), Some("one".into()));
    drop(client);
    assert_eq!(bus.listeners_changed().await, [gone]);
}

#[tokio::test(start_paused = true)]
async fn who_only_has_an_inbox_or_was_never_reported_is_no_news() {
    let bus = LocalBus::new();
    let (client, _) = attach(&bus, "one");
    client.subscribe(1, "_INBOX.abc.*", None).unwrap();
    client.rename(Some("two".into()));
    let (passing, _) = attach(&bus, "passing");
    passing.subscribe(1, "job.echo", None).unwrap();
    drop(passing);
    let news = tokio::time::timeout(std::time::Duration::from_secs(1), bus.listeners_changed()).await;
    assert!(news.is_err(), "{news:?}");
}

#[tokio::test(start_paused = true)]
async fn who_stopped_listening_and_then_leaves_is_reported_once() {
    let bus = LocalBus::new();
    let (client, _) = attach(&bus, "one");
    client.subscribe(1, "job.echo", None).unwrap();
    assert_eq!(bus.listeners_changed().await[0].subjects, ["job.echo"]);
    client.unsubscribe(1, None);
    assert_eq!(bus.listeners_changed().await[0].subjects, [""; 0]);
    drop(client);
    let news = tokio::time::timeout(std::time::Duration::from_secs(1), bus.listeners_changed()).await;
    assert!(news.is_err(), "{news:?}");
}

#[tokio::test]
async fn a_change_wakes_whoever_waits_for_it() {
    let bus = LocalBus::new();
    let waiting = tokio::spawn({
        let bus = bus.clone();
        async move { bus.listeners_changed().await }
    });
    tokio::task::yield_now().await;
    let (client, _) = attach(&bus, "one");
    client.subscribe(1, "job.echo", None).unwrap();
    assert_eq!(waiting.await.unwrap()[0].subjects, ["job.echo"]);
}

#[tokio::test]
async fn publishing_waits_for_room_and_drops_nothing() {
    const EXTRA: usize = 100;
    let bus = LocalBus::new();
    let mut ours = bus.subscribe("flood", None).await.unwrap();
    let publisher = tokio::spawn({
        let bus = bus.clone();
        async move {
            for number in 0..INBOX_LEN_MAX + EXTRA {
                publish(&bus, "flood", &number.to_string()).await;
            }
        }
    });
    while ours.waiting() < INBOX_LEN_MAX {
        tokio::task::yield_now().await;
    }
    assert!(!publisher.is_finished());
    for number in 0..INBOX_LEN_MAX + EXTRA {
        assert_eq!(ours.recv().await.unwrap().message.payload, number.to_string());
    }
    publisher.await.unwrap();
}

#[tokio::test]
async fn a_client_hears_only_of_tenants_that_it_serves() {
    let bus = LocalBus::new();
    let (acme, beta) = (TenantId::known("acme"), TenantId::known("beta"));
    let (limited, ours) = join_for(&bus, "limited", ServedTenants::only(&acme));
    for (sid, subject, queue) in
        [(1, "job.echo", Some("job.echo")), (2, "worker.limited.jobs", None), (3, "sys.job.cancel", None)]
    {
        limited.subscribe(sid, subject, queue).unwrap();
    }
    let about = |subject: &str, tenant: &TenantId| Message::new(subject, tenant.to_string()).about(tenant);
    for subject in ["job.echo", "worker.limited.jobs", "sys.job.cancel"] {
        assert_eq!(bus.publish(about(subject, &beta)).await.unwrap(), DeliveryReport::Nobody, "{subject}");
        assert_eq!(name_of(bus.publish(about(subject, &acme)).await.unwrap()).unwrap(), "limited");
    }
    let (anybodys, theirs) = attach(&bus, "anybodys");
    anybodys.subscribe(1, "job.echo", Some("job.echo")).unwrap();
    for _ in 0..4 {
        assert_eq!(name_of(bus.publish(about("job.echo", &beta)).await.unwrap()).unwrap(), "anybodys");
    }
    assert_eq!((ours.payloads(), theirs.payloads().len()), (vec!["acme".to_owned(); 3], 4));
}
