//! `traceparent` over HTTP: taken when it is good, and never a reason to refuse a job.

use super::support::{Api, USER};
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Submits with these headers: the status, the answer's `traceparent`, the body.
async fn submit(api: &Api, key: &str, headers: &[(&str, &[u8])]) -> (u16, String, Value) {
    let mut request = Request::builder().method("POST").uri("/api/v1/jobs").header("x-api-key", key);
    for (name, value) in headers {
        request = request.header(*name, HeaderValue::from_bytes(value).unwrap());
    }
    let body = json!({"topic": "job.echo", "context": {}}).to_string();
    let response = api.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let header = response.headers()["traceparent"].to_str().unwrap().to_owned();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, header, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_good_traceparent_is_followed_and_shown() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (status, header, reply) =
        submit(&api, &key, &[("traceparent", CALLER.as_bytes()), ("tracestate", b"a=1")]).await;
    assert_eq!((status, reply["trace_id"].as_str()), (200, Some(TRACE)));
    assert!(header.starts_with(&format!("00-{TRACE}-")) && header != CALLER, "{header}");
    let path = format!("/api/v1/jobs/{}", reply["job_id"].as_str().unwrap());
    let (_, job) = api.call(&key, "GET", &path, "").await;
    assert_eq!((job["traceparent"].as_str(), job["trace_id"].as_str()), (Some(header.as_str()), Some(TRACE)));
    let (_, listed) = api.call(&key, "GET", &format!("/api/v1/jobs?trace_id={TRACE}"), "").await;
    assert_eq!(listed["items"][0]["id"], reply["job_id"]);
}

#[tokio::test]
async fn a_bad_one_begins_a_new_trace_and_the_job_is_taken_all_the_same() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (long, upper) = ("0".repeat(10 * 1024), CALLER.to_uppercase());
    let good = CALLER.as_bytes();
    let table: [&[(&str, &[u8])]; 8] = [
        &[],
        &[("tracestate", b"a=1")],
        &[("traceparent", long.as_bytes())],
        &[("traceparent", upper.as_bytes())],
        &[("traceparent", b"\xff\xfe\x80")],
        &[("traceparent", b"")],
        &[("traceparent", good), ("traceparent", good)],
        &[("traceparent", b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")],
    ];
    for headers in table {
        let (status, header, reply) = submit(&api, &key, headers).await;
        assert_eq!((status, &reply["trace_id"]), (200, &reply["job_id"]), "{headers:?}");
        let id = reply["job_id"].as_str().unwrap().replace('-', "");
        assert!(header.starts_with(&format!("00-{id}-")), "the trace is named after the job: {header}");
    }
    let long_state = "a=1,".repeat(1_000);
    let (status, header, _) =
        submit(&api, &key, &[("traceparent", good), ("tracestate", long_state.as_bytes())]).await;
    assert_eq!(status, 200);
    assert!(header.starts_with(&format!("00-{TRACE}-")), "a bad tracestate alone is left out");
}

#[tokio::test]
async fn a_denied_job_says_its_trace_too() {
    let api = Api::start(json!({"rules": [{"id": "no", "decision": "deny", "reason": "never"}]})).await;
    let key = api.key("acme", USER).await;
    let (status, header, reply) = submit(&api, &key, &[("traceparent", CALLER.as_bytes())]).await;
    assert_eq!((status, reply["trace_id"].as_str()), (403, Some(TRACE)));
    assert!(header.starts_with(&format!("00-{TRACE}-")));
}
