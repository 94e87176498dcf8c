//! A safety kernel that hangs, fails and comes back: nothing runs unjudged, and nothing waits for longer
//! than it must.

use bytes::Bytes;
use reveille_core::approval::Answer;
use reveille_core::job::{Job, State};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{Decision, FailMode, Policy, Verdict};
use reveille_core::request::Request;
use reveille_engine::{
    Circuit, DriveError, Engine, OutputSettings, Rules, Settings, Submission, Submitted, Submitter,
};
use reveille_kernel::{Kernel, NoAnswer, OutputQuestion, OutputScan, Purpose};
use reveille_store::{BlobKey, PutMode};
use reveille_test_kit::{TestServer, TestWorld, new_job, policy, submission};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Says(Decision),
    /// After a second.
    SaysLater(Decision),
    Fails,
    Refuses,
    Hangs,
}

/// Counts what it is asked, and answers as it feels.
struct Moody {
    mood: Mutex<Mood>,
    asked: Mutex<u32>,
    looked: Mutex<u32>,
    /// The inputs that it was shown.
    shown: Mutex<Vec<Option<Bytes>>>,
}

impl Moody {
    fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Self {
            mood: Mutex::new(mood),
            asked: Mutex::default(),
            looked: Mutex::default(),
            shown: Mutex::default(),
        })
    }

    fn feel(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }

    async fn answer(&self) -> Result<Decision, NoAnswer> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Says(decision) => Ok(decision),
            Mood::SaysLater(decision) => {
                sleep(1).await;
                Ok(decision)
            }
            Mood::Fails => Err(NoAnswer::Down("it fails".to_owned())),
            Mood::Refuses => Err(NoAnswer::Refused("it is too large".to_owned())),
            Mood::Hangs => std::future::pending().await,
        }
    }
}

#[async_trait::async_trait]
impl Kernel for Moody {
    fn address(&self) -> &'static str {
        "moody:1"
    }

    async fn judge(&self, _: &Request, input: Option<&Bytes>, _: Purpose) -> Result<Verdict, NoAnswer> {
        *self.asked.lock().unwrap() += 1;
        self.shown.lock().unwrap().push(input.cloned());
        Ok(Verdict {
            decision: self.answer().await?,
            reason: "as it feels".to_owned(),
            rule_id: "mood".to_owned(),
            snapshot: "moody:1".to_owned(),
            constraints: None,
            remediations: Vec::new(),
        })
    }

    async fn scan_output(&self, result: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer> {
        *self.looked.lock().unwrap() += 1;
        let decision = match self.answer().await? {
            Decision::Deny => OutputDecision::Quarantine,
            Decision::Throttle => OutputDecision::Redact,
            _ => OutputDecision::Allow,
        };
        let verdict = OutputVerdict {
            decision,
            stage: if result.content.is_some() { Stage::Async } else { Stage::Sync },
            rule_id: "mood".to_owned(),
            reason: "as it feels".to_owned(),
            snapshot: "moody:1".to_owned(),
            findings: Vec::new(),
        };
        Ok(OutputScan { verdict, redacted_ptr: Some(format!("redis://res:{}:redacted:1", result.id)) })
    }
}

async fn start(world: &TestWorld, kernel: &Arc<Moody>, settings: Settings) -> TestServer {
    start_with(world, kernel, settings, Policy::builtin()).await
}

async fn start_with(
    world: &TestWorld,
    kernel: &Arc<Moody>,
    settings: Settings,
    policy: Policy,
) -> TestServer {
    let engine = world.engine().kernel(kernel.clone()).settings(settings).policy(policy);
    let server = engine.start().await;
    sleep(1).await;
    server
}

async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn submit(engine: &Engine, id: &str) -> Arc<Job> {
    let mut request = Request::plain(id, "job.echo");
    request.context_ptr = format!("redis://ctx:{id}");
    new_job(engine, request).await
}

async fn job(engine: &Engine, job: &Job) -> Arc<Job> {
    engine.jobs().job(job.id()).await.unwrap().unwrap()
}

fn rules_of(job: &Job) -> Vec<&str> {
    job.verdicts.iter().map(|recorded| recorded.verdict.rule_id.as_str()).collect()
}

