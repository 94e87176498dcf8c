//! A heartbeat. Whatever a client sends that can be understood is: one that is told "bad request" does not
//! look, beats on the same way, and would count as dead.

use reveille_core::presence::workspace::Pulse;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Tasks and errors are cut here.
const TOLD_LEN_MAX: usize = 4_000;

#[derive(Deserialize, ToSchema)]
pub struct Heartbeat {
    pub workspace_id: String,
    /// From 0 to 1.
    #[serde(default, deserialize_with = "lenient")]
    error_rate: f64,
    #[serde(default, deserialize_with = "or_default")]
    sample_error: String,
    #[serde(default, deserialize_with = "lenient")]
    active_tasks: f64,
    #[serde(default, deserialize_with = "lenient")]
    uptime_seconds: f64,
    #[serde(default, deserialize_with = "or_default")]
    current_task: String,
    /// `wedged` if the agent hangs.
    #[serde(default, deserialize_with = "or_default")]
    runtime_state: String,
}

/// The seed's own sample sends floats where whole numbers are meant; a null is a value not known.
fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or_default())
}

fn or_default<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(from)?.unwrap_or_default())
}

impl Heartbeat {
    pub fn pulse(self) -> Pulse {
        Pulse {
            error_rate: self.error_rate.clamp(0.0, 1.0),
            sample_error: cut(self.sample_error),
            active_tasks: self.active_tasks as u32,
            uptime_seconds: (self.uptime_seconds as i64).max(0),
            current_task: cut(self.current_task),
            wedged: self.runtime_state == "wedged",
            // The fleet works it out.
            degraded: false,
        }
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TOLD_LEN_MAX));
    text
}

#[derive(Serialize, ToSchema)]
pub struct BeatAnswer {
    pub status: &'static str,
    /// How often the workspace should beat, in seconds.
    pub next_beat_s: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_nulls_and_too_much_are_understood() {
        let beat: Heartbeat = serde_json::from_str(
            r#"{"workspace_id": "w", "error_rate": 7, "active_tasks": 2.9, "uptime_seconds": 61.7,
                "sample_error": null, "current_task": null, "monthly_spend": 12, "runtime_state": "wedged"}"#,
        )
        .unwrap();
        let pulse = beat.pulse();
        assert_eq!((pulse.error_rate, pulse.active_tasks, pulse.uptime_seconds), (1.0, 2, 61));
        assert!(pulse.wedged && pulse.current_task.is_empty());
        let long = format!(r#"{{"workspace_id": "w", "current_task": "{}"}}"#, "ü".repeat(9_000));
        assert_eq!(serde_json::from_str::<Heartbeat>(&long).unwrap().pulse().current_task.len(), 4_000);
        assert!(serde_json::from_str::<Heartbeat>(r#"{"error_rate": 0}"#).is_err());
    }
}
