//! The scenes, in order. Each says what it does, does it, and waits until it has happened.

use super::crew::{DemoWorkers, NAMES};
use super::house::House;
use super::say;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail, ensure};
use reveille_client::models::JobDetail;
use reveille_client::{Error, NewJob, Resolution};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub struct Story<'a> {
    pub house: &'a House,
    /// Between two scenes.
    pub pace: Duration,
}

impl Story<'_> {
    pub async fn tell(&self) -> Result<()> {
        let crew = self.fleet().await?;
        self.work().await?;
        self.killed_worker(&crew).await?;
        self.denied_job().await?;
        self.approval().await?;
        self.rollback().await
    }

    async fn fleet(&self) -> Result<DemoWorkers> {
        self.scene("1. A fleet wakes up", &format!("Six workers start: {}.", NAMES.join(", "))).await;
        let crew = DemoWorkers::start(self.house);
        self.until("six workers", async || {
            let known = self.house.ask(|client| client.workers().list(None).collect::<Result<Vec<_>, _>>());
            Ok((known.await?.len() == NAMES.len()).then_some(()))
        })
        .await?;
        say("   All six are known, with what they can do. See /ui/fleet.");
        Ok(crew)
    }

    async fn work(&self) -> Result<()> {
        self.scene("2. Work", "Twenty jobs are asked for; each is judged by policy before a worker sees it.")
            .await;
        let mut jobs = Vec::new();
        for number in 0..20 {
            jobs.push(self.submit("job.demo.search", json!({ "number": number, "seconds": 0.5 })).await?);
        }
        for job in &jobs {
            self.ended(job, "SUCCEEDED").await?;
        }
        say("   All twenty succeeded. See /ui/jobs.");
        Ok(())
    }

    async fn killed_worker(&self, crew: &DemoWorkers) -> Result<()> {
        self.scene("3. A worker is killed", "A long job runs, and its worker dies without a word.").await;
        let job = self.submit("job.demo.think", json!({ "seconds": 4 })).await?;
        let name = self
            .until("a worker at the job", async || {
                let worker = self.look(&job).await?.record.worker_id;
                Ok((!worker.is_empty()).then_some(worker))
            })
            .await?;
        crew.kill(&name);
        say(&format!(
            "   {name} had it and is gone. See /ui/jobs/{job}: the server notices, and sends it elsewhere."
        ));
        let ended = self.ended(&job, "SUCCEEDED").await?;
        ensure!(ended.attempts > 1, "the job had one attempt only: {ended:?}");
        say(&format!("   {} finished it, at try {}.", ended.worker_id, ended.attempts));
        Ok(())
    }

    async fn denied_job(&self) -> Result<()> {
        self.scene("4. A job that policy denies", "An agent asks to touch production data.").await;
        let job = NewJob::new("job.demo.think").context(json!({})).risk_tag("prod-data");
        match self.house.ask(move |client| Ok(client.jobs().submit(&job))).await? {
            Err(Error::Refused { status: 403, message, job_id: Some(id), .. }) => {
                say(&format!("   Denied: {message}. No worker saw it. See /ui/jobs/{id}."));
                Ok(())
            }
            answer => bail!("the job was not denied: {answer:?}"),
        }
    }

    async fn approval(&self) -> Result<()> {
        self.scene("5. A job that wants a person", "A deploy is asked for; policy wants somebody's yes.")
            .await;
        let job = self.submit("job.demo.deploy", json!({ "what": "web 2.0" })).await?;
        say(&format!("   It waits for you at /ui/approvals/{job}."));
        let until = Instant::now() + self.pace * 4;
        let shown = ProgressLine::waiting("waiting for you to decide");
        while Instant::now() < until && self.look(&job).await?.state == "APPROVAL_REQUIRED" {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        drop(shown);
        if self.look(&job).await?.state == "APPROVAL_REQUIRED" {
            let (id, yes) = (job.clone(), Resolution::because("the demo goes on"));
            // It is refused if somebody was faster; then what they said counts.
            if self.house.decide(move |client| Ok(client.approvals().approve(&id, &yes))).await?.is_ok() {
                say("   Nobody decided, so the story did.");
            }
        }
        say(&format!("   It ended as {}.", self.end_of(&job).await?.state));
        Ok(())
    }

    async fn rollback(&self) -> Result<()> {
        self.scene(
            "6. A workflow that is undone",
            "Migrate, release, check; the check fails, and what was done is undone.",
        )
        .await;
        let undo = |topic: &str| json!({ "topic": topic, "input": { "seconds": 1 } });
        let document = json!({
            "id": "rollout",
            "name": "A rollout that fails",
            "steps": {
                "migrate": { "topic": "job.demo.migrate", "input": { "seconds": 1 }, "compensation": undo("job.demo.unmigrate") },
                "release": { "topic": "job.demo.release", "input": { "seconds": 1 }, "depends_on": ["migrate"], "compensation": undo("job.demo.unrelease") },
                "check": { "topic": "job.demo.check", "depends_on": ["release"] },
            },
        });
        self.house.ask(move |client| client.post::<Value>("/api/v1/workflows", &document)).await?;
        let run = self.house.ask(|client| client.runs().start("rollout", &json!({}), None)).await?.run_id;
        say(&format!("   See /ui/runs/{run}."));
        let rollback = self
            .until("the rollback", async || {
                let id = run.clone();
                Ok(self.house.ask(move |client| client.runs().get(&id)).await?.rollback_run_id)
            })
            .await?;
        let undone = self.house.ask(move |client| client.runs().wait(&rollback, PATIENCE)).await?;
        ensure!(undone.status == "succeeded", "the rollback ended as {}: {}", undone.status, undone.error);
        let steps = undone.input["undo"].as_array().map_or(0, Vec::len);
        say(&format!("   The run failed, and its {steps} compensations ran, the last first."));
        Ok(())
    }

    async fn scene(&self, title: &str, words: &str) {
        tokio::time::sleep(self.pace).await;
        say(&format!("\n{title}\n   {words}"));
    }

    async fn submit(&self, topic: &str, context: Value) -> Result<String> {
        let job = NewJob::new(topic).context(context);
        Ok(self.house.ask(move |client| client.jobs().submit(&job)).await?.job_id)
    }

    async fn look(&self, job: &str) -> Result<JobDetail> {
        let id = job.to_owned();
        self.house.ask(move |client| client.jobs().get(&id)).await
    }

    async fn end_of(&self, job: &str) -> Result<JobDetail> {
        let _shown = ProgressLine::waiting(format!("waiting for job {job} to end"));
        let id = job.to_owned();
        self.house.ask(move |client| client.jobs().wait(&id, PATIENCE)).await
    }

    async fn ended(&self, job: &str, state: &str) -> Result<JobDetail> {
        let ended = self.end_of(job).await?;
        ensure!(ended.state == state, "{job} is {} and not {state}: {}", ended.state, ended.failure_reason);
        Ok(ended)
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
        let _shown = ProgressLine::waiting(format!("waiting for {what}"));
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(found) = look().await.with_context(|| format!("waiting for {what}"))? {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("nothing was seen of {what} within {} s", PATIENCE.as_secs())
    }
}
