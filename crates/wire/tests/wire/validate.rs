//! Each rule broken alone, with the message it gives; an empty message means the packet is good.

mod trust;

use prost_types::Timestamp;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{
    Budget, BusPacket, Handshake, Heartbeat, JobCancel, JobMetadata, JobProgress, JobRequest, JobResult,
    SystemAlert,
};
use reveille_wire::packet::envelope;
use reveille_wire::validate::{BUDGET_TOKENS_MAX, check};

fn check_packet(packet: &BusPacket, expected: &str) {
    let said = check(packet).map_or_else(|broken| broken.to_string(), |()| String::new());
    assert_eq!(said, expected);
}

fn check_payload(payload: Payload, expected: &str) {
    check_packet(&envelope("w", "t", Millis(1), payload), expected);
}

fn request(change: impl FnOnce(&mut JobRequest), expected: &str) {
    let mut request = JobRequest { job_id: "j".into(), topic: "job.echo".into(), ..Default::default() };
    change(&mut request);
    check_payload(Payload::JobRequest(request), expected);
}

fn budget(budget: Budget, expected: &str) {
    request(|request| request.budget = Some(budget), expected);
}

fn result(change: impl FnOnce(&mut JobResult), expected: &str) {
    let mut result = JobResult { job_id: "j".into(), status: 5, worker_id: "w".into(), ..Default::default() };
    change(&mut result);
    check_payload(Payload::JobResult(result), expected);
}

fn alert(alert: SystemAlert, expected: &str) {
    check_payload(Payload::Alert(alert), expected);
}

#[test]
fn an_envelope_says_who_when_and_what() {
    let heartbeat = Heartbeat { worker_id: "w".into(), ..Default::default() };
    let good = envelope("w", "t", Millis(1), Payload::Heartbeat(heartbeat));
    check_packet(&good, "");
    check_packet(&BusPacket { created_at: Some(Timestamp::default()), ..good.clone() }, "");
    check_packet(&BusPacket { trace_id: String::new(), ..good.clone() }, "trace_id must not be empty");
    check_packet(&BusPacket { sender_id: String::new(), ..good.clone() }, "sender_id must not be empty");
    check_packet(&BusPacket { protocol_version: 0, ..good.clone() }, "protocol_version must be 1");
    check_packet(&BusPacket { protocol_version: 2, ..good.clone() }, "protocol_version must be 1");
    check_packet(&BusPacket { created_at: None, ..good.clone() }, "created_at must be present");
    check_packet(&BusPacket { payload: None, ..good }, "payload must be present");
}

#[test]
fn a_job_request_names_its_job_and_topic_and_stays_within_limits() {
    request(|_| (), "");
    request(|r| r.job_id.clear(), "job_request.job_id must not be empty");
    request(|r| r.topic.clear(), "job_request.topic must not be empty");
    request(|r| r.priority = 3, "");
    request(|r| r.priority = 4, "job_request.priority must be a known priority");
    request(|r| r.priority = -1, "job_request.priority must be a known priority");
    request(|r| r.step_index = -1, "job_request.step_index must not be negative");
}

#[test]
fn a_job_request_has_at_most_a_thousand_of_anything() {
    let labels = |count| (0..count).map(|i| (format!("{i}"), String::new())).collect();
    request(|r| r.labels = labels(1000), "");
    request(|r| r.labels = labels(1001), "job_request.labels must not have more than 1000 entries");
    let tags = || vec![String::new(); 1001];
    let meta = JobMetadata { risk_tags: tags(), ..Default::default() };
    request(|r| r.meta = Some(meta), "job_request.meta.risk_tags must not have more than 1000 entries");
    let meta = JobMetadata { requires: tags(), ..Default::default() };
    request(|r| r.meta = Some(meta), "job_request.meta.requires must not have more than 1000 entries");
}

#[test]
fn a_budget_is_neither_negative_nor_absurd() {
    let most = BUDGET_TOKENS_MAX;
    budget(Budget { max_input_tokens: most, deadline_ms: i64::MAX, ..Default::default() }, "");
    budget(
        Budget { max_input_tokens: most + 1, ..Default::default() },
        "job_request.budget.max_input_tokens must not be more than 10000000000",
    );
    budget(
        Budget { max_output_tokens: -1, ..Default::default() },
        "job_request.budget.max_output_tokens must not be negative",
    );
    budget(
        Budget { max_total_tokens: -1, ..Default::default() },
        "job_request.budget.max_total_tokens must not be negative",
    );
    budget(
        Budget { deadline_ms: -1, ..Default::default() },
        "job_request.budget.deadline_ms must not be negative",
    );
}

