//! The loop that picks up the results of delegated work.
//!
//! After each beat the platform's list is looked at. What is new is written to the results file, and
//! only then taken for seen; the agent is woken, at most every five minutes; people are told. Waking and
//! telling are errands of their own: an agent that thinks for two minutes holds up nothing here.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::http::{HttpError, HttpResponse};
use crate::workspace::cooldown::Cooldown;
use crate::workspace::payload::{Completion, new_completions};
use crate::workspace::platform::{Platform, rows};
use crate::workspace::results::ResultsFile;
use crate::workspace::seen::SeenDelegations;

pub struct DelegationPoller {
    platform: Arc<Platform>,
    results: ResultsFile,
    beaten: Arc<Notify>,
    seen: SeenDelegations,
    cooldown: Cooldown,
    errands: JoinSet<FinishedTask>,
}

/// A background task that has ended.
enum FinishedTask {
    Woken,
    NotWoken,
    Told,
}

impl DelegationPoller {
    pub fn new(platform: Arc<Platform>, results: ResultsFile, beaten: Arc<Notify>) -> Self {
        let cooldown = Cooldown::new(platform.settings.wake_every);
        Self {
            platform,
            results,
            beaten,
            seen: SeenDelegations::default(),
            cooldown,
            errands: JoinSet::new(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        self.remember();
        // Nothing is announced before the platform knows that we are here.
        self.beaten.notified().await;
        if self.results.is_unannounced() {
            self.cooldown.owe(Instant::now());
        }
        self.check().await;
        loop {
            tokio::select! {
                () = self.beaten.notified() => self.check().await,
                () = when(self.cooldown.due()) => self.wake(),
                Some(errand) = self.errands.join_next() => self.settle(errand),
            }
        }
    }

    fn remember(&mut self) {
        match self.results.load() {
            Ok(seen) => self.seen = seen,
            Err(error) => tracing::warn!(%error, "cannot read the results file; old results may come again"),
        }
    }

    async fn check(&mut self) {
        let workspace_id = &self.platform.enrolment.id;
        let listed = match self.platform.delegations().await {
            Ok(answer) => rows(&answer).ok_or(answer.status),
            Err(error) => {
                tracing::debug!(workspace_id, %error, "cannot ask for delegations");
                return;
            }
        };
        match listed {
            Ok(rows) => self.take(new_completions(&rows, workspace_id, &self.seen, clock::now_s())),
            Err(status) => tracing::debug!(workspace_id, status, "the list of delegations was refused"),
        }
    }

    fn take(&mut self, completions: Vec<Completion>) {
        if completions.is_empty() {
            return;
        }
        // Small and local; what cannot be written stays new and comes again with the next beat.
        if let Err(error) = self.results.append(&completions) {
            tracing::warn!(%error, "cannot write the results of delegations");
            return;
        }
        for completion in &completions {
            self.seen.insert(&completion.delegation_id);
        }
        self.cooldown.owe(Instant::now());
        let platform = Arc::clone(&self.platform);
        self.errands.spawn(async move {
            for completion in &completions {
                let told = platform.notify(completion).await;
                if let Some(problem) = problem(&told) {
                    tracing::debug!(
                        delegation_id = completion.delegation_id,
                        problem,
                        "the result was not announced"
                    );
                }
            }
            FinishedTask::Told
        });
    }

    fn wake(&mut self) {
        self.cooldown.sent(Instant::now());
        // Before and not after: should waking kill the agent, its next life is not woken by the same.
        self.results.announced();
        let platform = Arc::clone(&self.platform);
        self.errands.spawn(async move {
            let woken = platform.wake().await;
            // An agent that takes its time has got the message.
            if matches!(woken, Err(HttpError::Silent(_))) {
                return FinishedTask::Woken;
            }
            let Some(problem) = problem(&woken) else { return FinishedTask::Woken };
            tracing::warn!(
                workspace_id = platform.enrolment.id,
                problem,
                "the agent was not woken; retrying later"
            );
            FinishedTask::NotWoken
        });
    }

    fn settle(&mut self, errand: Result<FinishedTask, JoinError>) {
        match errand {
            Ok(FinishedTask::Told) => {}
            Ok(FinishedTask::Woken) => self.cooldown.arrived(),
            Ok(FinishedTask::NotWoken) => {
                self.results.unannounced();
                self.cooldown.lost(Instant::now());
            }
            Err(error) => {
                tracing::error!(%error, "a background task failed");
                self.cooldown.arrived();
            }
        }
    }
}

/// Waits for the moment, or for ever if there is none.
async fn when(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn problem(outcome: &Result<HttpResponse, HttpError>) -> Option<String> {
    match outcome {
        Ok(answer) if answer.is_success() => None,
        Ok(answer) => Some(format!("HTTP {}", answer.status)),
        Err(trouble) => Some(trouble.to_string()),
    }
}
