//! The trust handshake: a worker proves that it has the private half of a registered key, and gets a session.
//!
//! It asks for a challenge, signs it together with what it can do, and is answered. Any server may be asked for either:
//! the challenge's nonce is an HMAC over the rest of it, so whichever server gets it back knows that one of us made it.
//! That it is answered once is what the store is asked for.

use super::Intake;
use super::speaker::{Envelope, SKEW_MS};
use crate::access::{Signer, packet_key_id};
use crate::observe::Trouble;
use bytes::Bytes;
use hmac::Mac;
use reveille_bus::Message;
use reveille_core::id::WorkerId;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{
    BusPacket, WorkerHandshakeChallenge, WorkerHandshakeChallengeRequest, WorkerHandshakePurpose,
    WorkerHandshakeRejectionReason as Rejection, WorkerHandshakeResult,
};
use reveille_wire::convert::SENDER;
use reveille_wire::key::SigningKey;
use reveille_wire::{packet, sign};
use std::time::Duration;

/// How long a worker has for its answer.
const CHALLENGE_MS: i64 = 30_000;
/// How long it may take until a key that was registered at another server is known here.
const KEYS_FOLLOW: Duration = Duration::from_secs(2);
/// Challenges that were answered are remembered until they would be refused for their age.
const ANSWERED_MS: i64 = CHALLENGE_MS + SKEW_MS;
impl Intake {
    /// Answers either step of the exchange. What cannot be answered in its own terms is answered as any other packet.
    pub(super) async fn answer_trust(&self, message: Message) {
        let Some(reply) = message.reply.clone() else { return };
        let answer = match packet::decode(&message.payload) {
            Ok(packet) => self.trust_step(&packet, &message).await,
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|why| {
            self.observe.metrics().rejected();
            self.observe.log(Trouble::Packets, "worker not trusted", &message.subject, &why);
            serde_json::json!({ "ok": false, "error": why }).to_string().into()
        });
        let _ = self.bus.publish(Message::new(reply, answer)).await;
    }

    async fn trust_step(&self, packet: &BusPacket, message: &Message) -> Result<Bytes, String> {
        let Some(key) = &self.runtime.settings().packet_key.0 else {
            return Err("signatures are off".to_owned());
        };
        let payload = match &packet.payload {
            Some(payload @ Payload::WorkerHandshakeChallengeRequest(request)) => {
                let (id, key_id) = (&request.worker_id, &request.proof_key_id);
                let signer = self.trust_signer(id, key_id, payload, message).await;
                let signer =
                    signer.ok_or_else(|| format!("worker {id}: no such key, or it did not sign this"))?;
                if !Envelope::of(packet, message).is_fresh(self.runtime.now()) {
                    return Err(format!("worker {id}: its clock is not ours"));
                }
                if request.audience != SENDER {
                    return Err(format!("worker {id}: its audience is not {SENDER}"));
                }
                Payload::WorkerHandshakeChallenge(self.challenge(request, &signer, key)?)
            }
            Some(Payload::WorkerHandshakeAuthenticate(answer)) => {
                let challenge = answer.challenge.clone().ok_or("it has no challenge")?;
                return Ok(self.trust_result(packet, message, challenge, key).await);
            }
            _ => return Err("the payload does not belong on this subject".to_owned()),
        };
        Ok(self.signed(&packet.trace_id, "", payload, key))
    }

    fn challenge(
        &self,
        request: &WorkerHandshakeChallengeRequest,
        signer: &Signer,
        key: &SigningKey,
    ) -> Result<WorkerHandshakeChallenge, String> {
        let now = self.runtime.now();
        let mut challenge = WorkerHandshakeChallenge {
            request_id: request.request_id.clone(),
            challenge_id: format!("{:016x}{:016x}", self.runtime.random(), self.runtime.random()),
            trace_id: request.trace_id.clone(),
            worker_id: request.worker_id.clone(),
            agent_id: signer.public.agent.clone(),
            tenant_id: signer.tenant.to_string(),
            proof_key_id: request.proof_key_id.clone(),
            server_key_id: packet_key_id(key.verifying_key()),
            proof_algorithm: request.proof_algorithm,
            audience: request.audience.clone(),
            purpose: request.purpose,
            client_nonce: request.client_nonce.clone(),
            server_nonce: Bytes::new(),
            protocol_version: request.protocol_version,
            sdk_version: request.sdk_version.clone(),
            issued_at: Some(packet::timestamp(now)),
            expires_at: Some(packet::timestamp(now + CHALLENGE_MS)),
        };
        let mac = self.access.worker_mac("challenge", &[&packet::without_nonce(&challenge)]);
        challenge.server_nonce = mac.ok_or("no secret")?.finalize().into_bytes().to_vec().into();
        Ok(challenge)
    }