/// Seed 004, section 6: 2 s, three failures, 30 s, at most three probes, two answers.
#[tokio::test(start_paused = true)]
async fn a_kernel_that_hangs_opens_the_circuit_and_every_job_runs_once_it_is_back() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Hangs));
    let engine = start(&world, &kernel, Settings::default()).await;
    let mut jobs = Vec::new();
    for (number, circuit) in [(1, "closed"), (2, "closed"), (3, "open")] {
        let began = Instant::now();
        jobs.push(submit(&engine, &format!("j{number}")).await);
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        assert_eq!(
            engine.jobs().policy().kernel().circuit(Circuit::Input).name(),
            circuit,
            "after {number} failures"
        );
    }
    let began = Instant::now();
    let late = submit(&engine, "late").await;
    assert_eq!((began.elapsed(), kernel.asked()), (Duration::ZERO, 3), "nobody is asked");
    jobs.push(late.clone());

    let explained = engine.jobs().explain(&late);
    assert_eq!(explained.code, "safety_unavailable");
    let words = "safety kernel circuit open. Tried once; the circuit is open";
    assert!(explained.words.contains(words), "{}", explained.words);
    for job in &jobs {
        assert_eq!((job.state(), job.verdicts.len()), (State::Pending, 0), "{}", job.id());
    }

    // Each job asks again after 5 s, 10 s, 20 s; the circuit lets nothing through for 30 s.
    kernel.feel(Mood::Says(Decision::Allow));
    sleep(27).await;
    assert_eq!(kernel.asked(), 3);
    assert_eq!(engine.jobs().policy().kernel().circuit(Circuit::Input).name(), "open");
    sleep(40).await;
    assert_eq!(engine.jobs().policy().kernel().circuit(Circuit::Input).name(), "closed");
    for before in &jobs {
        let job = job(&engine, before).await;
        assert_eq!((job.state(), rules_of(&job)), (State::Scheduled, vec!["mood"]), "{}", job.id());
    }
    let page = engine.metrics_page();
    for line in [
        "cordum_scheduler_safety_circuit{circuit=\"input\"} 0",
        "cordum_scheduler_safety_circuit_turns_total{circuit=\"input\",to=\"open\"} 1",
        "cordum_scheduler_safety_circuit_turns_total{circuit=\"input\",to=\"closed\"} 1",
        "cordum_scheduler_input_fail_open_total{topic=\"job.echo\"} 0",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_that_fail_keep_the_circuit_open_for_another_thirty_seconds() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Fails));
    let engine = start(&world, &kernel, Settings::default()).await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        submit(&engine, id).await;
    }
    assert_eq!(kernel.asked(), 3);
    sleep(29).await;
    assert_eq!(kernel.asked(), 3, "open");
    sleep(25).await;
    assert_eq!(kernel.asked(), 4, "one probe failed, and that was enough");
    assert_eq!(engine.jobs().policy().kernel().circuit(Circuit::Input).name(), "open");
}

#[tokio::test(start_paused = true)]
async fn fail_open_allows_and_says_so() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Fails));
    let settings = Settings { policy_fail_mode: Some(FailMode::Open), ..Settings::default() };
    let engine = start(&world, &kernel, settings).await;
    let job = submit(&engine, "j").await;
    assert_eq!((job.state(), rules_of(&job)), (State::Scheduled, vec!["fail-open"]));
    let verdict = &job.last_verdict().unwrap().verdict;
    assert!(verdict.reason.contains("input policy fail-open: safety kernel unreachable"), "{verdict:?}");
    let page = engine.metrics_page();
    assert!(page.contains("cordum_scheduler_input_fail_open_total{topic=\"job.echo\"} 1"), "{page}");
    assert!(page.contains("cordum_scheduler_safety_unavailable_total{topic=\"job.echo\"} 1"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_kernels_word_is_the_jobs_fate() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::Allow)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let rows = [
        (Decision::Allow, State::Scheduled),
        (Decision::AllowWithConstraints, State::Scheduled),
        (Decision::RequireApproval, State::ApprovalRequired),
        (Decision::Deny, State::Denied),
    ];
    for (decision, state) in rows {
        kernel.feel(Mood::Says(decision));
        let job = submit(&engine, decision.as_str()).await;
        assert_eq!((job.state(), rules_of(&job)), (state, vec!["mood"]), "{decision:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_waits_for_a_kernel_that_is_away_and_changes_nothing() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::RequireApproval)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let asking = submit(&engine, "j").await;
    let answer = || Answer { by: "boss".to_owned(), ..Answer::default() };
    kernel.feel(Mood::Fails);
    let error = engine.jobs().approve(asking.id(), answer()).await.unwrap_err();
    assert!(matches!(&error, DriveError::Unjudged(problem) if problem == "it fails"), "{error:?}");
    assert_eq!(job(&engine, &asking).await.state(), State::ApprovalRequired);
    kernel.feel(Mood::Says(Decision::RequireApproval));
    engine.jobs().approve(asking.id(), answer()).await.unwrap();
    assert_eq!(job(&engine, &asking).await.state(), State::Scheduled);
}

#[tokio::test(start_paused = true)]
async fn replicas_see_the_circuit_open_at_the_same_moment() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Fails));
    let (one, other) = (
        start(&world, &kernel, Settings::default()).await,
        start(&world, &kernel, Settings::default()).await,
    );
    submit(&one, "a").await;
    submit(&other, "b").await;
    submit(&one, "c").await;
    assert_eq!(kernel.asked(), 3);
    let late = submit(&other, "d").await;
    assert_eq!(kernel.asked(), 3, "the other replica has failed once, and knows of three");
    assert!(other.jobs().explain(&late).words.contains("circuit open"), "{:?}", other.jobs().explain(&late));
}

