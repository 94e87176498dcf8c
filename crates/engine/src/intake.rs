//! Packets from the bus, each to the method that HTTP would call for the same thing.

mod dead_packets;
mod speaker;
mod trust;

use crate::access::Access;
use crate::fleet::Fleet;
use crate::jobs::{DriveError, Jobs, Submission, SubmitError, Submitted, Submitter};
use crate::observe::{Observe, Trouble, context_of};
use crate::runtime::{RETRY_PAUSE, Runtime};
use crate::settings::SignatureMode;
use dead_packets::{DELIVERIES_MAX, GIVEN_BACK_MAX};
use reveille_bus::{Ack, Bus, BusError, Delivery, Message, MessageKey, MessageOrigin, Subscription};
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::identity::Identity;
use reveille_core::job::Job;
use reveille_core::life;
use reveille_store::{Receipt, Store};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{BusPacket, JobCancel, JobProgress, JobRequest, JobResult};
use reveille_wire::convert::{self, Unusable};
use reveille_wire::{packet, subject};
use speaker::{Envelope, Recency, Speaker};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Packets handled at once; the rest wait on the bus.
const AT_ONCE_MAX: usize = 2_048;

/// Steps of the trust handshake at once: some wait, and none may hold up results.
const TRUST_AT_ONCE_MAX: usize = 256;

/// Times that a kept packet nobody can read is looked at again; the next time is the last.
const UNREADABLE_MAX: u64 = 3;
const UNREADABLE_PAUSE: Duration = Duration::from_secs(5);

/// How long a kept packet stays away that cannot be dealt with now: longer each time.
const LATER_MIN: Duration = Duration::from_secs(2);
const LATER_MAX: Duration = Duration::from_mins(1);

/// Why a packet was not dealt with.
enum Problem {
    /// Nobody here can read it, and perhaps one who is newer can.
    Unreadable(String),
    /// Nobody can ever do what it asks for.
    Hopeless(String),
    /// It was understood, and the answer is no.
    Refused(String),
    /// It may go well later, and the bus keeps it until then.
    NotNow(String),
}

/// Reads the bus.
#[derive(Clone)]
pub struct Intake {
    pub runtime: Runtime,
    pub observe: Observe,
    pub access: Access,
    pub jobs: Jobs,
    pub fleet: Fleet,
    pub store: Arc<dyn Store>,
    pub bus: Arc<dyn Bus>,
}

impl Intake {
    /// Subscribes to everything that concerns us and starts to read.
    pub async fn listen(&self) -> Result<(), BusError> {
        // Jobs that wait to be taken in must not hold up the results that make room for them.
        let (submits, rest) = (Arc::new(Semaphore::new(AT_ONCE_MAX)), Arc::new(Semaphore::new(AT_ONCE_MAX)));
        let shared = [subject::JOB_SUBMIT, subject::JOB_RESULT, subject::JOB_CANCEL, subject::JOB_PROGRESS];
        for name in shared {
            let subscription = self.bus.subscribe(name, Some(subject::QUEUE_SCHEDULER)).await?;
            let room = if name == subject::JOB_SUBMIT { &submits } else { &rest };
            self.runtime.spawn(self.clone().read_in_parallel(subscription, room.clone()));
        }
        if self.runtime.settings().signatures != SignatureMode::Off {
            let room = Arc::new(Semaphore::new(TRUST_AT_ONCE_MAX));
            for name in [subject::WORKER_CHALLENGE, subject::WORKER_AUTHENTICATE] {
                let subscription = self.bus.subscribe(name, Some(subject::QUEUE_SCHEDULER)).await?;
                self.runtime.spawn(self.clone().read_in_parallel(subscription, room.clone()));
            }
        }
        for name in [subject::HEARTBEAT, subject::HANDSHAKE] {
            let subscription = self.bus.subscribe(name, None).await?;
            self.runtime.spawn(self.clone().read_in_order(subscription));
        }
        Ok(())
    }

