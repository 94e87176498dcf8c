//! Signed packets: what a worker has signed is its own, whichever way it came, and nobody else's counts.

use bytes::Bytes;
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::fleet::WorkerGrant;
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::job::State;
use reveille_core::request::Request;
use reveille_engine::{
    Clock, KeyError, NewKey, NewPublicKey, PacketKey, RotateError, Settings, SignatureMode, WORKER_SESSION_MS,
};
use reveille_roster::Scope;
use reveille_test_kit::{TestServer, TestWorker, TestWorld, new_job, soon, state, succeeded};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{
    BusPacket, ComponentRole, Handshake, Heartbeat, JobResult, WorkerHandshakeAuthenticate,
    WorkerHandshakeChallenge, WorkerHandshakeChallengeRequest, WorkerHandshakePurpose,
    WorkerHandshakeRejectionReason as Rejection, WorkerHandshakeResult,
};
use reveille_wire::key::{SigningKey, public_pem, signing_key_of};
use reveille_wire::{packet, sign, subject};
use std::sync::Arc;

fn key(seed: u8) -> SigningKey {
    signing_key_of(&[seed; 32]).unwrap()
}

fn settings(signatures: SignatureMode) -> Settings {
    Settings { signatures, packet_key: PacketKey(Some(key(99))), ..Settings::default() }
}

async fn server(world: &TestWorld, signatures: SignatureMode) -> TestServer {
    world.engine().settings(settings(signatures)).start().await
}

/// Registers a key of a tenant's worker, which calls it `proof`.
async fn register(server: &TestServer, worker: &str, tenant: &str, key: &SigningKey) -> KeyId {
    let tenant = TenantId::known(tenant);
    let new = NewKey {
        name: worker.to_owned(),
        worker: Some(WorkerGrant::of_tenant(&tenant)),
        tenant,
        scopes: vec![Scope::Worker],
        expires_at: None,
        created_by: "root".to_owned(),
        issued_by: None,
        project_ids: None,
    };
    let public = NewPublicKey {
        worker: WorkerId::known(worker),
        agent: None,
        proof_key_id: Some("proof".to_owned()),
        key: *key.verifying_key(),
    };
    server.access().register_worker_key(new, public).await.unwrap().id
}

/// A worker behind a NATS server, where nobody can tell who is who.
struct Remote<'s> {
    server: &'s TestServer,
    clock: Arc<dyn Clock>,
    name: &'static str,
    key: Option<SigningKey>,
}