#[tokio::test(start_paused = true)]
async fn questions_about_results_fail_apart_from_those_about_jobs() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Fails));
    let output = OutputSettings { enabled: Some(true), ..OutputSettings::default() };
    let engine = start(&world, &kernel, Settings { output, ..Settings::default() }).await;
    for id in ["a", "b", "c"] {
        submit(&engine, id).await;
    }
    let names = || Circuit::ALL.map(|circuit| engine.jobs().policy().kernel().circuit(circuit).name());
    assert_eq!(names(), ["open", "closed"]);
    assert_eq!(*kernel.looked.lock().unwrap(), 0);
}

/// An input is what was judged, from then on.
#[tokio::test(start_paused = true)]
async fn nobody_changes_an_input_after_its_job_was_judged() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::Allow)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let blobs = engine.jobs().readable_blobs();
    let until = engine.now() + 60_000;
    let key = || BlobKey::parse("ctx:j").unwrap();
    let put = async |text: &'static str| {
        blobs.put_blob(key(), Bytes::from_static(text.as_bytes()), until, PutMode::Always).await.unwrap()
    };
    assert!(put("before there is a job").await);
    submit(&engine, "j").await;
    assert!(!put("something else").await);
    assert_eq!(blobs.blob(&key()).await.unwrap().unwrap(), "{}");
}

/// Another's blob can be changed after it was judged, so nothing that is judged is read from there.
#[tokio::test(start_paused = true)]
async fn an_input_that_is_not_the_jobs_own_is_not_to_be_had() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::Allow)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let until = engine.now() + 60_000;
    let (key, harmless) = (BlobKey::parse("ctx:own").unwrap(), Bytes::from_static(b"harmless"));
    engine.jobs().readable_blobs().put_blob(key, harmless.clone(), until, PutMode::Always).await.unwrap();
    for (id, shown) in [("another", None), ("own", Some(harmless))] {
        let mut request = Request::plain(id, "job.echo");
        request.context_ptr = "redis://ctx:own".to_owned();
        engine
            .jobs()
            .submit(Submission { request, context: None, submitter: Submitter::IsGone })
            .await
            .unwrap();
        assert_eq!(kernel.shown.lock().unwrap().pop(), Some(shown), "{id}");
    }
}

/// What a job over the bus is to work on can still change while the kernel thinks; then it thinks again.
#[tokio::test(start_paused = true)]
async fn an_input_that_changes_while_it_is_judged_is_judged_again() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::SaysLater(Decision::Allow)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let blobs = engine.jobs().readable_blobs();
    let until = engine.now() + 60_000;
    let put = async |text: &'static str| {
        let key = BlobKey::parse("ctx:j").unwrap();
        blobs.put_blob(key, Bytes::from_static(text.as_bytes()), until, PutMode::Always).await.unwrap()
    };
    let submitted = async |id: &str| {
        let mut request = Request::plain(id, "job.echo");
        request.context_ptr = "redis://ctx:j".to_owned();
        engine.jobs().submit(Submission { request, context: None, submitter: Submitter::IsGone }).await
    };
    assert!(put("harmless").await);
    let (done, changed) = tokio::join!(submitted("j"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        put("something else").await
    });
    assert!(matches!(done, Ok(Submitted::New(_))), "{done:?}");
    assert!(changed, "there was no job yet");
    assert_eq!(kernel.asked(), 2);
    assert!(!put("too late").await);
}

