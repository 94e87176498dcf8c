//! The writing side of the audit trail.
//!
//! An entry needs the hash of the one before it, so the writer caches the head of every chain it has recently written
//! to. The cache matches the file: heads that the current transaction has moved are kept separately until it is
//! committed, and when it is rolled back everything is read from the file again.

use reveille_core::audit::{Draft, Hash, Link};
use reveille_core::id::{JobId, TenantId};
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Result, Row, Statement, params};
use std::collections::BTreeMap;

/// Heads that are kept between transactions; with more tenants than this they are read again.
const HEADS_MAX: usize = 4096;

pub(super) struct Chains<'c> {
    /// As they are in the file.
    heads: BTreeMap<TenantId, Link>,
    /// As the current transaction leaves them.
    moved: BTreeMap<TenantId, Link>,
    append: Statement<'c>,
    recorded_head: Statement<'c>,
    newest: Statement<'c>,
    put_head: Statement<'c>,
    last_to_prune: Statement<'c>,
    entries_to_prune: Statement<'c>,
    put_boundary: Statement<'c>,
    delete: Statement<'c>,
}

impl<'c> Chains<'c> {
    pub fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            heads: BTreeMap::new(),
            moved: BTreeMap::new(),
            append: connection.prepare(
                "INSERT INTO audit (tenant, seq, at, event_type, severity, action, identity, job_id, decision,
                                    matched_rule, reason, policy_version, extra, prev_hash, event_hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?,
            recorded_head: connection
                .prepare("SELECT head_seq, head_hash FROM audit_chains WHERE tenant = ?1")?,
            newest: connection.prepare(
                "SELECT seq, event_hash FROM audit INDEXED BY audit_of_tenant
                 WHERE tenant = ?1 ORDER BY seq DESC LIMIT 1",
            )?,
            put_head: connection.prepare(
                "INSERT INTO audit_chains (tenant, head_seq, head_hash, boundary_seq, boundary_hash)
                 VALUES (?1, ?2, ?3, 0, zeroblob(32))
                 ON CONFLICT (tenant) DO UPDATE SET head_seq = excluded.head_seq,
                                                    head_hash = excluded.head_hash",
            )?,
            last_to_prune: connection.prepare(
                "SELECT max(id) FROM (SELECT id, at FROM audit ORDER BY id LIMIT ?2) WHERE at < ?1",
            )?,
            entries_to_prune: connection
                .prepare("SELECT tenant, seq, event_hash FROM audit WHERE id <= ?1 ORDER BY id")?,
            put_boundary: connection.prepare(
                "UPDATE audit_chains SET boundary_seq = ?2, boundary_hash = ?3 WHERE tenant = ?1",
            )?,
            delete: connection.prepare("DELETE FROM audit WHERE id <= ?1")?,
        })
    }

    /// Appends to the chains of the drafts' tenants.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<()> {
        for draft in drafts {
            let head = self.head(&draft.tenant)?;
            let next = head.next(draft);
            self.insert(draft, &head, &next)?;
            self.moved.insert(draft.tenant.clone(), next);
        }
        Ok(())
    }

    /// Records where the chains end now. To be done before the transaction is committed.
    pub fn seal(&mut self) -> Result<()> {
        for (tenant, head) in &self.moved {
            self.put_head.execute(params![tenant.as_str(), head.seq as i64, head.hash.0])?;
        }
        Ok(())
    }

    /// What was sealed is in the file.
    pub fn committed(&mut self) {
        self.heads.extend(std::mem::take(&mut self.moved));
        if self.heads.len() > HEADS_MAX {
            self.heads.clear();
        }
    }

    pub fn rolled_back(&mut self) {
        self.moved.clear();
        self.heads.clear();
    }

    /// Removes the oldest entries, up to the last one that is old enough.
    pub fn prune(&mut self, before: Millis, limit: usize) -> Result<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let last: Option<i64> = self.last_to_prune.query_row(params![before.0, limit], |row| row.get(0))?;
        let Some(last) = last else { return Ok(0) };
        // A chain that was begun in this transaction has no row for its boundary yet.
        self.seal()?;
        let mut boundaries = BTreeMap::new();
        let mut gone = self.entries_to_prune.query([last])?;
        while let Some(row) = gone.next()? {
            boundaries.insert(row.get::<_, String>(0)?, (row.get::<_, i64>(1)?, row.get::<_, [u8; 32]>(2)?));
        }
        drop(gone);
        for (tenant, (seq, hash)) in boundaries {
            self.put_boundary.execute(params![tenant, seq, hash])?;
        }
        Ok(self.delete.execute([last])? as u64)
    }

    fn insert(&mut self, draft: &Draft, head: &Link, next: &Link) -> Result<()> {
        self.append.execute(params![
            draft.tenant.as_str(),
            next.seq as i64,
            draft.at.0,
            draft.event_type.as_str(),
            draft.severity.as_str(),
            draft.action,
            draft.identity,
            draft.job_id.as_ref().map(JobId::as_str),
            draft.decision.map(Decision::as_str),
            draft.matched_rule,
            draft.reason,
            draft.policy_version,
            super::tables::json(&draft.extra)?,
            head.hash.0,
            next.hash.0,
        ])?;
        Ok(())
    }

    fn head(&mut self, tenant: &TenantId) -> Result<Link> {
        if let Some(head) = self.moved.get(tenant).or_else(|| self.heads.get(tenant)) {
            return Ok(*head);
        }
        let recorded = self.recorded_head.query_row([tenant.as_str()], link).optional()?.unwrap_or_default();
        // They agree, unless someone else wrote to the file. Then the chain continues after the higher number, so
        // that no jobs are held up; the inconsistency is for a check to find.
        let newest = self.newest.query_row([tenant.as_str()], link).optional()?.unwrap_or_default();
        Ok(if newest.seq > recorded.seq { newest } else { recorded })
    }
}

fn link(row: &Row<'_>) -> Result<Link> {
    Ok(Link { seq: row.get::<_, i64>(0)? as u64, hash: Hash(row.get(1)?) })
}
