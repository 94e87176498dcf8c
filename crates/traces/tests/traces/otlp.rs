//! What a collector is sent, when it is asked again, and what is dropped.

use reveille_a2a::{A2aClient, A2aError, A2aReply, A2aRequest, Received};
use reveille_core::id::WorkerId;
use reveille_core::job::Job;
use reveille_core::life::{self, Destination, Limits, Made, Report, Status};
use reveille_core::policy::{Policy, RecordedVerdict};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_core::trace::{TraceContext, TraceParent};
use reveille_traces::{BadHeaders, Collector, Otlp, QUEUE_MAX, TraceCounts, Traces, headers};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const CALLER: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn ended(id: &str) -> Arc<Job> {
    let mut request = Request::plain(id, "job.echo");
    request.follow(TraceContext::read([CALLER], [&b"a=1"[..]]));
    let verdict = Policy::builtin().evaluate(&request);
    let job = life::submit(request, Millis(1_000));
    let job =
        life::judge(&job, RecordedVerdict { verdict, checked_at: Millis(1_000) }, Millis(1_000)).unwrap();
    let to = Destination { worker: Some(WorkerId::known("w")), pool: None };
    let job = life::assign(&job, &to, Millis(1_500)).unwrap();
    let report = Report {
        worker: WorkerId::known("w"),
        attempt: None,
        status: Status::Failed,
        result_ptr: String::new(),
        error_code: String::new(),
        error_message: "it \"broke\"".to_owned(),
        execution_ms: 200,
        made: Made::default(),
        trace: TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000aa-01"),
    };
    Arc::new(life::finish(&job, &report, &Limits::default(), Millis(2_000), 0).unwrap())
}

/// Answers what it was told to, and then always well. Nobody waits for it: time is paused.
#[derive(Default)]
struct Scripted {
    script: Mutex<VecDeque<Result<A2aReply, A2aError>>>,
    posted: Mutex<Vec<(Instant, A2aRequest)>>,
}

#[async_trait::async_trait]
impl A2aClient for Scripted {
    async fn check(&self, _url: &str) -> Result<(), A2aError> {
        Ok(())
    }

    async fn post(&self, request: A2aRequest, _received: Received) -> Result<A2aReply, A2aError> {
        self.posted.lock().unwrap().push((Instant::now(), request));
        self.script.lock().unwrap().pop_front().unwrap_or_else(|| Ok(A2aReply::new(200, "{}")))
    }
}

fn start(script: impl IntoIterator<Item = Result<A2aReply, A2aError>>) -> (Otlp, Arc<Scripted>) {
    let client =
        Arc::new(Scripted { script: Mutex::new(script.into_iter().collect()), ..Scripted::default() });
    let collector = Collector {
        url: "http://collector:4318/v1/traces".to_owned(),
        headers: headers("authorization=Bearer%20secret").unwrap(),
        service_name: "fleet \"one\"".to_owned(),
    };
    (Otlp::start(collector, client.clone()), client)
}

fn unwell(status: u16, retry_after: Option<u64>) -> A2aReply {
    A2aReply { retry_after: retry_after.map(Duration::from_secs), ..A2aReply::new(status, "") }
}

/// When each request was made, in whole seconds.
async fn run(script: impl IntoIterator<Item = Result<A2aReply, A2aError>>) -> (Vec<u64>, TraceCounts) {
    let began = Instant::now();
    let (otlp, client) = start(script);
    otlp.export(&ended("j"));
    sleep(Duration::from_mins(10)).await;
    otlp.finish(Duration::from_secs(1)).await;
    let posted = client.posted.lock().unwrap();
    (posted.iter().map(|(at, _)| (*at - began).as_secs()).collect(), otlp.counts())
}

