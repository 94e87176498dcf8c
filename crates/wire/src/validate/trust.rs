//! The rules of the opt-in exchange in which a worker proves who it is.
//!
//! Structure only: fields are present and agree with the envelope and with each other. Signatures, clocks, replayed
//! nonces and whether the keys are known are left to whoever runs the exchange.

use std::collections::BTreeSet;

use prost_types::Timestamp;

use super::{BadField, EMPTY, require};
use crate::cap::bus_packet::Payload;
use crate::cap::{
    BusPacket, ComponentRole, Handshake, WorkerHandshakeAuthenticate, WorkerHandshakeChallenge,
    WorkerHandshakeChallengeRequest, WorkerHandshakeProofAlgorithm, WorkerHandshakePurpose,
    WorkerHandshakeRejectionReason, WorkerHandshakeResult,
};
use crate::packet::PROTOCOL_VERSION;

/// The longest packet of the exchange.
pub const TRUST_PACKET_LEN_MAX: usize = 64 * 1024;
/// The longest session token.
pub const SESSION_TOKEN_LEN_MAX: usize = 16 * 1024;
/// The length of both sides' nonces.
pub const NONCE_LEN: usize = 32;
/// The longest time that a challenge may be valid.
pub const CHALLENGE_LIFETIME_MICROS_MAX: i64 = 60_000_000;
/// The longest name of a capability.
pub const CAPABILITY_LEN_MAX: usize = 64;

/// Year 1 to year 9999, which is all that a timestamp may hold.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

const TIMESTAMP: &str = "must be a valid timestamp";
const P256_ONLY: &str = "must be ECDSA P-256";
const NONCE: &str = "must have 32 bytes";
const PURPOSE: &str = "must be issue or renew";
const NOT_TRACE: &str = "must equal the envelope's trace_id";
const SIGNED: &str = "must be present on a trust handshake";

/// Whether a packet belongs to the exchange.
pub(crate) fn is_trust_phase(packet: &BusPacket) -> bool {
    matches!(
        packet.payload,
        Some(
            Payload::WorkerHandshakeChallengeRequest(_)
                | Payload::WorkerHandshakeChallenge(_)
                | Payload::WorkerHandshakeAuthenticate(_)
                | Payload::WorkerHandshakeResult(_)
        )
    )
}

pub(super) fn challenge_request(
    packet: &BusPacket,
    request: &WorkerHandshakeChallengeRequest,
) -> Result<(), BadField> {
    envelope(packet)?;
    not_blank(&[
        ("challenge_request.request_id", &request.request_id),
        ("challenge_request.trace_id", &request.trace_id),
        ("challenge_request.worker_id", &request.worker_id),
        ("challenge_request.proof_key_id", &request.proof_key_id),
        ("challenge_request.audience", &request.audience),
        ("challenge_request.sdk_version", &request.sdk_version),
    ])?;
    require(request.trace_id == packet.trace_id, "challenge_request.trace_id", NOT_TRACE)?;
    require(request.worker_id == packet.sender_id, "challenge_request.worker_id", super::NOT_SENDER)?;
    version(request.protocol_version, "challenge_request.protocol_version")?;
    require(is_purpose(request.purpose), "challenge_request.purpose", PURPOSE)?;
    require(is_p256(request.proof_algorithm), "challenge_request.proof_algorithm", P256_ONLY)?;
    require(request.client_nonce.len() == NONCE_LEN, "challenge_request.client_nonce", NONCE)?;
    no_token(packet, "must not be on a challenge request")
}

pub(super) fn challenge(packet: &BusPacket, challenge: &WorkerHandshakeChallenge) -> Result<(), BadField> {
    envelope(packet)?;
    no_token(packet, "must not be on a challenge")?;
    echoed_challenge(packet, challenge)
}

pub(super) fn authenticate(packet: &BusPacket, answer: &WorkerHandshakeAuthenticate) -> Result<(), BadField> {
    envelope(packet)?;
    let missing = |field| BadField { field, wrong: "must be present" };
    let challenge = answer.challenge.as_ref().ok_or(missing("authenticate.challenge"))?;
    let handshake =
        answer.capability_handshake.as_ref().ok_or(missing("authenticate.capability_handshake"))?;
    echoed_challenge(packet, challenge)?;
    require(challenge.worker_id == packet.sender_id, "challenge.worker_id", super::NOT_SENDER)?;
    capability(handshake, challenge)?;
    if challenge.purpose == WorkerHandshakePurpose::Issue as i32 {
        no_token(packet, "must not be on a first authentication")
    } else {
        require(is_token(&packet.auth_token), "auth_token", "must be the current session's")
    }
}

pub(super) fn result(packet: &BusPacket, result: &WorkerHandshakeResult) -> Result<(), BadField> {
    envelope(packet)?;
    let missing = BadField { field: "result.challenge", wrong: "must be present" };
    echoed_challenge(packet, result.challenge.as_ref().ok_or(missing)?)?;
    let issued = moment(result.issued_at.as_ref(), "result.issued_at")?;
    if result.accepted { accepted(packet, result, issued) } else { rejected(packet, result) }
}

fn accepted(packet: &BusPacket, result: &WorkerHandshakeResult, issued_micros: i64) -> Result<(), BadField> {
    require(is_token(&packet.auth_token), "auth_token", "must be on an accepted result")?;
    require(result.token_expires_at.is_some(), "result.token_expires_at", "must be present")?;
    let expires = moment(result.token_expires_at.as_ref(), "result.token_expires_at")?;
    require(expires > issued_micros, "result.token_expires_at", "must be after issued_at")?;
    require(result.rejection_reason == 0, "result.rejection_reason", "must not be on an accepted result")
}

