//! The loop that posts the agent's beats.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::beat_schedule::{BeatSchedule, Pace};
use crate::clock;
use crate::http::{Bearer, HttpClient, HttpError, HttpResponse};
use crate::load::{CpuMeter, memory_total_bytes, process_memory_bytes};
use crate::presence::payload::{AgentProfile, AgentReading, BeatBody, ReportedStatus};

const PATH: &str = "/v1/agents/heartbeat";

/// What tests shorten.
#[derive(Debug, Clone, Copy)]
pub struct PresenceSettings {
    pub pace: Pace,
    pub push_wait_max: Duration,
}

pub const SETTINGS: PresenceSettings = PresenceSettings {
    pace: Pace {
        beat_every: Duration::from_secs(15),
        beat_gap_min: Duration::from_secs(1),
        pause_min: Duration::from_secs(1),
        pause_max: Duration::from_secs(30),
    },
    push_wait_max: Duration::from_secs(10),
};

pub struct AgentBeats {
    pub http: HttpClient,
    pub key: Option<Bearer>,
    pub profile: AgentProfile,
    pub sessions: watch::Receiver<u32>,
    pub settings: PresenceSettings,
}

impl AgentBeats {
    /// Beats until it is dropped.
    pub async fn run(mut self) {
        let mut beat_schedule = BeatSchedule::new(self.settings.pace, Instant::now());
        let mut cpu = CpuMeter::new();
        let mut told = ReportedStatus::Idle;
        loop {
            tokio::select! {
                () = sleep_until(beat_schedule.beat_at()) => {}
                () = news(&mut self.sessions, told, beat_schedule.news_at()) => {}
            }
            let began = Instant::now();
            let active_sessions = *self.sessions.borrow();
            match self.push(active_sessions, &mut cpu).await {
                Ok(answer) if answer.is_success() => {
                    told = ReportedStatus::of(active_sessions);
                    beat_schedule.landed(
                        began,
                        answer.next_beat().unwrap_or(beat_schedule.every()),
                        clock::random(),
                    );
                }
                Ok(answer) => {
                    tracing::debug!(agent_id = self.profile.agent_id, status = answer.status, "beat refused");
                    beat_schedule.failed(Instant::now(), answer.retry_after, clock::random());
                }
                Err(error) => {
                    tracing::debug!(agent_id = self.profile.agent_id, %error, "beat not delivered");
                    beat_schedule.failed(Instant::now(), None, clock::random());
                }
            }
        }
    }

    async fn push(&self, active_sessions: u32, cpu: &mut CpuMeter) -> Result<HttpResponse, HttpError> {
        let reading = AgentReading {
            active_sessions,
            memory_rss_bytes: process_memory_bytes(),
            memory_total_bytes: memory_total_bytes(),
            cpu_pct: cpu.load_percent(),
            ts: clock::now_s(),
        };
        let beat = BeatBody::new(&self.profile, reading);
        self.http.post(PATH, self.key.as_ref(), &beat, self.settings.push_wait_max).await
    }
}

/// Waits until the agent's status is another than `told`, and then until that may be said.
async fn news(sessions: &mut watch::Receiver<u32>, told: ReportedStatus, news_at: Instant) {
    let changed = sessions.wait_for(|active| ReportedStatus::of(*active) != told).await.is_ok();
    if !changed {
        // Nobody can begin or end a session any more.
        std::future::pending::<()>().await;
    }
    sleep_until(news_at).await;
}