impl Remote<'_> {
    fn packet(&self, payload: Payload) -> BusPacket {
        packet::envelope(self.name, "trace", self.clock.now(), payload)
    }

    fn signed(&self, payload: Payload) -> Bytes {
        let packet = self.packet(payload);
        self.key.as_ref().map_or_else(|| packet::encode(&packet), |key| sign::sign(&packet, key))
    }

    async fn send(&self, subject: &str, bytes: Bytes) -> Bytes {
        let sender = MessageSender { tenant: TenantId::known("default"), key: None };
        let mut inbox = self.server.bus.subscribe("_INBOX.test", None).await.unwrap();
        let message = Message {
            reply: Some("_INBOX.test".to_owned()),
            origin: MessageOrigin::Worker(sender),
            ..Message::new(subject, bytes)
        };
        self.server.bus.publish(message).await.unwrap();
        soon(inbox.recv()).await.unwrap().message.payload
    }

    async fn say(&self, subject: &str, payload: Payload) -> String {
        String::from_utf8(self.send(subject, self.signed(payload)).await.to_vec()).unwrap()
    }

    fn beat_payload(&self) -> Payload {
        let worker_id = self.name.to_owned();
        Payload::Heartbeat(Heartbeat { worker_id, max_parallel_jobs: 5, ..Heartbeat::default() })
    }

    async fn beat(&self) -> String {
        self.say(subject::HEARTBEAT, self.beat_payload()).await
    }

    fn introduction(&self) -> Handshake {
        Handshake {
            component_id: self.name.to_owned(),
            role: ComponentRole::Worker as i32,
            supported_versions: vec![1],
            sdk_version: "test".to_owned(),
            ready_topics: vec!["job.echo".to_owned()],
            ..Handshake::default()
        }
    }

    async fn report(&self, job: &str) -> String {
        let result = JobResult { worker_id: self.name.to_owned(), ..succeeded(job) };
        self.say(subject::JOB_RESULT, Payload::JobResult(result)).await
    }

    fn trust_packet(&self, payload: Payload, token: &str) -> Bytes {
        let mut packet = self.packet(payload);
        token.clone_into(&mut packet.auth_token);
        sign::sign_trust(&packet, self.key.as_ref().unwrap())
    }

    fn challenge_request(&self, purpose: WorkerHandshakePurpose) -> Payload {
        Payload::WorkerHandshakeChallengeRequest(WorkerHandshakeChallengeRequest {
            request_id: "r".to_owned(),
            trace_id: "trace".to_owned(),
            worker_id: self.name.to_owned(),
            proof_key_id: "proof".to_owned(),
            proof_algorithm: 1,
            audience: "cordum-scheduler".to_owned(),
            purpose: purpose.into(),
            client_nonce: vec![7; 32].into(),
            protocol_version: 1,
            sdk_version: "test".to_owned(),
        })
    }

    async fn challenge(&self, purpose: WorkerHandshakePurpose) -> Option<WorkerHandshakeChallenge> {
        let request = self.trust_packet(self.challenge_request(purpose), "");
        let answer = self.send(subject::WORKER_CHALLENGE, request).await;
        let packet = packet::decode(&answer).ok()?;
        let Some(payload @ Payload::WorkerHandshakeChallenge(challenge)) = &packet.payload else { panic!() };
        assert_eq!(sign::verify_trust(&answer, payload, key(99).verifying_key()), Ok(()));
        Some(challenge.clone())
    }

    fn answer_to(&self, challenge: WorkerHandshakeChallenge, token: &str) -> Bytes {
        let answer = WorkerHandshakeAuthenticate {
            challenge: Some(challenge),
            capability_handshake: Some(self.introduction()),
        };
        self.trust_packet(Payload::WorkerHandshakeAuthenticate(answer), token)
    }

    /// The result, and the token that came with it.
    async fn authenticate(&self, answer: Bytes) -> (WorkerHandshakeResult, String) {
        let received = self.send(subject::WORKER_AUTHENTICATE, answer).await;
        let packet = packet::decode(&received).unwrap();
        let Some(payload @ Payload::WorkerHandshakeResult(result)) = &packet.payload else { panic!() };
        assert_eq!(sign::verify_trust(&received, payload, key(99).verifying_key()), Ok(()));
        (result.clone(), packet.auth_token)
    }

    async fn session(&self) -> String {
        let challenge = self.challenge(WorkerHandshakePurpose::Issue).await.unwrap();
        let (result, token) = self.authenticate(self.answer_to(challenge, "")).await;
        assert!(result.accepted);
        token
    }

    async fn beat_with(&self, token: &str) -> String {
        let mut packet = self.packet(self.beat_payload());
        token.clone_into(&mut packet.auth_token);
        let answer = self.send(subject::HEARTBEAT, packet::encode(&packet)).await;
        String::from_utf8(answer.to_vec()).unwrap()
    }
}

fn remote<'s>(
    world: &TestWorld,
    server: &'s TestServer,
    name: &'static str,
    key: Option<SigningKey>,
) -> Remote<'s> {
    Remote { server, clock: world.clock.clone(), name, key }
}

#[tokio::test]
async fn where_signatures_are_required_only_a_registered_worker_is_heard() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    let id = register(&server, "w", "acme", &key(1)).await;
    register(&server, "other", "acme", &key(2)).await;
    let honest = remote(&world, &server, "w", Some(key(1)));

    for (stranger, why) in [
        (remote(&world, &server, "w", None), "has no signature"),
        (remote(&world, &server, "w", Some(key(3))), "does not fit"),
        (remote(&world, &server, "w", Some(key(2))), "does not fit"),
        (remote(&world, &server, "nobody", Some(key(1))), "no public key"),
    ] {
        let answer = stranger.beat().await;
        assert!(answer.contains("signed packets are required") && answer.contains(why), "{answer}");
    }
    assert!(server.fleet().workers().is_empty());
    assert!(honest.beat().await.contains("\"ok\":true"));
    assert_eq!(server.fleet().workers().len(), 1);
    let listed = server.access().list_keys().into_iter().find(|key| key.id == id).unwrap();
    assert!(listed.last_used_at.is_some(), "signing is using the key");

    server.access().revoke_key(&id, "root").await.unwrap();
    assert!(honest.beat().await.contains("no public key"));
}

