//! What is written to the roster, and what it is asked for.

use crate::ended::EndedSessions;
use crate::key::KeyRecord;
use reveille_core::id::{KeyId, TenantId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{About, Contract, Drain, Drained};
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change. All are upserts or removals by key.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// As it is written, also if the one that was there is revoked. Its tenant is known from now on.
    Key(KeyRecord),
    /// Marks a key as revoked; the first time counts.
    RevokeKey {
        id: KeyId,
        at: Millis,
        by: String,
    },
    /// The latest time counts.
    KeyUsed {
        id: KeyId,
        at: Millis,
    },
    /// Another key takes the place of this one, which expires then if it does not before. The first time counts.
    ReplaceKey {
        id: KeyId,
        by: KeyId,
        expires_at: Millis,
    },
    /// The later end counts. The end of all sessions of a key takes the place of those of single ones that are not
    /// later.
    EndSessions(EndedSessions),
    /// Takes out the ended sessions that would be over by then in any case.
    ForgetSessions {
        over_by: Millis,
    },
    /// Known from now on; one that is already there keeps its date.
    Tenant(Tenant),
    /// `INSERT … ON CONFLICT DO UPDATE` on (contract, tenant, id), if it [replaces](PresenceRow::replaces)
    /// what is stored.
    Presence(PresenceRow),
    /// Its tenant is known from now on.
    Workspace(Workspace),
    /// Takes a workspace, its presence row and its events out for good.
    PurgeWorkspace(WorkspaceId),
    /// Appends; an event whose id is there already changes nothing.
    Event(StructureEvent),
    /// One whose id another tenant has already changes nothing: agents choose ids too.
    Delegation(Delegation),
    Drain(Drain),
    Undrain(Drained),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: TenantId,
    pub created_at: Millis,
}

/// Names one member of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresenceKey {
    pub contract: Contract,
    pub tenant: TenantId,
    /// An agent's id, or a workspace's.
    pub id: String,
}

/// The latest that is known of a member, never its history.
#[derive(Debug, Clone, PartialEq)]
pub struct PresenceRow {
    pub key: PresenceKey,
    /// By our clock.
    pub last_seen: Millis,
    pub about: About,
}

/// Writers may be this far behind one another. A row that is further ahead was stamped by a clock that has
/// been set back since, and would otherwise stand until time has caught up with it.
pub const AHEAD_MS: i64 = 10_000;

impl PresenceRow {
    /// Whether it takes the place of a row that was last seen then: a later one does not go back in time.
    pub fn replaces(&self, last_seen: Millis) -> bool {
        self.last_seen >= last_seen || last_seen > self.last_seen + AHEAD_MS
    }
}

/// Something that happened to the structure of the fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StructureEvent {
    /// A time-ordered UUID, made by whoever writes the event.
    pub id: String,
    pub tenant: TenantId,
    pub kind: String,
    pub workspace: WorkspaceId,
    pub target: Option<WorkspaceId>,
    pub payload: Value,
    pub created_at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructureEventQuery {
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub limit: usize,
}
