//! A batch of changes: folded into few statements first, then made in one transaction.
//!
//! Tables do not depend on one another, except that a purge touches several. So between two purges all
//! changes of one table go together, whatever else stands between them, as one statement over arrays.
//! Rows go in the order of their keys and tables always in the same order, so that two replicas do not
//! wait for each other. A key that comes again goes into the next round: PostgreSQL changes a row once
//! in a statement, and each change must see what the one before it left.

use super::statements;
use crate::generations::moved;
use crate::{Change, PresenceKey, RosterError};
use reveille_core::presence::{Drain, Drained};
use reveille_store::postgres::text::held;
use serde::Serialize;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;

pub(super) struct PostgresBatch {
    stages: Vec<BatchStage>,
    moved: Vec<&'static str>,
}

/// What is done between two purges, and the purges after it.
#[derive(Default)]
pub(super) struct BatchStage {
    pub keys: Vec<KeyChange>,
    pub sessions: Vec<SessionChange>,
    /// Each with the first date.
    pub tenants: BTreeMap<String, i64>,
    pub presence: RowRounds<PresenceKey, BeatRow>,
    pub workspaces: RowRounds<String, WorkspaceRow>,
    pub events: RowRounds<String, EventRow>,
    pub delegations: RowRounds<String, DelegationRow>,
    /// Nothing where a drain ends.
    pub drains: Vec<(Drained, Option<String>)>,
    pub purges: Vec<String>,
}

/// Keys are few, and what happens to them goes in its order.
pub(super) enum KeyChange {
    Put(Box<PostgresKey>),
    Revoke { id: String, at: i64, by: String },
    Used(BTreeMap<String, i64>),
    Replace { id: String, by: String, expires_at: i64 },
}

/// Sessions are ended one at a time, and in their order.
pub(super) enum SessionChange {
    /// An empty session stands for all.
    End {
        key: String,
        session: String,
        until: i64,
    },
    Forget {
        over_by: i64,
    },
}

pub(super) struct PostgresKey {
    pub id: String,
    pub hash: [u8; 32],
    pub record: String,
    pub revoked_at: Option<i64>,
    pub revoked_by: String,
    pub last_used_at: Option<i64>,
    pub replaced_by: Option<String>,
    pub expires_at: Option<i64>,
}

pub(super) struct BeatRow {
    pub last_seen: i64,
    pub about: String,
}

pub(super) struct WorkspaceRow {
    pub tenant: String,
    pub record: String,
}

pub(super) struct EventRow {
    pub tenant: String,
    pub workspace: String,
    pub created_at: i64,
    pub record: String,
}

pub(super) struct DelegationRow {
    pub tenant: String,
    pub source: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub open: bool,
    pub record: String,
}

/// Rows by key; in each round a key comes once.
pub(super) struct RowRounds<K, V>(pub Vec<BTreeMap<K, V>>);

impl<K, V> Default for RowRounds<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> RowRounds<K, V> {
    fn add(&mut self, key: K, value: V) {
        match self.0.iter_mut().find(|round| !round.contains_key(&key)) {
            Some(round) => {
                round.insert(key, value);
            }
            None => self.0.push(BTreeMap::from([(key, value)])),
        }
    }
}

impl PostgresBatch {
    pub fn fold(changes: Vec<Change>) -> Result<Self, RosterError> {
        let moved = moved(&changes);
        let mut stages = vec![BatchStage::default()];
        for change in changes {
            let begins_anew = stages.last().is_none_or(|stage| !stage.purges.is_empty())
                && !matches!(change, Change::PurgeWorkspace(_));
            if begins_anew {
                stages.push(BatchStage::default());
            }
            if let Some(stage) = stages.last_mut() {
                stage.add(change)?;
            }
        }
        Ok(Self { stages, moved })
    }