/// Whoever submits the same job again does not keep it from going on while the kernel thinks about it.
#[tokio::test(start_paused = true)]
async fn a_repeated_submit_holds_up_nobody() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::RequireApproval)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let asking = submit(&engine, "j").await;
    kernel.feel(Mood::Hangs);
    let mut request = Request::plain("j", "job.echo");
    request.context_ptr = "redis://ctx:j".to_owned();
    let again = engine.jobs().submit(Submission { request, context: None, submitter: Submitter::IsGone });
    let (again, rejected_after) = tokio::join!(again, async {
        let began = Instant::now();
        let answer = Answer { by: "boss".to_owned(), ..Answer::default() };
        engine.jobs().reject(asking.id(), answer).await.unwrap();
        began.elapsed()
    });
    assert_eq!(rejected_after, Duration::ZERO);
    assert!(matches!(again, Ok(Submitted::Existing(_))), "{again:?}");
}

/// Whoever says no is there: one question that cannot be answered does not keep others from being asked.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_refused_opens_no_circuit() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Refuses));
    let engine = start(&world, &kernel, Settings::default()).await;
    for number in 0..5 {
        let job = submit(&engine, &format!("j{number}")).await;
        assert_eq!(job.state(), State::Pending, "it is not judged all the same");
    }
    assert_eq!(kernel.asked(), 5);
    assert_eq!(engine.jobs().policy().kernel().circuit(Circuit::Input).name(), "closed");
    let request = Request::plain("asked", "job.echo");
    for _ in 0..5 {
        assert!(engine.jobs().policy().evaluate(&request, Purpose::Explain).await.is_err());
    }
    assert_eq!(engine.jobs().policy().kernel().circuit(Circuit::Input).name(), "closed");
}

/// Fail-open lets new jobs run. Who waits for a person goes on waiting, over a restart and a reload.
#[tokio::test(start_paused = true)]
async fn a_kernel_that_is_away_approves_nothing() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::RequireApproval)));
    let settings = || Settings { policy_fail_mode: Some(FailMode::Open), ..Settings::default() };
    let engine = start(&world, &kernel, settings()).await;
    let asking = submit(&engine, "j").await;
    assert_eq!(asking.state(), State::ApprovalRequired);
    kernel.feel(Mood::Fails);
    engine.use_rules(Rules::default());
    sleep(5).await;
    engine.kill();
    let engine = start(&world, &kernel, settings()).await;
    sleep(60).await;
    assert_eq!(job(&engine, &asking).await.state(), State::ApprovalRequired);
    let error =
        engine.jobs().approve(asking.id(), Answer { by: "boss".to_owned(), ..Answer::default() }).await;
    assert!(matches!(error, Err(DriveError::Unjudged(_))), "{error:?}");
}

/// A tenant's own lists hold, whoever else judges.
#[tokio::test(start_paused = true)]
async fn a_tenants_lists_hold_beside_a_kernel() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::Allow)));
    let policy = policy(json!({"tenants": {"default": {"deny_topics": ["job.echo"]}}}));
    for (mood, fail_mode) in [(Mood::Says(Decision::Allow), FailMode::Closed), (Mood::Fails, FailMode::Open)]
    {
        kernel.feel(mood);
        let settings = Settings { policy_fail_mode: Some(fail_mode), ..Settings::default() };
        let engine = start_with(&world, &kernel, settings, policy.clone()).await;
        let job = submit(&engine, &format!("{fail_mode:?}")).await;
        assert_eq!((job.state(), rules_of(&job)), (State::Denied, vec!["tenant-topics"]));
        engine.kill();
    }
}

/// Asking again is told of the job that is there, and nobody is asked about it a second time.
#[tokio::test(start_paused = true)]
async fn a_repeated_submit_is_not_judged_again() {
    let (world, kernel) = (TestWorld::new(), Moody::new(Mood::Says(Decision::Allow)));
    let engine = start(&world, &kernel, Settings::default()).await;
    let submitted = async |id: &str| {
        let mut request = Request::plain(id, "job.echo");
        request.idempotency_key = Some("once".to_owned());
        engine.jobs().submit(submission(request)).await.unwrap()
    };
    let Submitted::New(first) = submitted("a").await else { panic!("it is new") };
    kernel.feel(Mood::Says(Decision::Throttle));
    let Submitted::Existing(again) = submitted("b").await else { panic!("it is there already") };
    assert_eq!((again.id(), kernel.asked()), (first.id(), 1));
}