#[tokio::test]
async fn a_forged_result_of_another_registered_worker_does_not_count() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    register(&server, "w", "acme", &key(1)).await;
    register(&server, "forger", "acme", &key(2)).await;
    let honest = remote(&world, &server, "w", Some(key(1)));
    let forger = remote(&world, &server, "w", Some(key(2)));
    let mut jobs = TestWorker::listen(&server.bus, "w").await;
    let introduction = Payload::Handshake(honest.introduction());
    assert!(honest.say(subject::HANDSHAKE, introduction).await.contains("\"ok\":true"));
    new_job(&server, Request { tenant: TenantId::known("acme"), ..Request::plain("j", "job.echo") }).await;
    assert_eq!(jobs.next().await.job_id, "j");
    assert!(forger.report("j").await.contains("does not fit"));
    assert_eq!(state(&server, "j").await, State::Dispatched);
    assert!(honest.report("j").await.contains("SUCCEEDED"));
}

#[tokio::test]
async fn a_worker_that_signs_serves_the_tenant_of_its_key() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    register(&server, "w", "acme", &key(1)).await;
    let worker = remote(&world, &server, "w", Some(key(1)));
    let mut jobs = TestWorker::listen(&server.bus, "w").await;
    worker.say(subject::HANDSHAKE, Payload::Handshake(worker.introduction())).await;
    new_job(&server, Request { tenant: TenantId::known("beta"), ..Request::plain("theirs", "job.echo") })
        .await;
    new_job(&server, Request { tenant: TenantId::known("acme"), ..Request::plain("ours", "job.echo") }).await;
    assert_eq!(jobs.next().await.job_id, "ours");
    assert_eq!(state(&server, "theirs").await, State::Scheduled);
    assert!(worker.report("theirs").await.contains("there is no such job"));
}

#[tokio::test]
async fn a_beat_that_somebody_sends_again_later_keeps_nobody_alive() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    register(&server, "w", "acme", &key(1)).await;
    let worker = remote(&world, &server, "w", Some(key(1)));
    let recorded = worker.signed(worker.beat_payload());
    let again = |bytes: Bytes| async { worker.send(subject::HEARTBEAT, bytes).await };
    assert!(again(recorded.clone()).await.starts_with(b"{\"ok\":true"));
    world.clock.shift(60_001);
    let answer = String::from_utf8(again(recorded).await.to_vec()).unwrap();
    assert!(answer.contains("not of this minute"), "{answer}");
    assert!(worker.beat().await.contains("\"ok\":true"));
}

#[tokio::test]
async fn where_a_warning_is_enough_everybody_is_heard_and_counted() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Warn).await;
    register(&server, "w", "acme", &key(1)).await;
    for key in [None, Some(key(3)), Some(key(1))] {
        assert!(remote(&world, &server, "w", key).beat().await.contains("\"ok\":true"));
    }
    let stale = remote(&world, &server, "w", None);
    let recorded = stale.signed(stale.beat_payload());
    world.clock.shift(60_001);
    stale.send(subject::HEARTBEAT, recorded).await;
    let page = server.metrics_page();
    assert!(page.contains("packets_unproven_total{mode=\"warn\"} 3"), "{page}");
}

#[tokio::test]
async fn a_rotated_public_key_goes_on_for_the_overlap_and_a_known_one_is_not_registered_again() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    let id = register(&server, "w", "acme", &key(1)).await;
    let (old, new) = (remote(&world, &server, "w", Some(key(1))), remote(&world, &server, "w", Some(key(2))));
    let access = server.access();
    assert!(matches!(access.rotate_key(&id, 1_000, "root").await, Err(RotateError::PublicKeyNeeded)));
    let rotation = access.rotate_worker_key(&id, key(2).verifying_key(), 10_000, "root").await.unwrap();
    assert_eq!(rotation.key.public_key.as_ref().unwrap().worker, WorkerId::known("w"));
    assert!(old.beat().await.contains("\"ok\":true") && new.beat().await.contains("\"ok\":true"));
    world.clock.shift(10_000);
    assert!(old.beat().await.contains("does not fit") && new.beat().await.contains("\"ok\":true"));
    let again = access.rotate_worker_key(&rotation.key.id, key(1).verifying_key(), 0, "root").await;
    assert!(matches!(again, Err(RotateError::Key(KeyError::Registered(known))) if known == id));
}

#[tokio::test]
async fn a_public_key_is_no_secret() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    register(&server, "w", "acme", &key(1)).await;
    let pem = public_pem(key(1).verifying_key()).unwrap();
    for shown in [pem.as_str(), pem.trim(), ""] {
        assert!(server.access().authenticate(shown).is_none());
        assert!(server.access().begin_session(shown).is_none());
    }
}