fn rejected(packet: &BusPacket, result: &WorkerHandshakeResult) -> Result<(), BadField> {
    let reason = result.rejection_reason;
    let known = reason != 0 && WorkerHandshakeRejectionReason::is_valid(reason);
    no_token(packet, "must not be on a rejection")?;
    require(known, "result.rejection_reason", "must be a known reason")?;
    require(result.token_expires_at.is_none(), "result.token_expires_at", "must not be on a rejection")
}

/// What every packet of the exchange has beyond an ordinary envelope.
fn envelope(packet: &BusPacket) -> Result<(), BadField> {
    moment(packet.created_at.as_ref(), "created_at")?;
    require(!packet.signature.is_empty(), "signature", SIGNED)
}

/// The challenge, which the later steps repeat unchanged.
fn echoed_challenge(packet: &BusPacket, challenge: &WorkerHandshakeChallenge) -> Result<(), BadField> {
    not_blank(&[
        ("challenge.request_id", &challenge.request_id),
        ("challenge.challenge_id", &challenge.challenge_id),
        ("challenge.trace_id", &challenge.trace_id),
        ("challenge.worker_id", &challenge.worker_id),
        ("challenge.agent_id", &challenge.agent_id),
        ("challenge.tenant_id", &challenge.tenant_id),
        ("challenge.proof_key_id", &challenge.proof_key_id),
        ("challenge.server_key_id", &challenge.server_key_id),
        ("challenge.audience", &challenge.audience),
        ("challenge.sdk_version", &challenge.sdk_version),
    ])?;
    require(challenge.trace_id == packet.trace_id, "challenge.trace_id", NOT_TRACE)?;
    version(challenge.protocol_version, "challenge.protocol_version")?;
    require(is_purpose(challenge.purpose), "challenge.purpose", PURPOSE)?;
    require(is_p256(challenge.proof_algorithm), "challenge.proof_algorithm", P256_ONLY)?;
    require(challenge.client_nonce.len() == NONCE_LEN, "challenge.client_nonce", NONCE)?;
    require(challenge.server_nonce.len() == NONCE_LEN, "challenge.server_nonce", NONCE)?;
    let issued = moment(challenge.issued_at.as_ref(), "challenge.issued_at")?;
    let expires = moment(challenge.expires_at.as_ref(), "challenge.expires_at")?;
    let in_time = expires > issued && expires <= issued + CHALLENGE_LIFETIME_MICROS_MAX;
    require(in_time, "challenge.expires_at", "must be within a minute after issued_at")
}

/// What the worker says it can do, bound to the challenge it answers.
fn capability(handshake: &Handshake, challenge: &WorkerHandshakeChallenge) -> Result<(), BadField> {
    const NOT_CHALLENGED: &str = "must equal the challenge's";
    let same_worker = handshake.component_id == challenge.worker_id;
    require(same_worker, "capability_handshake.component_id", NOT_CHALLENGED)?;
    let is_worker = handshake.role == ComponentRole::Worker as i32;
    require(is_worker, "capability_handshake.role", "must be worker")?;
    let same_sdk = handshake.sdk_version == challenge.sdk_version;
    require(same_sdk, "capability_handshake.sdk_version", NOT_CHALLENGED)?;
    let versions = handshake.supported_versions == [PROTOCOL_VERSION];
    require(versions, "capability_handshake.supported_versions", "must be exactly 1")?;
    let capabilities = handshake.capabilities.iter().all(|(name, on)| *on && is_capability(name));
    require(capabilities, "capability_handshake.capabilities", "must be valid names that are on")?;
    let blank = handshake.ready_topics.iter().any(|topic| is_blank(topic));
    require(!blank, "capability_handshake.ready_topics", EMPTY)?;
    let distinct: BTreeSet<_> = handshake.ready_topics.iter().collect();
    let once = distinct.len() == handshake.ready_topics.len();
    require(once, "capability_handshake.ready_topics", "must not name a topic twice")
}

fn not_blank(fields: &[(&'static str, &String)]) -> Result<(), BadField> {
    fields.iter().try_for_each(|(field, text)| require(!is_blank(text), field, EMPTY))
}

/// Nothing but whitespace, in Python's sense: it counts four separators that Rust does not.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

fn no_token(packet: &BusPacket, wrong: &'static str) -> Result<(), BadField> {
    require(packet.auth_token.is_empty(), "auth_token", wrong)
}

fn version(version: i32, field: &'static str) -> Result<(), BadField> {
    require(version == PROTOCOL_VERSION, field, "must be 1")
}

/// A timestamp in microseconds, the precision at which the SDK compares. An absent one is the epoch, as in protobuf.
fn moment(timestamp: Option<&Timestamp>, field: &'static str) -> Result<i64, BadField> {
    let Timestamp { seconds, nanos } = timestamp.copied().unwrap_or_default();
    let valid = TIMESTAMP_SECONDS.contains(&seconds) && (0..1_000_000_000).contains(&nanos);
    require(valid, field, TIMESTAMP)?;
    Ok(seconds * 1_000_000 + i64::from(nanos / 1000))
}

fn is_purpose(purpose: i32) -> bool {
    purpose != 0 && WorkerHandshakePurpose::is_valid(purpose)
}

fn is_p256(algorithm: i32) -> bool {
    algorithm == WorkerHandshakeProofAlgorithm::EcdsaP256Sha256 as i32
}

fn is_token(token: &str) -> bool {
    (1..=SESSION_TOKEN_LEN_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_capability(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    name.len() <= CAPABILITY_LEN_MAX
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(rest)
}
