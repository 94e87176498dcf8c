//! A batch of changes on its way to the writer's thread, and what it does there.
//!
//! All JSON of a batch is one text, made by whoever asks for the batch: a thousand beats are one
//! allocation, and the writer only binds slices.

use super::contract_number;
use crate::generations::moved;
use crate::{AHEAD_MS, Change, EndedSessions, KeyRecord, PresenceRow, RosterError, StructureEvent};
use reveille_core::id::{SessionId, TenantId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{About, Contract, Drained};
use reveille_core::time::Millis;
use rusqlite::{CachedStatement, Connection, Params, Result, params};
use serde::Serialize;

pub(super) struct SqliteBatch {
    /// Each with where its text ends. It begins where the one before ends.
    changes: Vec<(Change, usize)>,
    text: String,
}

impl SqliteBatch {
    pub fn encode(changes: Vec<Change>) -> Result<Self, RosterError> {
        let mut text = Vec::new();
        let mut encoded = Vec::with_capacity(changes.len());
        for mut change in changes {
            encode(&mut change, &mut text)
                .map_err(|error| RosterError::Refused(format!("a record has no JSON: {error}")))?;
            encoded.push((change, text.len()));
        }
        let text = String::from_utf8(text)
            .map_err(|error| RosterError::Refused(format!("a record is no text: {error}")))?;
        Ok(Self { changes: encoded, text })
    }

    /// Makes all changes inside the transaction under way; answers with the number of changed rows.
    pub fn apply(&self, connection: &Connection) -> Result<u64> {
        let mut tables = RosterTables { connection, upsert_presence: None };
        let (mut start, mut rows) = (0, 0);
        for (change, end) in &self.changes {
            rows += tables.apply(change, &self.text[start..*end])?;
            start = *end;
        }
        for name in moved(self.changes.iter().map(|(change, _)| change)) {
            rows += tables.run(
                "INSERT INTO generations (what, n) VALUES (?1, 1)
                 ON CONFLICT (what) DO UPDATE SET n = n + 1",
                [name],
            )?;
        }
        Ok(rows as u64)
    }
}

fn encode(change: &mut Change, text: &mut Vec<u8>) -> serde_json::Result<()> {
    fn json(record: &impl Serialize, text: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(text, record)
    }
    match change {
        Change::Key(key) => json(key, text),
        Change::Presence(row) => {
            // What is in the text now need not be carried to the writer, nor be freed there.
            json(&std::mem::take::<About>(&mut row.about), text)
        }
        Change::Workspace(workspace) => json(workspace, text),
        Change::Event(event) => json(event, text),
        Change::Delegation(given) => json(given, text),
        Change::Drain(drain) => json(drain, text),
        Change::RevokeKey { .. }
        | Change::KeyUsed { .. }
        | Change::ReplaceKey { .. }
        | Change::EndSessions(_)
        | Change::ForgetSessions { .. }
        | Change::Tenant(_)
        | Change::PurgeWorkspace(_)
        | Change::Undrain(_) => Ok(()),
    }
}

struct RosterTables<'c> {
    connection: &'c Connection,
    /// Taken once for all beats of a batch.
    upsert_presence: Option<CachedStatement<'c>>,
}

