//! A job's trace: taken from whoever asks, given to whoever works, told once when it is over.

use bytes::Bytes;
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::policy::Policy;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_core::trace::{JobTrace, Ratio, TraceContext, spans};
use reveille_engine::Settings;
use reveille_test_kit::{TestServer, TestWorker, TestWorld, job, new_job, soon, succeeded, tenant};
use reveille_traces::{TraceCounts, Traces};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobRequest, JobResult};
use reveille_wire::{packet, subject};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Keeps what it was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Arc<Job>>>>);

#[async_trait::async_trait]
impl Traces for Told {
    fn export(&self, job: &Arc<Job>) {
        self.0.lock().unwrap().push(job.clone());
    }

    fn counts(&self) -> TraceCounts {
        TraceCounts { exported: 7, dropped: 8, failures: 9 }
    }

    async fn finish(&self, _patience: Duration) {}
}

struct Bench {
    server: TestServer,
    worker: TestWorker,
    told: Told,
}

impl Bench {
    async fn start(settings: Settings) -> Self {
        let told = Told::default();
        let engine = TestWorld::new().engine().policy(Policy::builtin()).traces(Arc::new(told.clone()));
        let server = engine.settings(settings).start().await;
        Self { worker: server.hire("w", &["job.echo"], 10).await, server, told }
    }

    async fn submit(&self, request: Request) -> Arc<Job> {
        new_job(&self.server, request).await
    }

    /// Where the packet that the worker gets says it stands.
    async fn dispatched(&mut self) -> TraceContext {
        let message = soon(self.worker.jobs.recv()).await.unwrap().message;
        TraceContext::read(message.header("traceparent"), message.header("tracestate")).unwrap()
    }

    /// Publishes as a client would, and waits for the answer.
    async fn say(&self, subject: &str, payload: Payload, headers: Headers<'_>) -> String {
        let mut inbox = self.server.bus.subscribe("_INBOX.test", None).await.unwrap();
        let sender = MessageSender { tenant: tenant(), key: None };
        let packet = packet::envelope("w", "run-7", Millis(1), payload);
        let message = Message {
            reply: Some("_INBOX.test".to_owned()),
            origin: MessageOrigin::Worker(sender),
            ..Message::new(subject, packet::encode(&packet)).with_headers(headers.iter().copied())
        };
        self.server.bus.publish(message).await.unwrap();
        let answer = soon(inbox.recv()).await.unwrap().message;
        String::from_utf8(answer.payload.to_vec()).unwrap()
    }

    async fn succeed(&self, job: &str, headers: Headers<'_>) {
        let result = JobResult { worker_id: "w".to_owned(), ..succeeded(job) };
        let answer = self.say(subject::JOB_RESULT, Payload::JobResult(result), headers).await;
        assert!(answer.contains("SUCCEEDED"), "{answer}");
    }

    async fn job(&self, id: &str) -> Arc<Job> {
        job(&self.server, id).await
    }

    fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().iter().map(|job| job.id().to_string()).collect()
    }
}

fn asked(id: &str) -> Payload {
    Payload::JobRequest(JobRequest {
        job_id: id.to_owned(),
        topic: "job.echo".to_owned(),
        ..JobRequest::default()
    })
}

