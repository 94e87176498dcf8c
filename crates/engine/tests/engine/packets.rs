//! Packets that should not be: each is answered with what is wrong, and changes nothing.

use bytes::Bytes;
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::audit::{BY_KEY, CLAIMED, Entry, EventType};
use reveille_core::id::{JobId, KeyId, TenantId};
use reveille_core::job::State;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{LimitSettings, Settings};
use reveille_store::AuditQuery;
use reveille_test_kit::{
    TestServer, TestWorker, TestWorld, job, job_packet, new_job, soon, state, succeeded,
};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{BusPacket, Heartbeat, JobCancel, JobRequest, JobResult};
use reveille_wire::{packet, subject};

struct Bench {
    server: TestServer,
    _worker: TestWorker,
}

impl Bench {
    /// An engine with one worker, `w`, that serves `job.echo` and really listens.
    async fn start() -> Self {
        let server = TestWorld::new().start().await;
        Self { _worker: server.hire("w", &["job.echo"], 10).await, server }
    }

    async fn submit(&self, id: &str) {
        new_job(&self.server, Request::plain(id, "job.echo")).await;
    }

    async fn state(&self, id: &str) -> State {
        state(&self.server, id).await
    }

    /// Publishes with a reply inbox and returns the answer.
    async fn ask(&self, subject: &str, payload: impl Into<Bytes>) -> String {
        let mut inbox = self.server.bus.subscribe("_INBOX.test", None).await.unwrap();
        let message = Message { reply: Some("_INBOX.test".to_owned()), ..Message::new(subject, payload) };
        self.server.bus.publish(message).await.unwrap();
        let answer = soon(inbox.recv()).await.unwrap().message;
        String::from_utf8(answer.payload.to_vec()).unwrap()
    }

    async fn report(&self, job: &str, worker: &str) -> String {
        self.ask(subject::JOB_RESULT, packet::encode(&sent_by(worker, result(job, worker)))).await
    }
}

fn sent_by(sender: &str, payload: Payload) -> BusPacket {
    packet::envelope(sender, "trace", Millis(1), payload)
}

fn result(job: &str, worker: &str) -> Payload {
    Payload::JobResult(JobResult { worker_id: worker.to_owned(), ..succeeded(job) })
}

#[tokio::test]
async fn a_result_counts_once_and_only_from_the_worker_that_has_the_job() {
    let bench = Bench::start().await;
    bench.submit("j").await;
    assert_eq!(bench.state("j").await, State::Dispatched);
    assert!(bench.report("nope", "w").await.contains("there is no such job"));
    assert!(bench.report("j", "stranger").await.contains("stranger does not hold this job"));
    assert_eq!(bench.state("j").await, State::Dispatched);
    assert!(bench.report("j", "w").await.contains("SUCCEEDED"));
    assert!(bench.report("j", "w").await.contains("a job that is SUCCEEDED takes no"));
    assert_eq!(bench.state("j").await, State::Succeeded);
}

#[tokio::test]
async fn a_packet_that_breaks_the_protocol_is_told_which_field() {
    let bench = Bench::start().await;
    bench.submit("j").await;
    let broken = |change: fn(&mut BusPacket)| {
        let mut packet = sent_by("w", result("j", "w"));
        change(&mut packet);
        packet::encode(&packet)
    };
    for (payload, words) in [
        (broken(|packet| packet.protocol_version = 2), "protocol_version"),
        (broken(|packet| packet.trace_id.clear()), "trace_id"),
        (broken(|packet| packet.sender_id = "other".to_owned()), "worker_id"),
        (broken(|packet| packet.created_at = None), "created_at"),
        (broken(|packet| packet.payload = None), "payload"),
        (Bytes::from_static(b"\xff\xff garbage"), "Protobuf"),
        (Bytes::from(vec![0; packet::PACKET_LEN_MAX + 1]), "bytes"),
    ] {
        let answer = bench.ask(subject::JOB_RESULT, payload).await;
        assert!(answer.contains("\"ok\":false") && answer.contains(words), "{words}: {answer}");
    }
    let misplaced = packet::encode(&sent_by(
        "w",
        Payload::Heartbeat(Heartbeat { worker_id: "w".into(), ..Heartbeat::default() }),
    ));
    assert!(bench.ask(subject::JOB_RESULT, misplaced).await.contains("does not belong on this subject"));
    assert!(!bench.state("j").await.is_terminal(), "none of them counted");
}