impl RosterTables<'_> {
    fn apply(&mut self, change: &Change, text: &str) -> Result<usize> {
        match change {
            Change::Key(key) => self.put_key(key, text),
            Change::RevokeKey { id, at, by } => self.run(
                "UPDATE keys SET record = json_set(record, '$.revoked_at', ?2, '$.revoked_by', ?3)
                 WHERE id = ?1 AND record ->> '$.revoked_at' IS NULL",
                params![id.as_str(), at.0, by],
            ),
            Change::KeyUsed { id, at } => self.run(
                "UPDATE keys SET record = json_set(record, '$.last_used_at', ?2)
                 WHERE id = ?1 AND coalesce(record ->> '$.last_used_at', ?2) <= ?2",
                params![id.as_str(), at.0],
            ),
            Change::ReplaceKey { id, by, expires_at } => self.run(
                "UPDATE keys SET record = json_set(record, '$.replaced_by', ?2,
                     '$.expires_at', min(coalesce(record ->> '$.expires_at', ?3), ?3))
                 WHERE id = ?1 AND record ->> '$.replaced_by' IS NULL",
                params![id.as_str(), by.as_str(), expires_at.0],
            ),
            Change::EndSessions(ended) => self.end_sessions(ended),
            Change::ForgetSessions { over_by } => {
                self.run("DELETE FROM ended_sessions WHERE until <= ?1", [over_by.0])
            }
            Change::Tenant(tenant) => self.know_tenant(&tenant.id, tenant.created_at),
            Change::Presence(row) => self.see(row, text),
            Change::Workspace(workspace) => self.put_workspace(workspace, text),
            Change::PurgeWorkspace(id) => self.purge(id),
            Change::Event(event) => self.append(event, text),
            Change::Delegation(given) => self.put_delegation(given, text),
            Change::Drain(drain) => self.run(
                "INSERT INTO drains (kind, name, record) VALUES (?1, ?2, ?3)
                 ON CONFLICT (kind, name) DO UPDATE SET record = excluded.record",
                params![kind(&drain.what), name(&drain.what), text],
            ),
            Change::Undrain(what) => {
                self.run("DELETE FROM drains WHERE kind = ?1 AND name = ?2", params![kind(what), name(what)])
            }
        }
    }

    fn run(&self, sql: &str, values: impl Params) -> Result<usize> {
        self.connection.prepare_cached(sql)?.execute(values)
    }

    fn see(&mut self, row: &PresenceRow, about: &str) -> Result<usize> {
        let statement = match &mut self.upsert_presence {
            Some(statement) => statement,
            none => none.insert(self.connection.prepare_cached(
                "INSERT INTO presence (contract, tenant, id, last_seen, about) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (contract, tenant, id) DO UPDATE
                 SET last_seen = excluded.last_seen, about = excluded.about
                 WHERE excluded.last_seen >= presence.last_seen
                 OR presence.last_seen > excluded.last_seen + ?6",
            )?),
        };
        let key = &row.key;
        let contract = contract_number(key.contract);
        statement.execute(params![contract, key.tenant.as_str(), key.id, row.last_seen.0, about, AHEAD_MS])
    }

    fn put_key(&self, key: &KeyRecord, record: &str) -> Result<usize> {
        let rows = self.run(
            "INSERT INTO keys (id, hash, record) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, record = excluded.record",
            params![key.id.as_str(), key.hash, record],
        )?;
        Ok(rows + self.know_tenant(&key.tenant, key.created_at)?)
    }

    fn end_sessions(&self, ended: &EndedSessions) -> Result<usize> {
        let (key, session) = (ended.key.as_str(), ended.session.as_ref().map_or("", SessionId::as_str));
        let mut rows = self.run(
            "INSERT INTO ended_sessions (key_id, session_id, until) VALUES (?1, ?2, ?3)
             ON CONFLICT (key_id, session_id) DO UPDATE SET until = max(until, excluded.until)",
            params![key, session, ended.until.0],
        )?;
        if ended.session.is_none() {
            let covered = "DELETE FROM ended_sessions WHERE key_id = ?1 AND session_id <> '' AND until <= ?2";
            rows += self.run(covered, params![key, ended.until.0])?;
        }
        Ok(rows)
    }

    fn know_tenant(&self, id: &TenantId, created_at: Millis) -> Result<usize> {
        self.run(
            "INSERT INTO tenants (id, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![id.as_str(), created_at.0],
        )
    }

    fn put_workspace(&self, workspace: &Workspace, record: &str) -> Result<usize> {
        let rows = self.run(
            "INSERT INTO workspaces (id, tenant, record) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, record = excluded.record",
            params![workspace.id.as_str(), workspace.tenant.as_str(), record],
        )?;
        Ok(rows + self.know_tenant(&workspace.tenant, workspace.created_at)?)
    }

    /// The workspace goes last: it knows the tenant that its presence row is found by.
    fn purge(&self, id: &WorkspaceId) -> Result<usize> {
        let id = id.as_str();
        let presence = "DELETE FROM presence WHERE contract = ?1 AND id = ?2
                        AND tenant = (SELECT tenant FROM workspaces WHERE id = ?2)";
        let mut rows = self.run(presence, params![contract_number(Contract::Molecule), id])?;
        rows += self.run("DELETE FROM structure_events WHERE workspace = ?1", [id])?;
        Ok(rows + self.run("DELETE FROM workspaces WHERE id = ?1", [id])?)
    }

    fn append(&self, event: &StructureEvent, record: &str) -> Result<usize> {
        self.run(
            "INSERT INTO structure_events (id, tenant, workspace, created_at, record)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
            params![event.id, event.tenant.as_str(), event.workspace.as_str(), event.created_at.0, record],
        )
    }

    fn put_delegation(&self, given: &Delegation, record: &str) -> Result<usize> {
        self.run(
            "INSERT INTO delegations (id, tenant, source, created_at, updated_at, open, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE
             SET source = excluded.source, created_at = excluded.created_at,
                 updated_at = excluded.updated_at, open = excluded.open, record = excluded.record
             WHERE delegations.tenant = excluded.tenant",
            params![
                given.id.as_str(),
                given.tenant.as_str(),
                given.source.as_str(),
                given.created_at.0,
                given.updated_at.0,
                crate::is_open(given),
                record
            ],
        )
    }
}

fn kind(what: &Drained) -> &'static str {
    match what {
        Drained::Worker(_) => "worker",
        Drained::Pool(_) => "pool",
    }
}

fn name(what: &Drained) -> &str {
    match what {
        Drained::Worker(id) => id.as_str(),
        Drained::Pool(id) => id.as_str(),
    }
}