#[tokio::test(start_paused = true)]
async fn a_request_is_what_collectors_read() {
    let (otlp, client) = start([]);
    otlp.export(&ended("j"));
    otlp.export(&ended("k"));
    otlp.finish(Duration::from_secs(5)).await;
    assert_eq!(otlp.counts(), TraceCounts { exported: 2, dropped: 0, failures: 0 });
    let posted = client.posted.lock().unwrap();
    let [(_, request)] = posted.as_slice() else { panic!("{posted:?}") };
    assert_eq!(request.url, "http://collector:4318/v1/traces");
    assert_eq!(request.headers, [("authorization".into(), "Bearer secret".to_owned())]);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let group = &body["resourceSpans"][0];
    assert_eq!(
        group["resource"]["attributes"][0],
        json!({
        "key": "service.name", "value": { "stringValue": "fleet \"one\"" } })
    );
    let spans = group["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 8);
    assert!(spans.iter().all(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"));
    let (job, attempt) = (&spans[0], &spans[3]);
    assert_eq!(job["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(
        (&job["name"], &job["kind"], &job["traceState"]),
        (&json!("job.echo"), &json!(2), &json!("a=1"))
    );
    assert_eq!(job["startTimeUnixNano"], "1000000000");
    assert_eq!(job["endTimeUnixNano"], "2000000000");
    assert_eq!(job["status"], json!({ "code": 2, "message": "it \"broke\"" }));
    assert_eq!(attempt["parentSpanId"], job["spanId"]);
    assert_eq!(attempt["attributes"][0], json!({ "key": "reveille.attempt", "value": { "intValue": "1" } }));
    assert_eq!(attempt["events"], json!([{ "timeUnixNano": "1800000000", "name": "running" }]));
    let link = json!({ "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00000000000000aa" });
    assert_eq!(attempt["links"], json!([link]));
}

#[tokio::test(start_paused = true)]
async fn a_collector_in_trouble_is_asked_again_with_longer_pauses_and_then_no_more() {
    let down = || Err(A2aError::Unreachable("refused".to_owned()));
    let good = TraceCounts { exported: 1, ..TraceCounts::default() };
    assert_eq!(run([]).await, (vec![1], good));
    assert_eq!(
        run([down(), Ok(unwell(503, None))]).await,
        (vec![1, 2, 4], TraceCounts { failures: 2, ..good })
    );
    assert_eq!(run([Ok(unwell(429, Some(7)))]).await, (vec![1, 8], TraceCounts { failures: 1, ..good }));
    assert_eq!(run([Ok(unwell(503, Some(86_400)))]).await.0, [1, 61], "no collector is waited for that long");
    let lost = |failures| TraceCounts { dropped: 1, failures, ..TraceCounts::default() };
    assert_eq!(run([down(), down(), down(), down(), down()]).await, (vec![1, 2, 4, 8, 16], lost(5)));
    for status in [301, 400, 401, 404, 500] {
        assert_eq!(run([Ok(unwell(status, Some(1)))]).await, (vec![1], lost(1)), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_and_waits_for_nobody() {
    // As often as it tries.
    let (otlp, _client) = start((0..5).map(|_| Err(A2aError::TimedOut)));
    let job = ended("j");
    // Nothing runs between these: the task has not even begun.
    for _ in 0..QUEUE_MAX + 100 {
        otlp.export(&job);
    }
    assert_eq!(otlp.counts().dropped, 100);
    sleep(Duration::from_mins(10)).await;
    let counts = otlp.counts();
    assert_eq!(counts.exported + counts.dropped, QUEUE_MAX as u64 + 100, "everything is accounted for");
    assert!(counts.exported > 0 && counts.dropped > 100);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_pause_and_takes_nothing_more() {
    let (otlp, client) = start([Ok(unwell(503, Some(50)))]);
    otlp.export(&ended("j"));
    sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    otlp.finish(Duration::from_secs(10)).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(client.posted.lock().unwrap().len(), 2, "the last try");
    otlp.export(&ended("k"));
    assert_eq!(otlp.counts(), TraceCounts { exported: 1, dropped: 1, failures: 1 });
}

#[test]
fn headers_are_read_as_the_variable_has_them_and_never_shown() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers(""), Ok(Vec::new()));
    let read = headers("Authorization=Basic%20dXNlcg==, x-scope=a=b ,").unwrap();
    assert_eq!(read, [pair("authorization", "Basic dXNlcg=="), pair("x-scope", "a=b")]);
    for bad in ["secret", "=secret", "a=%", "a=%zz", "a=%0d%0asecret", "a b=secret", "a=%ff"] {
        assert_eq!(headers(bad), Err(BadHeaders), "{bad}");
        assert!(!BadHeaders.to_string().contains("secret"));
    }
    let collector = Collector { url: String::new(), headers: read, service_name: String::new() };
    assert!(!format!("{collector:?}").contains("dXNlcg"));
}