#[tokio::test]
async fn a_job_on_the_bus_cannot_choose_its_tenant_or_take_a_taken_id() {
    let bench = Bench::start().await;
    let submit = |id: &str, tenant: &str| {
        let job = JobRequest {
            job_id: id.into(),
            topic: "job.echo".into(),
            tenant_id: tenant.into(),
            ..JobRequest::default()
        };
        packet::encode(&sent_by("client", Payload::JobRequest(job)))
    };
    assert!(bench.ask(subject::JOB_SUBMIT, submit("a", "someone-else")).await.contains("tenant_id"));
    assert!(bench.server.jobs().job(&JobId::known("a")).await.unwrap().is_none());
    let (first, again) = (
        bench.ask(subject::JOB_SUBMIT, submit("a", "")).await,
        bench.ask(subject::JOB_SUBMIT, submit("a", "")).await,
    );
    assert!(
        first.contains("\"ok\":true") && again.contains("\"ok\":true"),
        "a repeated packet is the same job"
    );
    assert_eq!(job(&bench.server, "a").await.attempts.len(), 1);
}

#[tokio::test]
async fn a_job_on_the_bus_remembers_the_key_it_came_with() {
    let bench = Bench::start().await;
    let packet = job_packet("a", "job.echo");
    let key = Some(KeyId::known("key_1"));
    let origin = MessageOrigin::Client(MessageSender { tenant: TenantId::known("acme"), key: key.clone() });
    let mut inbox = bench.server.bus.subscribe("_INBOX.key", None).await.unwrap();
    let reply = Some("_INBOX.key".to_owned());
    let message = Message { reply, origin, ..Message::new(subject::JOB_SUBMIT, packet) };
    bench.server.bus.publish(message).await.unwrap();
    inbox.recv().await.unwrap();
    let job = job(&bench.server, "a").await;
    assert_eq!((&job.request.submitted_by, job.request.tenant.as_str()), (&key, "acme"));
}

#[tokio::test]
async fn workers_of_one_key_fill_the_fleet_for_all_tenants() {
    let limits = LimitSettings { members_per_tenant: 1, ..LimitSettings::default() };
    let settings = Settings { limits, ..Settings::default() };
    let server = TestWorld::new().engine().settings(settings).start().await;
    let mut inbox = server.bus.subscribe("_INBOX.beat", None).await.unwrap();
    let mut beat = async |tenant: &str, key: Option<&str>, worker: &str| {
        let beat = Heartbeat { worker_id: worker.to_owned(), ..Heartbeat::default() };
        let packet = packet::encode(&sent_by(worker, Payload::Heartbeat(beat)));
        let key = key.map(KeyId::known);
        let origin = MessageOrigin::Worker(MessageSender { tenant: TenantId::known(tenant), key });
        let reply = Some("_INBOX.beat".to_owned());
        let message = Message { reply, origin, ..Message::new(subject::HEARTBEAT, packet) };
        server.bus.publish(message).await.unwrap();
        let answer = soon(inbox.recv()).await.unwrap().message;
        String::from_utf8(answer.payload.to_vec()).unwrap()
    };
    let taken = r#"{"ok":true,"state":null}"#;
    assert_eq!(beat("greedy", Some("key_1"), "w1").await, taken);
    assert!(beat("greedy", Some("key_1"), "w2").await.contains("quota of members, which is 1"));
    assert_eq!(beat("greedy", Some("key_1"), "w1").await, taken, "who is there stays");
    assert_eq!(beat("honest", Some("key_2"), "w3").await, taken);
    assert_eq!(beat("default", None, "w4").await, taken);
    assert_eq!(beat("default", None, "w5").await, taken, "who needs no key is one of the operator's own");
    let known: Vec<_> = server.fleet().workers().iter().map(|view| view.worker.id.to_string()).collect();
    assert_eq!(known, ["w4", "w5", "w1", "w3"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_on_the_bus_is_recorded_with_the_key_it_came_with_and_its_name_as_a_claim() {
    let bench = Bench::start().await;
    bench.submit("a").await;
    let key = KeyId::known("key_1");
    let sender = MessageSender { tenant: TenantId::known("default"), key: Some(key.clone()) };
    let cancel =
        JobCancel { job_id: "a".into(), requested_by: "somebody-important".into(), ..JobCancel::default() };
    let mut inbox = bench.server.bus.subscribe("_INBOX.cancel", None).await.unwrap();
    let message = Message {
        reply: Some("_INBOX.cancel".to_owned()),
        origin: MessageOrigin::Client(sender),
        ..Message::new(subject::JOB_CANCEL, packet::encode(&sent_by("client", Payload::JobCancel(cancel))))
    };
    bench.server.bus.publish(message).await.unwrap();
    inbox.recv().await.unwrap();
    assert_eq!(bench.state("a").await, State::Cancelled);
    let query = AuditQuery { event_type: Some(EventType::Act), limit: 10, ..AuditQuery::default() };
    let found = bench.server.jobs().audit(&query).await.unwrap().items;
    let [Entry { draft, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((draft.action.as_str(), draft.identity.as_str()), ("cancel", key.as_str()));
    assert_eq!(
        (draft.extra[BY_KEY].as_str(), draft.extra[CLAIMED].as_str()),
        (key.as_str(), "somebody-important")
    );
}
