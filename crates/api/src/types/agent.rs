//! A VoiceGateway agent over HTTP: its beat, read without copying, and its row in the roster.
//!
//! A beat is read in one pass straight into the core's type. Why one cannot be read is found out
//! in a second, slow pass, which only bad beats pay for. `tenant_id`, `ts` and whatever else a beat brings
//! are passed over: the tenant is the key's, the time is ours.

use reveille_core::fleet::Worker;
use reveille_core::presence::About;
use reveille_core::presence::Ttls;
use reveille_core::presence::agent::{AgentBeat, AgentStatus};
use reveille_core::time::Millis;
use reveille_engine::is_away;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;

/// The project of an agent that names none.
const PROJECT: &str = "default";

/// A beat as it was told.
pub struct PostedBeat<'a>(pub AgentBeat<'a>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum BeatField {
    AgentId,
    AgentName,
    DispatchName,
    Status,
    ActiveSessions,
    Version,
    Project,
    Region,
    Host,
    StartedAt,
    MemoryRssBytes,
    MemoryTotalBytes,
    CpuPct,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for PostedBeat<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ToldVisitor)
    }
}

struct ToldVisitor;

impl<'de> Visitor<'de> for ToldVisitor {
    type Value = PostedBeat<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a beat, an object with agent_id and agent_name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PostedBeat<'de>, A::Error> {
        let mut beat = AgentBeat { project: Cow::Borrowed(PROJECT), ..AgentBeat::default() };
        while let Some(key) = map.next_key()? {
            match key {
                BeatField::AgentId => beat.agent_id = map.next_value::<Text<'de>>()?.0,
                BeatField::AgentName => beat.name = map.next_value::<Text<'de>>()?.0,
                BeatField::DispatchName => beat.dispatch_name = optional_text(&mut map)?,
                BeatField::Status => beat.status = map.next_value::<StatusWord>()?.0,
                BeatField::ActiveSessions => beat.active_sessions = map.next_value()?,
                BeatField::Version => beat.version = optional_text(&mut map)?,
                BeatField::Project => beat.project = map.next_value::<Text<'de>>()?.0,
                BeatField::Region => beat.region = optional_text(&mut map)?,
                BeatField::Host => beat.host = optional_text(&mut map)?,
                BeatField::StartedAt => beat.started_at = map.next_value()?,
                BeatField::MemoryRssBytes => beat.memory_rss_bytes = map.next_value()?,
                BeatField::MemoryTotalBytes => beat.memory_total_bytes = map.next_value()?,
                BeatField::CpuPct => beat.cpu_pct = map.next_value()?,
                BeatField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(PostedBeat(beat))
    }
}

fn optional_text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    Ok(map.next_value::<Option<Text<'de>>>()?.map(|text| text.0))
}

/// Text that stays where it is in the body unless it has escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

struct StatusWord(AgentStatus);

impl<'de> Deserialize<'de> for StatusWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(word) = Text::deserialize(deserializer)?;
        let status = AgentStatus::parse(&word);
        status.map(Self).ok_or_else(|| de::Error::custom("must be idle, busy or offline"))
    }
}

/// What is wrong with a beat that could not be read, and where.
#[derive(Debug)]
pub struct Unreadable {
    pub field: String,
    pub problem: String,
}

/// Reads a beat once more, slowly, to name the field.
pub fn why_unreadable(json: &[u8]) -> Unreadable {
    let mut reader = serde_json::Deserializer::from_slice(json);
    match serde_path_to_error::deserialize::<_, PostedBeat<'_>>(&mut reader) {
        Err(error) => {
            let path = error.path().to_string();
            let field = if path == "." || path == "?" { "body".to_owned() } else { path };
            Unreadable { field, problem: error.inner().to_string() }
        }
        Ok(_) => Unreadable { field: "body".to_owned(), problem: "something follows the JSON".to_owned() },
    }
}

/// Beats in one batch, at most.
pub const BEATS_MAX: usize = 1_000;

/// A beat was taken.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; what is answered is written once, at the start")]
pub struct BeatTaken {
    /// `accepted`.
    status: String,
    /// How often the agent should beat, in seconds.
    next_beat_s: i64,
}

/// A batch as it is read when all of it can be.
pub struct BeatBatch<'a>(pub Vec<AgentBeat<'a>>);

/// A batch whose beats are not looked at yet.
#[derive(Deserialize)]
pub struct RawBatch<'a> {
    #[serde(borrow)]
    pub beats: Vec<&'a RawValue>,
}

impl<'de> Deserialize<'de> for BeatBatch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct BatchBody<'a> {
            #[serde(borrow, deserialize_with = "beats")]
            beats: Vec<AgentBeat<'a>>,
        }
        BatchBody::deserialize(deserializer).map(|wire| Self(wire.beats))
    }
}

/// Stops at the first beat too many: what is kept of a body is bounded by the number of beats.
fn beats<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AgentBeat<'de>>, D::Error> {
    struct BeatsVisitor;
    impl<'de> Visitor<'de> for BeatsVisitor {
        type Value = Vec<AgentBeat<'de>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of beats")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut beats = Vec::new();
            while let Some(PostedBeat(beat)) = seq.next_element()? {
                if beats.len() == BEATS_MAX {
                    return Err(de::Error::custom("too many beats"));
                }
                beats.push(beat);
            }
            Ok(beats)
        }
    }
    deserializer.deserialize_seq(BeatsVisitor)
}

/// An agent in `GET /v1/agents`.
#[derive(Serialize, ToSchema)]
pub struct AgentRow<'a> {
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    pub project: &'a str,
    pub region: Option<&'a str>,
    pub version: Option<&'a str>,
    pub host: Option<&'a str>,
    pub active_sessions: u32,
    /// idle, busy or offline.
    pub status: &'static str,
    pub started_at: Option<f64>,
    /// Seconds since the epoch, by our clock.
    pub last_seen: f64,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub memory_pct: Option<f64>,
}

impl<'a> AgentRow<'a> {
    /// Nothing if it is no agent. One that is away has no sessions, whatever it said last.
    pub fn of(worker: &'a Worker, ttls: &Ttls, now: Millis) -> Option<Self> {
        let About::Agent(agent) = &worker.about else { return None };
        let is_away = is_away(worker, ttls, now);
        let status = if is_away { AgentStatus::Offline } else { agent.status };
        Some(Self {
            agent_id: worker.id.as_str(),
            agent_name: &agent.name,
            project: &agent.project,
            region: agent.region.as_deref(),
            version: agent.version.as_deref(),
            host: agent.host.as_deref(),
            active_sessions: if is_away { 0 } else { agent.active_sessions },
            status: status.as_str(),
            started_at: agent.started_at,
            last_seen: worker.last_seen.0 as f64 / 1000.0,
            memory_rss_bytes: agent.memory_rss_bytes,
            memory_total_bytes: agent.memory_total_bytes,
            memory_pct: agent.memory_pct(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_read_without_copying() {
        let json = br#"{"agent_id":"w1","agent_name":"a\u0020b","ts":"whenever","extra":{"x":[1]}}"#;
        let PostedBeat(beat) = serde_json::from_slice(json).unwrap();
        assert!(matches!(beat.agent_id, Cow::Borrowed("w1")));
        assert!(matches!(&beat.name, Cow::Owned(name) if name == "a b"));
        assert_eq!((&*beat.project, beat.status), ("default", AgentStatus::Idle));
        assert!(serde_json::from_slice::<PostedBeat<'_>>(b"[\"w1\", \"a\"]").is_err(), "not by position");
    }
}
