//! The loop that registers the workspace and says that it lives.
//!
//! Whoever the platform does not know, or no longer, registers (again). Only a retired workspace ends
//! the loop: every other trouble is waited out, longer and longer.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use crate::beat_schedule::BeatSchedule;
use crate::clock;
use crate::error::Error;
use crate::http::{HttpError, HttpResponse};
use crate::workspace::errors::ErrorTracker;
use crate::workspace::payload::RetiredReply;
use crate::workspace::platform::Platform;
use crate::workspace::tasks::{TaskBoard, TaskReport};

/// How the agent is.
pub struct Vitals {
    pub errors: ErrorTracker,
    pub tasks: watch::Receiver<TaskBoard>,
}

pub struct WorkspaceBeats {
    platform: Arc<Platform>,
    vitals: Vitals,
    /// Told after each beat that the platform took.
    beaten: Arc<Notify>,
    beat_schedule: BeatSchedule,
    is_registered: bool,
    told: TaskReport,
}

impl WorkspaceBeats {
    pub fn new(platform: Arc<Platform>, vitals: Vitals, beaten: Arc<Notify>) -> Self {
        let beat_schedule = BeatSchedule::new(platform.settings.pace, Instant::now());
        Self { platform, vitals, beaten, beat_schedule, is_registered: false, told: TaskReport::default() }
    }

    /// Runs until the workspace is retired.
    pub async fn run(mut self) -> Error {
        loop {
            let ending = if self.is_registered { self.beat().await } else { self.register().await };
            if let Err(retired) = ending {
                return retired;
            }
        }
    }

    async fn register(&mut self) -> Result<(), Error> {
        sleep_until(self.beat_schedule.beat_at()).await;
        let answer = self.platform.register().await;
        if answer.as_ref().is_ok_and(HttpResponse::is_success) {
            tracing::info!(workspace_id = self.platform.enrolment.id, "registered");
            self.is_registered = true;
            self.beat_schedule.resume(Instant::now());
            return Ok(());
        }
        self.stumble("registration", answer)
    }

    async fn beat(&mut self) -> Result<(), Error> {
        tokio::select! {
            () = sleep_until(self.beat_schedule.beat_at()) => {}
            () = news(&mut self.vitals.tasks, &self.told, self.beat_schedule.news_at()) => {}
        }
        let began = Instant::now();
        let work = self.vitals.tasks.borrow().work();
        let answer = self.platform.beat(&self.vitals.errors.report(), &work).await;
        if let Some(taken) = answer.as_ref().ok().filter(|answer| answer.is_success()) {
            self.told = work;
            let every = taken.next_beat().unwrap_or(self.beat_schedule.every());
            self.beat_schedule.landed(began, every, clock::random());
            self.beaten.notify_one();
            return Ok(());
        }
        // The token is no longer good, or the platform has lost us.
        self.is_registered = !matches!(&answer, Ok(answer) if matches!(answer.status, 401 | 404));
        self.stumble("beat", answer)
    }

    fn stumble(&mut self, what: &'static str, answer: Result<HttpResponse, HttpError>) -> Result<(), Error> {
        let workspace_id = &self.platform.enrolment.id;
        let retry_after = match answer {
            Ok(answer) if answer.status == 410 => {
                let RetiredReply { forwarded_to } = answer.json().unwrap_or_default();
                return Err(Error::Retired { forwarded_to });
            }
            Ok(answer) => {
                tracing::warn!(workspace_id, what, status = answer.status, "refused by the platform");
                answer.retry_after
            }
            Err(error) => {
                tracing::warn!(workspace_id, what, %error, "the platform is unreachable");
                None
            }
        };
        self.beat_schedule.failed(Instant::now(), retry_after, clock::random());
        Ok(())
    }
}

/// Waits until the agent's work is another than was told, and then until that may be said.
async fn news(tasks: &mut watch::Receiver<TaskBoard>, told: &TaskReport, news_at: Instant) {
    let changed = tasks.wait_for(|board| board.work() != *told).await.is_ok();
    if !changed {
        // Every handle is gone: no task begins or ends any more.
        std::future::pending::<()>().await;
    }
    sleep_until(news_at).await;
}
