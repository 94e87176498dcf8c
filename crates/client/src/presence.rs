//! Presence: agents that say that they are there, as VoiceGateway's agents do.
//!
//! An agent that beats by itself for as long as it runs is in the worker SDK (`register_worker`).

use crate::{Client, Error};
use reveille_api_types::presence::{Beat, Taken};
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

/// How long the agent may be silent before its next beat is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    pub next_beat_s: i64,
}