#[tokio::test]
async fn what_the_server_sends_is_signed_where_that_is_asked_for() {
    for mode in [SignatureMode::Off, SignatureMode::Warn] {
        let world = TestWorld::new();
        let packet_key = PacketKey((mode != SignatureMode::Off).then(|| key(99)));
        let settings = Settings { packet_key, ..settings(mode) };
        let server = world.engine().settings(settings).start().await;
        let mut raw = server.bus.subscribe(&subject::worker_jobs(&WorkerId::known("w")), None).await.unwrap();
        let _jobs = server.hire("w", &["job.echo"], 5).await;
        new_job(&server, Request::plain("j", "job.echo")).await;
        let sent = soon(raw.recv()).await.unwrap().message.payload;
        assert_eq!(sign::verify(&sent, key(99).verifying_key()).is_ok(), mode == SignatureMode::Warn);
        assert_eq!(server.access().server_key().is_some(), mode == SignatureMode::Warn);
    }
}

#[tokio::test]
async fn a_worker_that_proves_its_key_gets_a_session_that_ends_with_the_key() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    let id = register(&server, "w", "acme", &key(1)).await;
    register(&server, "other", "acme", &key(2)).await;
    let worker = remote(&world, &server, "w", Some(key(1)));
    let token = worker.session().await;
    assert!(worker.beat_with(&token).await.contains("\"ok\":true"));
    let other = remote(&world, &server, "other", Some(key(2)));
    assert!(other.beat_with(&token).await.contains("signed packets are required"), "it is another's");
    for forged in
        [token.replace("wks_", "wks_x"), format!("{token}x"), String::from("wks_"), token[..40].to_owned()]
    {
        assert!(worker.beat_with(&forged).await.contains("signed packets are required"), "{forged}");
    }

    let challenge = worker.challenge(WorkerHandshakePurpose::Renew).await.unwrap();
    let (result, next) = worker.authenticate(worker.answer_to(challenge, &token)).await;
    assert!(result.accepted && next != token);
    let challenge = worker.challenge(WorkerHandshakePurpose::Renew).await.unwrap();
    let (result, none) = worker.authenticate(worker.answer_to(challenge, "made-up")).await;
    assert_eq!((result.rejection_reason, none.as_str()), (Rejection::SessionInvalid as i32, ""));

    world.clock.shift(WORKER_SESSION_MS);
    assert!(worker.beat_with(&next).await.contains("signed packets are required"), "its time is over");
    let token = worker.session().await;
    server.access().revoke_key(&id, "root").await.unwrap();
    assert!(worker.beat_with(&token).await.contains("signed packets are required"), "its key is revoked");
    assert!(worker.challenge(WorkerHandshakePurpose::Issue).await.is_none());
}

#[tokio::test]
async fn a_challenge_is_answered_once_in_time_and_only_if_it_is_ours() {
    let world = TestWorld::new();
    let server = server(&world, SignatureMode::Require).await;
    register(&server, "w", "acme", &key(1)).await;
    let worker = remote(&world, &server, "w", Some(key(1)));
    let issue = WorkerHandshakePurpose::Issue;

    let answer = worker.answer_to(worker.challenge(issue).await.unwrap(), "");
    assert!(worker.authenticate(answer.clone()).await.0.accepted);
    let (again, token) = worker.authenticate(answer).await;
    assert_eq!((again.rejection_reason, token.as_str()), (Rejection::ReplayDetected as i32, ""));

    let challenge = worker.challenge(issue).await.unwrap();
    let changed = WorkerHandshakeChallenge { tenant_id: "beta".to_owned(), ..challenge.clone() };
    let (refused, _) = worker.authenticate(worker.answer_to(changed, "")).await;
    assert_eq!(refused.rejection_reason, Rejection::AuthenticationFailed as i32);
    let thief = remote(&world, &server, "w", Some(key(3)));
    let (refused, _) = thief.authenticate(thief.answer_to(challenge.clone(), "")).await;
    assert_eq!(refused.rejection_reason, Rejection::AuthenticationFailed as i32);
    let early = worker.answer_to(challenge.clone(), "");
    world.clock.shift(30_000);
    let (late, _) = worker.authenticate(worker.answer_to(challenge, "")).await;
    assert_eq!(late.rejection_reason, Rejection::ChallengeExpired as i32);
    world.clock.shift(30_001);
    assert_eq!(worker.authenticate(early).await.0.rejection_reason, Rejection::ClockSkew as i32);

    let request = worker.trust_packet(worker.challenge_request(issue), "");
    world.clock.shift(60_001);
    let answer = worker.send(subject::WORKER_CHALLENGE, request).await;
    assert!(answer.starts_with(b"{\"error\":") || answer.windows(5).any(|word| word == b"clock"));
}