    async fn trust_result(
        &self,
        packet: &BusPacket,
        message: &Message,
        challenge: WorkerHandshakeChallenge,
        key: &SigningKey,
    ) -> Bytes {
        let now = self.runtime.now();
        let admitted = self.admit(packet, message, &challenge).await;
        let session = admitted
            .and_then(|signer| self.access.begin_worker_session(&signer).ok_or(Rejection::InternalError));
        let mut result = WorkerHandshakeResult {
            challenge: Some(challenge),
            issued_at: Some(packet::timestamp(now)),
            ..WorkerHandshakeResult::default()
        };
        let token = match session {
            Ok((token, end)) => {
                (result.accepted, result.token_expires_at) = (true, Some(packet::timestamp(end)));
                token
            }
            Err(reason) => {
                self.observe.metrics().rejected();
                let words = reason.as_str_name();
                self.observe.log(Trouble::Packets, "worker not trusted", &packet.sender_id, &words);
                result.rejection_reason = reason.into();
                String::new()
            }
        };
        self.signed(&packet.trace_id, &token, Payload::WorkerHandshakeResult(result), key)
    }

    /// Whether this is the answer to a challenge of ours, the first, and in time.
    async fn admit(
        &self,
        packet: &BusPacket,
        message: &Message,
        challenge: &WorkerHandshakeChallenge,
    ) -> Result<Signer, Rejection> {
        let mac = self.access.worker_mac("challenge", &[&packet::without_nonce(challenge)]);
        let is_ours = mac.is_some_and(|mac| mac.verify_slice(&challenge.server_nonce).is_ok());
        let payload = packet.payload.as_ref().filter(|_| is_ours).ok_or(Rejection::AuthenticationFailed)?;
        let signer = self
            .trust_signer(&challenge.worker_id, &challenge.proof_key_id, payload, message)
            .await
            .ok_or(Rejection::AuthenticationFailed)?;
        let now = self.runtime.now();
        if !Envelope::of(packet, message).is_fresh(now) {
            return Err(Rejection::ClockSkew);
        }
        let end = challenge.expires_at.as_ref().map_or(Millis(0), packet::millis);
        if now >= end {
            return Err(Rejection::ChallengeExpired);
        }
        if challenge.purpose == WorkerHandshakePurpose::Renew as i32
            && self.access.resume_worker_session(&packet.auth_token, &signer.public.worker).is_none()
        {
            return Err(Rejection::SessionInvalid);
        }
        match self.first_answer(challenge).await {
            Ok(true) => {
                self.access.note_signed(&signer);
                Ok(signer)
            }
            Ok(false) => Err(Rejection::ReplayDetected),
            Err(_) => Err(Rejection::InternalError),
        }
    }

    /// Nobody gives the lock back; it lapses when the challenge is too old in any case.
    async fn first_answer(&self, challenge: &WorkerHandshakeChallenge) -> Result<bool, StoreError> {
        let name = format!("reveille:challenge:{}", challenge.challenge_id);
        self.store.lock(&name, ANSWERED_MS).await.map(|lock| lock.is_some())
    }

    /// The key that this worker calls so, if it signed this. A client that is refused does not ask again, so one whose
    /// key may be on its way from another server is kept waiting.
    async fn trust_signer(
        &self,
        worker: &str,
        key_id: &str,
        payload: &Payload,
        message: &Message,
    ) -> Option<Signer> {
        let known = self.known_signer(worker, key_id, payload, message);
        if known.is_some() || !self.store.is_shared() {
            return known;
        }
        tokio::time::sleep(KEYS_FOLLOW).await;
        self.known_signer(worker, key_id, payload, message)
    }

    fn known_signer(
        &self,
        worker: &str,
        key_id: &str,
        payload: &Payload,
        message: &Message,
    ) -> Option<Signer> {
        let signers = self.access.signers(&WorkerId::parse(worker).ok()?);
        let mut named = signers.into_iter().filter(|signer| signer.public.proof_key_id == key_id);
        named.find(|signer| sign::verify_trust(&message.payload, payload, &signer.verifying).is_ok())
    }

    fn signed(&self, trace_id: &str, token: &str, payload: Payload, key: &SigningKey) -> Bytes {
        let mut packet = packet::envelope(SENDER, trace_id, self.runtime.now(), payload);
        token.clone_into(&mut packet.auth_token);
        sign::sign_trust(&packet, key)
    }
}