#[test]
fn a_result_comes_from_the_worker_that_it_names() {
    result(|_| (), "");
    result(|r| r.status = 99, "");
    result(|r| r.job_id.clear(), "job_result.job_id must not be empty");
    result(|r| r.status = 0, "job_result.status must be specified");
    result(|r| r.worker_id.clear(), "job_result.worker_id must not be empty");
    result(|r| r.worker_id = "v".into(), "job_result.worker_id must equal sender_id");
    result(|r| r.execution_ms = -1, "job_result.execution_ms must not be negative");
}

#[test]
fn progress_is_a_percentage_of_a_known_job() {
    let progress = |percent, status, expected| {
        let progress = JobProgress { job_id: "j".into(), percent, status, ..Default::default() };
        check_payload(Payload::JobProgress(progress), expected);
    };
    progress(0, 0, "");
    progress(100, 11, "");
    progress(101, 4, "job_progress.percent must be 0 to 100");
    progress(-1, 4, "job_progress.percent must be 0 to 100");
    progress(1, 12, "job_progress.status must be a known status");
    check_payload(Payload::JobProgress(JobProgress::default()), "job_progress.job_id must not be empty");
}

#[test]
fn a_cancel_says_which_job_and_who_asks() {
    let cancel = |job_id: &str, requested_by: &str, expected| {
        let (job_id, requested_by) = (job_id.to_owned(), requested_by.to_owned());
        check_payload(Payload::JobCancel(JobCancel { job_id, requested_by, ..Default::default() }), expected);
    };
    cancel("j", "ops", "");
    cancel("", "ops", "job_cancel.job_id must not be empty");
    cancel("j", "", "job_cancel.requested_by must not be empty");
}

#[test]
fn heartbeats_and_handshakes_speak_for_their_sender_only() {
    let heartbeat = Heartbeat { worker_id: "v".into(), ..Default::default() };
    check_payload(Payload::Heartbeat(heartbeat), "heartbeat.worker_id must equal sender_id");
    let handshake = Handshake { component_id: "w".into(), ..Default::default() };
    check_payload(Payload::Handshake(handshake), "");
    check_payload(Payload::Handshake(Handshake::default()), "handshake.component_id must equal sender_id");
}

#[test]
#[expect(deprecated, reason = "the older form is still valid")]
fn an_alert_is_whole_in_its_older_or_its_newer_form() {
    let older = SystemAlert {
        message: "m".into(),
        level: "warn".into(),
        component: "anything".into(),
        code: "c".into(),
        ..Default::default()
    };
    alert(older.clone(), "");
    alert(SystemAlert::default(), "alert.message must not be empty");
    alert(SystemAlert { level: String::new(), ..older.clone() }, "alert.level must not be empty");
    alert(SystemAlert { component: String::new(), ..older.clone() }, "alert.component must not be empty");
    alert(SystemAlert { code: String::new(), ..older.clone() }, "alert.code must not be empty");

    let newer = SystemAlert {
        message: "m".into(),
        severity: 2,
        error_code_enum: 300,
        source_component: "w".into(),
        ..Default::default()
    };
    let specified = "must be a known value other than unspecified";
    alert(newer.clone(), "");
    alert(SystemAlert { severity: 0, ..newer.clone() }, &format!("alert.severity {specified}"));
    alert(SystemAlert { severity: 5, ..newer.clone() }, &format!("alert.severity {specified}"));
    alert(SystemAlert { error_code_enum: 0, ..newer.clone() }, &format!("alert.error_code_enum {specified}"));
    alert(SystemAlert { error_code_enum: 1, ..newer.clone() }, &format!("alert.error_code_enum {specified}"));
    let wrong = "alert.source_component must equal sender_id";
    alert(SystemAlert { source_component: "v".into(), ..newer }, wrong);
    alert(SystemAlert { severity: 2, ..older }, &format!("alert.error_code_enum {specified}"));
}