    /// Makes all changes, or none.
    pub async fn write(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let mut transaction = connection.begin().await?;
        for stage in &self.stages {
            statements::write(&mut transaction, stage).await?;
        }
        // Last, because from here on others wait who move the same.
        if !self.moved.is_empty() {
            sqlx::query(
                "INSERT INTO generations (what, n) SELECT what, 1 FROM UNNEST($1::text[]) AS moved (what)
                 ON CONFLICT (what) DO UPDATE SET n = generations.n + 1",
            )
            .bind(&self.moved)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await
    }
}

impl BatchStage {
    fn add(&mut self, change: Change) -> Result<(), RosterError> {
        match change {
            Change::Key(key) => {
                self.know_tenant(key.tenant.as_str(), key.created_at.0);
                let line = PostgresKey {
                    id: stored(key.id.as_str()),
                    hash: key.hash,
                    revoked_at: key.revoked_at.map(|at| at.0),
                    revoked_by: stored(&key.revoked_by),
                    last_used_at: key.last_used_at.map(|at| at.0),
                    replaced_by: key.replaced_by.as_ref().map(|by| stored(by.as_str())),
                    expires_at: key.expires_at.map(|at| at.0),
                    record: json(&key)?,
                };
                self.keys.push(KeyChange::Put(Box::new(line)));
            }
            Change::RevokeKey { id, at, by } => {
                self.keys.push(KeyChange::Revoke { id: stored(id.as_str()), at: at.0, by: stored(&by) });
            }
            Change::KeyUsed { id, at } => self.use_key(stored(id.as_str()), at.0),
            Change::ReplaceKey { id, by, expires_at } => self.keys.push(KeyChange::Replace {
                id: stored(id.as_str()),
                by: stored(by.as_str()),
                expires_at: expires_at.0,
            }),
            Change::EndSessions(ended) => self.sessions.push(SessionChange::End {
                key: stored(ended.key.as_str()),
                session: ended.session.map_or_else(String::new, |session| stored(session.as_str())),
                until: ended.until.0,
            }),
            Change::ForgetSessions { over_by } => {
                self.sessions.push(SessionChange::Forget { over_by: over_by.0 });
            }
            Change::Tenant(tenant) => self.know_tenant(tenant.id.as_str(), tenant.created_at.0),
            Change::Presence(row) => {
                let beat = BeatRow { last_seen: row.last_seen.0, about: json(&row.about)? };
                self.presence.add(row.key, beat);
            }
            Change::Workspace(workspace) => {
                self.know_tenant(workspace.tenant.as_str(), workspace.created_at.0);
                let line =
                    WorkspaceRow { tenant: stored(workspace.tenant.as_str()), record: json(&workspace)? };
                self.workspaces.add(stored(workspace.id.as_str()), line);
            }
            Change::PurgeWorkspace(id) => self.purges.push(stored(id.as_str())),
            Change::Event(event) => {
                let line = EventRow {
                    tenant: stored(event.tenant.as_str()),
                    workspace: stored(event.workspace.as_str()),
                    created_at: event.created_at.0,
                    record: json(&event)?,
                };
                self.events.add(stored(&event.id), line);
            }
            Change::Delegation(given) => {
                let line = DelegationRow {
                    tenant: stored(given.tenant.as_str()),
                    source: stored(given.source.as_str()),
                    created_at: given.created_at.0,
                    updated_at: given.updated_at.0,
                    open: crate::is_open(&given),
                    record: json(&given)?,
                };
                self.delegations.add(stored(given.id.as_str()), line);
            }
            Change::Drain(drain) => self.drains.push(drained(drain)?),
            Change::Undrain(what) => self.drains.push((what, None)),
        }
        Ok(())
    }

    fn know_tenant(&mut self, id: &str, created_at: i64) {
        self.tenants.entry(stored(id)).or_insert(created_at);
    }

    fn use_key(&mut self, id: String, at: i64) {
        if let Some(KeyChange::Used(used)) = self.keys.last_mut() {
            let latest = used.entry(id).or_insert(at);
            *latest = at.max(*latest);
        } else {
            self.keys.push(KeyChange::Used(BTreeMap::from([(id, at)])));
        }
    }
}

fn drained(drain: Drain) -> Result<(Drained, Option<String>), RosterError> {
    let record = json(&drain)?;
    Ok((drain.what, Some(record)))
}

fn stored(text: &str) -> String {
    held(text).into_owned()
}

fn json(record: &impl Serialize) -> Result<String, RosterError> {
    serde_json::to_string(record)
        .map_err(|error| RosterError::Refused(format!("a record has no JSON: {error}")))
}
