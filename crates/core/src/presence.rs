//! Presence: three contracts by which a member of the fleet says that it lives, in one model.
//!
//! A contract brings its TTL, its words for how somebody is, and what death means. Everything else
//! (who is known, when silence is death, whose silence does not count) is the fleet's and the same for all.

pub mod agent;
pub mod delegation;
pub mod workspace;

use crate::id::WorkerId;
use crate::time::Millis;
use agent::Agent;
use serde::{Deserialize, Serialize};
use workspace::Pulse;

/// How a member of the fleet speaks to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    /// Heartbeats on `sys.heartbeat`. The dead are evicted and their attempts lost.
    Cap,
    /// `POST /v1/agents/heartbeat`. The dead are offline with no sessions.
    VoiceGateway,
    /// `POST /registry/heartbeat`. The dead are offline.
    Molecule,
}

impl Contract {
    pub const ALL: [Self; 3] = [Self::Cap, Self::VoiceGateway, Self::Molecule];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cap => "cap",
            Self::VoiceGateway => "voicegateway",
            Self::Molecule => "molecule",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contract| contract.as_str() == word)
    }
}

/// How long each contract's members may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttls {
    pub cap_ms: i64,
    pub voicegateway_ms: i64,
    pub molecule_ms: i64,
}

impl Default for Ttls {
    fn default() -> Self {
        Self { cap_ms: 30_000, voicegateway_ms: 45_000, molecule_ms: 60_000 }
    }
}

impl Ttls {
    pub fn of(&self, contract: Contract) -> i64 {
        match contract {
            Contract::Cap => self.cap_ms,
            Contract::VoiceGateway => self.voicegateway_ms,
            Contract::Molecule => self.molecule_ms,
        }
    }

    /// How often a member should beat: three beats to a TTL, two with Molecule.
    pub fn beat_every_ms(&self, contract: Contract) -> i64 {
        match contract {
            Contract::Cap => self.cap_ms / 6,
            Contract::VoiceGateway => self.voicegateway_ms / 3,
            Contract::Molecule => self.molecule_ms / 2,
        }
    }
}

/// What a contract tells of its members beyond what all have in common.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    #[default]
    Cap,
    Agent(Box<Agent>),
    Workspace(Box<Pulse>),
}

impl About {
    pub fn contract(&self) -> Contract {
        match self {
            Self::Cap => Contract::Cap,
            Self::Agent(_) => Contract::VoiceGateway,
            Self::Workspace(_) => Contract::Molecule,
        }
    }
}

/// Workers that an operator has taken out of service, or a whole pool of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drained {
    Worker(WorkerId),
    Pool(crate::id::PoolId),
}

/// No new jobs; what is still there at `until` goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    pub what: Drained,
    pub since: Millis,
    pub until: Millis,
    pub by: String,
}

impl Drain {
    /// A drain that begins later than now was ordered by a clock that has been set back since: it lasts
    /// as long as it should, from now.
    #[must_use]
    pub fn set_back(self, now: Millis) -> Self {
        if self.since <= now {
            return self;
        }
        Self { since: now, until: now + self.until.since(self.since), ..self }
    }
}