    /// Each packet in a task of its own: one that waits for the store holds up no other.
    async fn read_in_parallel(self, mut subscription: Subscription, room: Arc<Semaphore>) {
        while let Some(delivery) = subscription.recv().await {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let intake = self.clone();
            self.runtime.spawn(async move {
                intake.handle(delivery).await;
                drop(permit);
            });
        }
    }

    /// Beats touch memory only, so they are handled where they are read.
    async fn read_in_order(self, mut subscription: Subscription) {
        while let Some(delivery) = subscription.recv().await {
            self.handle(delivery).await;
        }
    }

    /// Says what became of a packet: to the bus once it is committed, and to whoever wants an answer.
    async fn handle(&self, delivery: Delivery) {
        let Delivery { message, ack, from } = delivery;
        if [subject::WORKER_CHALLENGE, subject::WORKER_AUTHENTICATE].contains(&message.subject.as_str()) {
            ack.done();
            return self.answer_trust(message).await;
        }
        let answer = match packet::decode(&message.payload) {
            _ if from.as_ref().is_some_and(|key| key.delivered >= DELIVERIES_MAX) => {
                Err(Problem::Hopeless(format!("it was handed out {DELIVERIES_MAX} times")))
            }
            Ok(packet) => self.act(packet, &message, from.as_ref()).await,
            Err(error) => Err(Problem::Unreadable(error.to_string())),
        };
        if let Err(Problem::Unreadable(problem) | Problem::Hopeless(problem) | Problem::Refused(problem)) =
            &answer
        {
            self.observe.metrics().rejected();
            self.observe.log(Trouble::Packets, "packet refused", &message.subject, problem);
        }
        self.settle_packet(ack, &message, from.as_ref(), &answer).await;
        if let Some(reply) = message.reply {
            let body = match answer {
                Ok(state) => serde_json::json!({ "ok": true, "state": state }),
                Err(problem) => serde_json::json!({ "ok": false, "error": problem.words() }),
            };
            let _ = self.bus.publish(Message::new(reply, body.to_string())).await;
        }
    }

    /// Says what became of it: the job's state, where there is a job.
    async fn act(
        &self,
        mut packet: BusPacket,
        message: &Message,
        from: Option<&MessageKey>,
    ) -> Result<Option<String>, Problem> {
        let payload = packet.payload.take();
        let envelope = Envelope::of(&packet, message);
        let words = |error: Unusable| error.to_string();
        match (message.subject.as_str(), payload) {
            (subject::HEARTBEAT, Some(Payload::Heartbeat(heartbeat))) => {
                let (worker, beat) = convert::beat(heartbeat).map_err(words)?;
                let speaker = self.speaker(&worker, &envelope, Recency::Now)?;
                if let Some(credential) = &speaker.credential
                    && !credential.grant.has_pool(beat.pool.as_ref())
                {
                    return Err(Problem::Refused(format!(
                        "worker {worker}: its key does not have this pool"
                    )));
                }
                self.may_join(&worker, &speaker)?;
                self.fleet.beat(&worker, &speaker.tenant, &beat);
                Ok(None)
            }
            (subject::HANDSHAKE, Some(Payload::Handshake(handshake))) => {
                if let Some(introduction) = convert::introduction(&handshake).map_err(words)? {
                    let speaker = self.speaker(&introduction.worker, &envelope, Recency::Now)?;
                    self.may_join(&introduction.worker, &speaker)?;
                    self.fleet.introduce(&speaker.tenant, introduction);
                }
                Ok(None)
            }
            (subject::JOB_SUBMIT, Some(Payload::JobRequest(job))) => {
                own_input(&job, &message.origin)?;
                self.submit_packet(job, packet.trace_id, message, from).await
            }
            (subject::JOB_RESULT, Some(Payload::JobResult(result))) => {
                self.result_packet(result, &envelope, from).await
            }
            (subject::JOB_PROGRESS, Some(Payload::JobProgress(progress))) => {
                self.progress_packet(progress, &envelope).await
            }
            (subject::JOB_CANCEL, Some(Payload::JobCancel(cancel))) => {
                // Our own broadcast to the workers comes back to us as well.
                if message.origin == MessageOrigin::Ourselves {
                    Ok(None)
                } else {
                    Ok(self.cancel_packet(cancel, &message.origin).await?)
                }
            }
            _ => Err(Problem::Hopeless("the payload does not belong on this subject".to_owned())),
        }
    }