#[tokio::test]
async fn a_trace_goes_through_the_job_to_its_worker_and_is_told_once() {
    let mut bench = Bench::start(Settings::default()).await;
    let mut request = Request::plain("j", "job.echo");
    request.follow(TraceContext::read([CALLER.as_bytes()], [&b"a=1"[..]]));
    bench.submit(request).await;
    let given = bench.dispatched().await;
    assert_eq!(given.parent.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(given.state.as_ref().unwrap().as_str(), "a=1");
    assert_eq!(bench.told(), [""; 0]);
    let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01";
    bench.succeed("j", &[("traceparent", own)]).await;
    assert_eq!(bench.told(), ["j"]);
    let job = bench.job("j").await;
    let told = spans(&job, &JobTrace::of(&job.request, Ratio::ALL));
    let attempt = told.iter().find(|span| span.name == "attempt").unwrap();
    assert_eq!(attempt.span, given.parent.span, "the worker was told of the span that is exported");
    assert_eq!(attempt.links.iter().map(ToString::to_string).collect::<Vec<_>>(), [own]);
    assert_eq!((attempt.parent, told[0].parent), (Some(told[0].span), Some(caller().parent.span)));
    let page = bench.server.metrics_page();
    for line in ["exported_total 7", "dropped_total 8"] {
        assert!(page.contains(&format!("cordum_scheduler_trace_jobs_{line}")), "{page}");
    }
    assert!(page.contains("cordum_scheduler_trace_export_failures_total 9"), "{page}");
}

fn caller() -> TraceContext {
    TraceContext::read([CALLER.as_bytes()], []).unwrap()
}

#[tokio::test]
async fn a_packets_headers_are_taken_and_bad_ones_begin_a_new_trace() {
    let bench = Bench::start(Settings::default()).await;
    let long = "0".repeat(10 * 1024);
    let upper = CALLER.to_uppercase();
    let crowd: Vec<(String, String)> = (0..1_000).map(|n| (format!("x{n}"), String::new())).collect();
    let crowd: Vec<(&str, &str)> =
        crowd.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let table: [(&str, Headers, bool); 8] = [
        ("good", &[("traceparent", CALLER)], true),
        ("spelt-otherwise", &[("Traceparent", CALLER)], true),
        ("bad-state", &[("traceparent", CALLER), ("tracestate", "no list")], true),
        ("none", &[], false),
        ("long", &[("traceparent", &long)], false),
        ("upper-case", &[("traceparent", &upper)], false),
        ("twice", &[("traceparent", CALLER), ("traceparent", CALLER)], false),
        ("crowd", &crowd, false),
    ];
    for (id, headers, taken) in table {
        let answer = bench.say(subject::JOB_SUBMIT, asked(id), headers).await;
        assert!(answer.contains("\"ok\":true"), "{answer}");
        let job = bench.job(id).await;
        assert_eq!(job.request.trace.as_deref(), taken.then(caller).as_ref(), "{id}");
        assert_eq!(job.request.trace_id, "run-7", "the packet's own stays as it is");
    }
    // Bytes that are no text at all.
    let sender = MessageSender { tenant: tenant(), key: None };
    let packet = packet::encode(&packet::envelope("w", "run-7", Millis(1), asked("binary")));
    let mut inbox = bench.server.bus.subscribe("_INBOX.binary", None).await.unwrap();
    let message = Message {
        headers: Some(Bytes::from_static(b"NATS/1.0\r\ntraceparent: \xff\xfe\0\r\n:::\r\n\xc3")),
        reply: Some("_INBOX.binary".to_owned()),
        origin: MessageOrigin::Client(sender),
        ..Message::new(subject::JOB_SUBMIT, packet)
    };
    bench.server.bus.publish(message).await.unwrap();
    soon(inbox.recv()).await.unwrap();
    assert_eq!(bench.job("binary").await.request.trace, None);
}

#[tokio::test]
async fn what_the_caller_does_not_record_is_passed_on_and_not_told() {
    let ratio = Ratio::new(0.0).unwrap();
    let mut bench = Bench::start(Settings { trace_ratio: ratio, ..Settings::default() }).await;
    for (id, parent) in [("own", None), ("unsampled", Some(UNSAMPLED)), ("sampled", Some(CALLER))] {
        let mut request = Request::plain(id, "job.echo");
        request.follow(parent.and_then(|parent| TraceContext::read([parent.as_bytes()], [])));
        bench.submit(request).await;
        assert_eq!(bench.dispatched().await.parent.sampled, id == "sampled");
        bench.succeed(id, &[]).await;
    }
    assert_eq!(bench.told(), ["sampled"]);
}

#[tokio::test]
async fn a_cancelled_job_is_told_and_its_worker_hears_of_it_within_the_trace() {
    let mut bench = Bench::start(Settings::default()).await;
    let mut cancels = bench.server.bus.subscribe(subject::JOB_CANCEL, None).await.unwrap();
    bench.submit(Request::plain("j", "job.echo")).await;
    let given = bench.dispatched().await;
    bench.server.jobs().cancel(&JobId::known("j"), "ann", "").await.unwrap();
    let notice = soon(cancels.recv()).await.unwrap().message;
    let told = TraceContext::read(notice.header("traceparent"), []).unwrap();
    assert!(told.parent.trace == given.parent.trace && told.parent.span != given.parent.span);
    assert_eq!(bench.told(), ["j"]);
}
