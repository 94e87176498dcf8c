//! A good packet of each step, then each rule broken alone.

use bytes::Bytes;
use prost_types::Timestamp;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{
    BusPacket, Handshake, WorkerHandshakeAuthenticate, WorkerHandshakeChallenge,
    WorkerHandshakeChallengeRequest, WorkerHandshakeResult,
};
use reveille_wire::packet::{BadPacket, decode, encode, envelope, timestamp};
use reveille_wire::validate::check;
use reveille_wire::validate::trust::{NONCE_LEN, SESSION_TOKEN_LEN_MAX, TRUST_PACKET_LEN_MAX};

const NOW: Millis = Millis(1_700_000_000_000);

fn good_request() -> WorkerHandshakeChallengeRequest {
    WorkerHandshakeChallengeRequest {
        request_id: "r".into(),
        trace_id: "t".into(),
        worker_id: "w".into(),
        proof_key_id: "k".into(),
        proof_algorithm: 1,
        audience: "cordum-scheduler".into(),
        purpose: 1,
        client_nonce: Bytes::from_static(&[1; NONCE_LEN]),
        protocol_version: 1,
        sdk_version: "sdk".into(),
    }
}

fn good_challenge() -> WorkerHandshakeChallenge {
    WorkerHandshakeChallenge {
        request_id: "r".into(),
        challenge_id: "c".into(),
        trace_id: "t".into(),
        worker_id: "w".into(),
        agent_id: "a".into(),
        tenant_id: "default".into(),
        proof_key_id: "k".into(),
        proof_algorithm: 1,
        server_key_id: "s".into(),
        audience: "cordum-scheduler".into(),
        purpose: 1,
        client_nonce: Bytes::from_static(&[1; NONCE_LEN]),
        server_nonce: Bytes::from_static(&[2; NONCE_LEN]),
        protocol_version: 1,
        sdk_version: "sdk".into(),
        issued_at: Some(timestamp(NOW)),
        expires_at: Some(timestamp(NOW + 60_000)),
    }
}

fn good_answer() -> WorkerHandshakeAuthenticate {
    let handshake = Handshake {
        component_id: "w".into(),
        role: 3,
        supported_versions: vec![1],
        capabilities: [("job.echo".to_owned(), true)].into(),
        sdk_version: "sdk".into(),
        ready_topics: vec!["job.echo".into()],
        ..Default::default()
    };
    WorkerHandshakeAuthenticate { challenge: Some(good_challenge()), capability_handshake: Some(handshake) }
}

fn good_result() -> WorkerHandshakeResult {
    WorkerHandshakeResult {
        challenge: Some(good_challenge()),
        accepted: true,
        rejection_reason: 0,
        token_expires_at: Some(timestamp(NOW + 3_600_000)),
        issued_at: Some(timestamp(NOW)),
    }
}

fn packet(payload: Payload, token: &str) -> BusPacket {
    BusPacket {
        signature: Bytes::from_static(b"s"),
        auth_token: token.into(),
        ..envelope("w", "t", NOW, payload)
    }
}

fn said(packet: &BusPacket) -> String {
    check(packet).map_or_else(|broken| broken.to_string(), |()| String::new())
}

fn request(change: impl FnOnce(&mut WorkerHandshakeChallengeRequest), expected: &str) {
    let mut request = good_request();
    change(&mut request);
    assert_eq!(said(&packet(Payload::WorkerHandshakeChallengeRequest(request), "")), expected);
}

fn challenge(change: impl FnOnce(&mut WorkerHandshakeChallenge), expected: &str) {
    let mut challenge = good_challenge();
    change(&mut challenge);
    assert_eq!(said(&packet(Payload::WorkerHandshakeChallenge(challenge), "")), expected);
}

fn capability(change: impl FnOnce(&mut Handshake), expected: &str) {
    let mut answer = good_answer();
    change(answer.capability_handshake.as_mut().unwrap());
    assert_eq!(said(&packet(Payload::WorkerHandshakeAuthenticate(answer), "")), expected);
}

fn result(change: impl FnOnce(&mut WorkerHandshakeResult), token: &str, expected: &str) {
    let mut result = good_result();
    change(&mut result);
    assert_eq!(said(&packet(Payload::WorkerHandshakeResult(result), token)), expected);
}

#[test]
fn a_challenge_request_agrees_with_its_envelope() {
    request(|_| (), "");
    request(|r| r.request_id = " \u{1f}".into(), "challenge_request.request_id must not be empty");
    request(|r| r.trace_id = "u".into(), "challenge_request.trace_id must equal the envelope's trace_id");
    request(|r| r.worker_id = "v".into(), "challenge_request.worker_id must equal sender_id");
    request(|r| r.protocol_version = 2, "challenge_request.protocol_version must be 1");
    request(|r| r.purpose = 3, "challenge_request.purpose must be issue or renew");
    request(|r| r.proof_algorithm = 0, "challenge_request.proof_algorithm must be ECDSA P-256");
    request(|r| r.client_nonce.truncate(31), "challenge_request.client_nonce must have 32 bytes");
}

