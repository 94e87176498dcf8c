//! Who speaks in a packet, and whether they may: a worker with a credential of its own speaks for itself, about jobs
//! that its grant covers. These are the rules for every packet of a worker, whichever way it came.
//!
//! What a worker has signed, or sent with a session that it got for a signature, is its own, and counts more than the
//! connection that it came through: over a NATS server there is no other way to know.

use super::{Intake, Problem, key_of};
use crate::access::Signer;
use crate::observe::Trouble;
use crate::settings::SignatureMode;
use reveille_bus::{Message, MessageOrigin};
use reveille_core::fleet::WorkerCredential;
use reveille_core::id::{JobId, TenantId, WorkerId};
use reveille_core::placement::ClaimRefused;
use reveille_core::time::Millis;
use reveille_wire::cap::BusPacket;
use reveille_wire::{packet, sign};
use std::sync::Arc;

/// How old, or how far ahead, what a worker says of itself may be once it is signed: somebody may send it again.
pub(super) const SKEW_MS: i64 = 60_000;

impl From<ClaimRefused> for Problem {
    fn from(refused: ClaimRefused) -> Self {
        Self::Refused(refused.to_string())
    }
}

/// What a packet says of itself, beside its payload.
pub(super) struct Envelope<'m> {
    pub message: &'m Message,
    pub sender: &'m str,
    /// Of a session.
    pub token: &'m str,
    pub created_at: Option<Millis>,
}

impl<'m> Envelope<'m> {
    pub fn of(packet: &'m BusPacket, message: &'m Message) -> Self {
        Self {
            message,
            sender: &packet.sender_id,
            token: &packet.auth_token,
            created_at: packet.created_at.as_ref().map(packet::millis),
        }
    }

    pub fn is_fresh(&self, now: Millis) -> bool {
        self.created_at.is_some_and(|at| (now.0 - at.0).abs() <= SKEW_MS)
    }
}

/// How new a packet has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recency {
    /// How things are now. Said later it is not true, so a recording proves nothing.
    Now,
    /// What became of a job, which the bus may keep for a while.
    Kept,
}

/// Whoever speaks as a worker.
pub(super) struct Speaker {
    pub tenant: TenantId,
    /// What it may serve; nothing for one that serves everybody.
    pub credential: Option<Arc<WorkerCredential>>,
    /// Whether anybody knows whose worker it is.
    pub has_key: bool,
}

impl Intake {
    /// Who speaks as this worker. The server needs no proof of what it says itself.
    pub(super) fn speaker(
        &self,
        worker: &WorkerId,
        envelope: &Envelope<'_>,
        recency: Recency,
    ) -> Result<Speaker, Problem> {
        let origin = &envelope.message.origin;
        if self.signatures() != SignatureMode::Off && *origin != MessageOrigin::Ourselves {
            match self.signer(worker, envelope, recency) {
                Ok(signer) => return self.signing_speaker(worker, signer, origin),
                Err(why) => self.unproven(worker, envelope, &why)?,
            }
        }
        Ok(Speaker {
            tenant: self.tenant_of(origin),
            credential: self.credential_of(origin)?,
            has_key: key_of(origin).is_some(),
        })
    }

    /// A worker's key at a door narrows what the worker's signature allows; every other connection only carries it.
    fn signing_speaker(
        &self,
        worker: &WorkerId,
        signer: Signer,
        origin: &MessageOrigin,
    ) -> Result<Speaker, Problem> {
        self.access.note_signed(&signer);
        let of_connection = self.credential_of(origin)?;
        if of_connection.is_some() && self.tenant_of(origin) != signer.tenant {
            return Err(Problem::Refused(format!("worker {worker}: its two keys are of two tenants")));
        }
        Ok(Speaker { tenant: signer.tenant, credential: of_connection.or(signer.credential), has_key: true })
    }

    /// The key that proves a packet to be this worker's.
    fn signer(&self, worker: &WorkerId, envelope: &Envelope<'_>, recency: Recency) -> Result<Signer, String> {
        if envelope.sender != worker.as_str() {
            return Err("its sender_id is another".to_owned());
        }
        if recency == Recency::Now && !envelope.is_fresh(self.runtime.now()) {
            return Err("its created_at is not of this minute".to_owned());
        }
        if let Some(signer) = self.access.resume_worker_session(envelope.token, worker) {
            return Ok(signer);
        }
        let mut why = "no public key of this worker is registered".to_owned();
        for signer in self.access.signers(worker) {
            match sign::verify(&envelope.message.payload, &signer.verifying) {
                Ok(()) => return Ok(signer),
                Err(bad) => why = bad.to_string(),
            }
        }
        Err(why)
    }

    /// What becomes of a packet that is not proven to be the worker's own.
    fn unproven(&self, worker: &WorkerId, envelope: &Envelope<'_>, why: &str) -> Result<(), Problem> {
        let mode = self.signatures();
        self.observe.metrics().unproven(mode.as_str());
        if mode == SignatureMode::Require {
            return Err(Problem::Refused(format!("worker {worker}: signed packets are required: {why}")));
        }
        self.observe.log(
            Trouble::Packets,
            "packet is not signed by its worker",
            &envelope.message.subject,
            &why,
        );
        Ok(())
    }

    fn signatures(&self) -> SignatureMode {
        self.runtime.settings().signatures
    }

    /// What a sender may serve as a worker by its connection; nothing for one that serves everybody.
    fn credential_of(&self, origin: &MessageOrigin) -> Result<Option<Arc<WorkerCredential>>, Problem> {
        let MessageOrigin::Client(sender) = origin else { return Ok(None) };
        match sender.key.as_ref().and_then(|key| self.access.worker_credential(key)) {
            Some(credential) => Ok(Some(credential)),
            None => Err(Problem::Refused("this credential is not a worker's".to_owned())),
        }
    }

    /// Whether this speaker may say what became of a job at that worker.
    pub(super) async fn check_report(
        &self,
        worker: &WorkerId,
        job: &JobId,
        speaker: &Speaker,
    ) -> Result<(), Problem> {
        self.fleet.may_report(worker, speaker.credential.as_ref())?;
        let Some(credential) = &speaker.credential else { return Ok(()) };
        let known = self.jobs.job(job).await.map_err(|error| Problem::NotNow(error.to_string()))?;
        match known {
            Some(job) if credential.grant.serves(&job.request.tenant, &job.request.topic) => Ok(()),
            _ => Err(Problem::Refused(format!("job {job}: there is no such job"))),
        }
    }
}
