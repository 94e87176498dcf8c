//! What became of beats.

use serde::Deserialize;

/// How long the agent may be silent before its next beat is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    pub next_beat_s: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Taken {
    pub accepted: usize,
    pub rejected: Vec<Refused>,
    /// How often an agent should beat, in seconds.
    pub next_beat_s: i64,
}

/// A beat that was not taken, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Refused {
    /// Its place in the batch, from zero.
    pub index: usize,
    pub field: Option<String>,
    pub error: String,
}