#[test]
fn every_step_is_signed_and_only_some_carry_a_token() {
    let mut unsigned = packet(Payload::WorkerHandshakeChallengeRequest(good_request()), "");
    unsigned.signature.clear();
    assert_eq!(said(&unsigned), "signature must be present on a trust handshake");
    let request = packet(Payload::WorkerHandshakeChallengeRequest(good_request()), "x");
    assert_eq!(said(&request), "auth_token must not be on a challenge request");
    let challenge = packet(Payload::WorkerHandshakeChallenge(good_challenge()), "x");
    assert_eq!(said(&challenge), "auth_token must not be on a challenge");
    let answer = packet(Payload::WorkerHandshakeAuthenticate(good_answer()), "x");
    assert_eq!(said(&answer), "auth_token must not be on a first authentication");
}

#[test]
fn a_challenge_is_complete_and_short_lived() {
    challenge(|_| (), "");
    challenge(|c| c.tenant_id.clear(), "challenge.tenant_id must not be empty");
    challenge(|c| c.server_nonce.clear(), "challenge.server_nonce must have 32 bytes");
    let late = "challenge.expires_at must be within a minute after issued_at";
    challenge(|c| c.expires_at = Some(timestamp(NOW + 60_001)), late);
    challenge(|c| c.expires_at = Some(timestamp(NOW)), late);
    challenge(|c| c.expires_at = None, late);
    challenge(|c| c.expires_at.as_mut().unwrap().nanos = 999, "");
    let bad = Timestamp { seconds: i64::MAX, nanos: 0 };
    challenge(|c| c.issued_at = Some(bad), "challenge.issued_at must be a valid timestamp");
    let bad = Timestamp { seconds: 0, nanos: -1 };
    challenge(|c| c.issued_at = Some(bad), "challenge.issued_at must be a valid timestamp");
}

#[test]
fn an_answer_binds_what_the_worker_can_do() {
    capability(|_| (), "");
    capability(
        |h| h.component_id = "v".into(),
        "capability_handshake.component_id must equal the challenge's",
    );
    capability(|h| h.role = 2, "capability_handshake.role must be worker");
    capability(|h| h.supported_versions.push(2), "capability_handshake.supported_versions must be exactly 1");
    let names = "capability_handshake.capabilities must be valid names that are on";
    for name in ["", "Job", "1job", "job echo", &"j".repeat(65)] {
        capability(|h| h.capabilities = [(name.to_owned(), true)].into(), names);
    }
    capability(|h| h.capabilities = [("job".to_owned(), false)].into(), names);
    let topics = |topics: &[&str]| topics.iter().map(|&topic| topic.to_owned()).collect();
    capability(|h| h.ready_topics = topics(&[" "]), "capability_handshake.ready_topics must not be empty");
    capability(
        |h| h.ready_topics = topics(&["a", "a"]),
        "capability_handshake.ready_topics must not name a topic twice",
    );
}

#[test]
fn a_renewal_shows_the_current_token() {
    let mut answer = good_answer();
    answer.challenge.as_mut().unwrap().purpose = 2;
    let payload = Payload::WorkerHandshakeAuthenticate(answer);
    assert_eq!(said(&packet(payload.clone(), "token")), "");
    for token in ["", "to ken", "tokén", &"t".repeat(SESSION_TOKEN_LEN_MAX + 1)] {
        assert_eq!(said(&packet(payload.clone(), token)), "auth_token must be the current session's");
    }
}

#[test]
fn a_result_is_a_token_or_a_reason() {
    result(|_| (), "token", "");
    result(|_| (), "", "auth_token must be on an accepted result");
    result(|r| r.token_expires_at = None, "token", "result.token_expires_at must be present");
    result(
        |r| r.token_expires_at = Some(timestamp(NOW)),
        "token",
        "result.token_expires_at must be after issued_at",
    );
    result(|r| r.rejection_reason = 1, "token", "result.rejection_reason must not be on an accepted result");

    let reject = |r: &mut WorkerHandshakeResult, reason| {
        (r.accepted, r.rejection_reason, r.token_expires_at) = (false, reason, None);
    };
    result(|r| reject(r, 9), "", "");
    result(|r| reject(r, 9), "token", "auth_token must not be on a rejection");
    result(|r| reject(r, 0), "", "result.rejection_reason must be a known reason");
    result(|r| reject(r, 10), "", "result.rejection_reason must be a known reason");
    result(
        |r| (r.accepted, r.rejection_reason) = (false, 9),
        "",
        "result.token_expires_at must not be on a rejection",
    );
}

#[test]
fn a_step_in_bytes_is_short_and_has_no_unknown_fields() {
    let good = packet(Payload::WorkerHandshakeChallengeRequest(good_request()), "");
    let bytes = encode(&good);
    assert_eq!(decode(&bytes).as_ref(), Ok(&good));
    let error = decode(&[&bytes[..], b"\xfa\x01\x01x"].concat()).unwrap_err();
    assert_eq!(error.to_string(), "unknown fields must not be in a trust handshake");
    let long = BusPacket { signature: vec![0; TRUST_PACKET_LEN_MAX].into(), ..good };
    assert!(matches!(decode(&encode(&long)), Err(BadPacket::TooLong { len_max: TRUST_PACKET_LEN_MAX, .. })));
}
