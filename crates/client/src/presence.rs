//! Presence: agents that say that they are there, as VoiceGateway's agents do.
//!
//! An agent that beats by itself for as long as it runs is in the worker SDK (`register_worker`).

use crate::models::{Heard, Taken};
use crate::{Client, Error};
use serde::Serialize;
use serde_json::json;

#[derive(Debug, Clone, Copy)]
pub struct Presence<'a>(pub(crate) &'a Client);

impl Presence<'_> {
    /// One beat of one agent.
    pub fn beat(&self, beat: &Beat) -> Result<Heard, Error> {
        let taken = self.beats(std::slice::from_ref(beat))?;
        match taken.rejected.into_iter().next() {
            None => Ok(Heard { next_beat_s: taken.next_beat_s }),
            // A batch is answered well whatever is in it. To whoever sends one beat, this one was refused.
            Some(refused) => Err(Error::Refused {
                status: 400,
                code: "invalid_request".to_owned(),
                message: refused.field.map_or(String::new(), |field| format!("{field}: ")) + &refused.error,
                job_id: None,
            }),
        }
    }

    /// Beats of many agents at once, at most 1,000. Each is taken or refused by itself.
    pub fn beats(&self, beats: &[Beat]) -> Result<Taken, Error> {
        self.0.post("/api/v1/presence", &json!({ "beats": beats }))
    }
}

/// What an agent says of itself when it beats: who it is, and how it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Beat {
    pub agent_id: String,
    pub agent_name: String,
    pub dispatch_name: Option<String>,
    /// idle, busy or offline; idle unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub active_sessions: u32,
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub region: Option<String>,
    pub host: Option<String>,
    /// Seconds since the epoch.
    pub started_at: Option<f64>,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    /// From 0 to 100.
    pub cpu_pct: Option<f32>,
}

impl Beat {
    pub fn new(agent_id: impl Into<String>, agent_name: impl Into<String>) -> Self {
        Self { agent_id: agent_id.into(), agent_name: agent_name.into(), ..Self::default() }
    }
}