    /// What the bus is told of a packet that it keeps; one that it does not keep is gone either way.
    async fn settle_packet(
        &self,
        ack: Ack,
        message: &Message,
        from: Option<&MessageKey>,
        answer: &Result<Option<String>, Problem>,
    ) {
        let delivered = from.map_or(u64::MAX, |key| key.delivered);
        match answer {
            Ok(_) | Err(Problem::Refused(_)) => ack.done(),
            Err(Problem::Unreadable(_)) if delivered <= UNREADABLE_MAX => ack.later(UNREADABLE_PAUSE),
            Err(Problem::Unreadable(words) | Problem::Hopeless(words)) => {
                self.bury(message, from, ack, words).await;
            }
            Err(Problem::NotNow(_)) => {
                let doublings = u32::try_from(delivered.saturating_sub(1)).unwrap_or(u32::MAX);
                ack.later(LATER_MIN.saturating_mul(2_u32.saturating_pow(doublings)).min(LATER_MAX));
            }
        }
    }

    async fn submit_packet(
        &self,
        job: JobRequest,
        trace_id: String,
        message: &Message,
        from: Option<&MessageKey>,
    ) -> Result<Option<String>, Problem> {
        let tenant = self.tenant_of(&message.origin);
        let mut request = convert::request(job, trace_id, &tenant).map_err(hopeless)?;
        request.submitted_by = key_of(&message.origin);
        request.trace = context_of(message).map(Box::new);
        loop {
            let submission =
                Submission { request: request.clone(), context: None, submitter: Submitter::IsGone };
            match self.jobs.submit_to_answer(submission, from.map(receipt)).await {
                Ok(Submitted::New(job) | Submitted::Existing(job)) => {
                    return Ok(Some(job.state().to_string()));
                }
                Ok(Submitted::Throttled(_)) => return Err(Problem::Refused("throttled".to_owned())),
                Err(SubmitError::Seen) => return Ok(None),
                Err(SubmitError::Draining) if from.is_some() => {
                    return Err(Problem::NotNow(SubmitError::Draining.to_string()));
                }
                Err(error) if error.is_transient() => {
                    self.observe.log(Trouble::Store, "submitted packet waits", &request.id, &error);
                    if from.is_some_and(|key| key.delivered < GIVEN_BACK_MAX) {
                        return Err(Problem::NotNow(error.to_string()));
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error @ SubmitError::Bad(_)) => return Err(hopeless(error)),
                Err(error) => return Err(Problem::Refused(error.to_string())),
            }
        }
    }

    async fn result_packet(
        &self,
        result: JobResult,
        envelope: &Envelope<'_>,
        from: Option<&MessageKey>,
    ) -> Result<Option<String>, Problem> {
        let (id, mut report) = convert::report(result).map_err(hopeless)?;
        let speaker = self.speaker(&report.worker, envelope, Recency::Kept)?;
        self.check_report(&report.worker, &id, &speaker).await?;
        report.trace = context_of(envelope.message).map(|context| context.parent);
        match self.jobs.finish(&id, &report, from.map(receipt).as_ref()).await {
            Err(DriveError::Seen) => Ok(None),
            // It would be lost with its acknowledgement.
            Err(DriveError::Store(error)) if from.is_some() => Err(Problem::NotNow(error.to_string())),
            done => Ok(answer_of(&id.to_string(), done)?),
        }
    }

    async fn progress_packet(
        &self,
        packet: JobProgress,
        envelope: &Envelope<'_>,
    ) -> Result<Option<String>, Problem> {
        let progress = convert::progress(envelope.sender, packet);
        let (id, worker, progress) = progress.map_err(|error| error.to_string())?;
        let speaker = self.speaker(&worker, envelope, Recency::Now)?;
        self.check_report(&worker, &id, &speaker).await?;
        let known = self.fleet.knows(&worker).then(|| worker.clone());
        let decide = |job: &Job, now| life::progress(job, &worker, known.clone(), progress.clone(), now);
        let done = self.jobs.drive_on(&id, decide).await;
        Ok(answer_of(&id.to_string(), done)?)
    }

    async fn cancel_packet(
        &self,
        cancel: JobCancel,
        origin: &MessageOrigin,
    ) -> Result<Option<String>, String> {
        let (id, claim, why) = convert::cancellation(cancel).map_err(|error| error.to_string())?;
        let tenant = self.tenant_of(origin);
        // Who a packet says it is from is a claim; who is connected has shown a key, or needed none.
        let by = key_of(origin).map(|key| self.jobs.identity_of(&key)).unwrap_or_default();
        let by = Identity { claim, ..by };
        match self.jobs.job(&id).await {
            Ok(Some(job)) if job.request.tenant == tenant => {}
            Ok(_) => return Err(format!("job {id}: there is no such job")),
            Err(error) => return Err(error.to_string()),
        }
        answer_of(
            &id.to_string(),
            self.jobs.drive_on(&id, |job, now| life::cancel(job, &by, &why, now)).await,
        )
    }

    /// Takes the worker's name for whoever speaks, within the quota. That is asked of workers whose tenant is known: who
    /// needs no key, or comes over a NATS server and signs nothing, is one of the operator's own.
    fn may_join(&self, worker: &WorkerId, speaker: &Speaker) -> Result<(), Problem> {
        if speaker.has_key {
            let joins = self.fleet.may_join(worker, &speaker.tenant);
            joins.map_err(|over| format!("worker {worker}: {over}"))?;
        }
        Ok(self.fleet.claim(worker, &speaker.tenant, speaker.credential.as_ref())?)
    }

    fn tenant_of(&self, origin: &MessageOrigin) -> TenantId {
        match origin {
            MessageOrigin::Client(sender) | MessageOrigin::Worker(sender) => sender.tenant.clone(),
            MessageOrigin::Ourselves => self.runtime.settings().default_tenant.clone(),
        }
    }
}

impl From<String> for Problem {
    fn from(words: String) -> Self {
        Self::Refused(words)
    }
}

impl Problem {
    fn words(self) -> String {
        match self {
            Self::Unreadable(words) | Self::Hopeless(words) | Self::Refused(words) | Self::NotNow(words) => {
                words
            }
        }
    }
}

fn receipt(key: &MessageKey) -> Receipt {
    Receipt::new(&key.stream, &key.durable, key.seq, key.kept_at)
}

fn hopeless(error: impl std::fmt::Display) -> Problem {
    Problem::Hopeless(error.to_string())
}

fn key_of(origin: &MessageOrigin) -> Option<KeyId> {
    match origin {
        MessageOrigin::Client(sender) | MessageOrigin::Worker(sender) => sender.key.clone(),
        MessageOrigin::Ourselves => None,
    }
}

/// A pointer is only a name. Whoever is not trusted with every tenant's blobs may name its own job's input
/// and nothing else.
fn own_input(job: &JobRequest, origin: &MessageOrigin) -> Result<(), String> {
    let own = || format!("redis://ctx:{}", job.job_id);
    match origin {
        MessageOrigin::Client(_) if !job.context_ptr.is_empty() && job.context_ptr != own() => {
            Err(format!("context_ptr: this key may only name the job's own input, {}", own()))
        }
        MessageOrigin::Client(_) | MessageOrigin::Worker(_) | MessageOrigin::Ourselves => Ok(()),
    }
}

/// A refusal is an answer: late and repeated packets meet it all the time.
fn answer_of(id: &str, done: Result<Arc<Job>, DriveError>) -> Result<Option<String>, String> {
    done.map(|job| Some(job.state().to_string())).map_err(|error| format!("job {id}: {error}"))
}
