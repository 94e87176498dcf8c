//! The writing side of the tables: each kind of change as SQL, prepared once.
//!
//! A change that is refused (a conflict, a duplicate) is refused by its first statement, which then has changed
//! nothing; so changes share a transaction without savepoints. Any error of SQLite's own ends the whole transaction,
//! which the writer handles.

use super::chains::Chains;
use super::change::{Applied, ChangeOutcome, SqliteChange};
use super::locks;
use crate::{BlobKey, DEAD_PACKET_KEEP_MS, PutMode};
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Result, Statement, named_params, params};

pub(super) struct Tables<'c> {
    connection: &'c Connection,
    pub chains: Chains<'c>,
    /// Numbers are given out once, to jobs and dead letters alike; a number may be skipped.
    sequence_last: i64,
    insert_job: Statement<'c>,
    update_live_job: Statement<'c>,
    update_job: Statement<'c>,
    state_of_job: Statement<'c>,
    holder_of_key: Statement<'c>,
    put_dead_letter: Statement<'c>,
    delete_dead_letter: Statement<'c>,
    put_blob: Statement<'c>,
    put_blob_if_absent: Statement<'c>,
    delete_blob: Statement<'c>,
    delete_blob_if_visible: Statement<'c>,
    ended_jobs: Statement<'c>,
    delete_job: Statement<'c>,
    expired_blobs: Statement<'c>,
    delete_lapsed_locks: Statement<'c>,
    delete_old_packets: Statement<'c>,
}

impl<'c> Tables<'c> {
    pub fn prepare(connection: &'c Connection) -> Result<Self> {
        let sequence_last = "SELECT max(coalesce((SELECT max(seq) FROM jobs), 0),
                                        coalesce((SELECT max(seq) FROM dead_letters), 0))";
        Ok(Self {
            connection,
            chains: Chains::prepare(connection)?,
            sequence_last: connection.query_row(sequence_last, [], |row| row.get(0))?,
            insert_job: connection.prepare(
                "INSERT INTO jobs (seq, id, revision, live, state, updated_at, tenant, topic, team,
                                   trace_id, idempotency_key, record, asked)
                 VALUES (:seq, :id, :revision, :live, :state, :updated_at, :tenant, :topic, :team,
                         :trace_id, :idempotency_key, :record, :state = 'APPROVAL_REQUIRED')
                 ON CONFLICT DO NOTHING",
            )?,
            // Naming `live` would rewrite the index over live jobs with every change of one.
            update_live_job: connection.prepare(
                "UPDATE jobs SET revision = revision + 1, state = :state, updated_at = :updated_at,
                                 record = :record, asked = asked OR :state = 'APPROVAL_REQUIRED'
                 WHERE id = :id AND revision = :expects AND live = 1",
            )?,
            update_job: connection.prepare(
                "UPDATE jobs SET revision = revision + 1, state = :state, updated_at = :updated_at,
                                 record = :record, asked = asked OR :state = 'APPROVAL_REQUIRED',
                                 live = :live
                 WHERE id = :id AND revision = :expects",
            )?,
            state_of_job: connection.prepare("SELECT state FROM jobs WHERE id = ?1")?,
            holder_of_key: connection
                .prepare("SELECT id FROM jobs WHERE tenant = ?1 AND idempotency_key = ?2")?,
            put_dead_letter: connection.prepare(
                "INSERT OR REPLACE INTO dead_letters (seq, job_id, tenant, record) VALUES (?1, ?2, ?3, ?4)",
            )?,
            delete_dead_letter: connection.prepare("DELETE FROM dead_letters WHERE job_id = ?1")?,
            put_blob: connection.prepare(
                "INSERT INTO blobs (key, expires_at, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
            )?,
            put_blob_if_absent: connection.prepare(
                "INSERT INTO blobs (key, expires_at, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
                 WHERE blobs.expires_at <= ?4",
            )?,
            delete_blob: connection.prepare("DELETE FROM blobs WHERE key = ?1")?,
            delete_blob_if_visible: connection
                .prepare("DELETE FROM blobs WHERE key = ?1 AND expires_at > ?2")?,
            ended_jobs: connection.prepare(
                "SELECT id FROM jobs INDEXED BY jobs_ended
                 WHERE live = 0 AND updated_at < ?1 ORDER BY updated_at, seq LIMIT ?2",
            )?,
            delete_job: connection.prepare("DELETE FROM jobs WHERE id = ?1")?,
            expired_blobs: connection.prepare(
                "SELECT key FROM blobs INDEXED BY blobs_by_expiry
                 WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2",
            )?,
            // Without an index: a lock is a row only while it is held, so there are few.
            delete_old_packets: connection.prepare("DELETE FROM dead_packets WHERE buried_at <= ?1")?,
            delete_lapsed_locks: connection.prepare(
                "DELETE FROM locks WHERE fence IN (SELECT fence FROM locks WHERE until <= ?1 LIMIT ?2)",
            )?,
        })
    }

    /// Makes one change inside the current transaction.
    pub fn apply(&mut self, change: &SqliteChange) -> Result<Applied> {
        match change {
            SqliteChange::Step { job, expects, record, blobs, audit } => {
                let outcome = self.step(job, *expects, record, blobs)?;
                if let ChangeOutcome::Rows(_) = outcome {
                    self.chains.append(audit)?;
                }
                Ok(outcome.into())
            }
            SqliteChange::PutBlob { key, value, expires_at, mode, now } => {
                let rows = match mode {
                    PutMode::Under(lock) if !locks::is_held(self.connection, lock, *now)? => Ok(0),
                    PutMode::Always | PutMode::Under(_) => {
                        self.put_blob.execute(params![key.as_str(), expires_at.0, &value[..]])
                    }
                    PutMode::IfAbsent => self.put_blob_if_absent.execute(params![
                        key.as_str(),
                        expires_at.0,
                        &value[..],
                        now.0
                    ]),
                };
                Ok(ChangeOutcome::Rows(rows? as u64).into())
            }
            SqliteChange::DeleteBlobs { keys, now } => {
                let mut rows = 0;
                for key in keys {
                    rows += self.delete_blob_if_visible.execute(params![key.as_str(), now.0])? as u64;
                }
                Ok(ChangeOutcome::Rows(rows).into())
            }
            SqliteChange::RemoveDeadLetter(job) => {
                Ok(ChangeOutcome::Rows(self.delete_dead_letter.execute([job.as_str()])? as u64).into())
            }
            SqliteChange::Prune { ended_before, now, limit } => self.prune(*ended_before, *now, *limit),
            SqliteChange::Record { under: Some((lock, now)), .. }
                if !locks::is_held(self.connection, lock, *now)? =>
            {
                Ok(ChangeOutcome::Rows(0).into())
            }
            SqliteChange::Record { drafts, .. } => {
                self.chains.append(drafts)?;
                Ok(ChangeOutcome::Rows(1).into())
            }
            SqliteChange::PruneAudit { before, limit } => {
                Ok(ChangeOutcome::Rows(self.chains.prune(*before, *limit)?).into())
            }
            SqliteChange::Other(change) => Ok(ChangeOutcome::Rows(change(self.connection)?).into()),
        }
    }

    fn step(
        &mut self,
        job: &Job,
        expects: Option<u64>,
        record: &str,
        blobs: &[(BlobKey, Bytes, Millis)],
    ) -> Result<ChangeOutcome> {
        let letter = match job.dead_letter() {
            Some(letter) if self.state_before(job)?.as_deref() != Some(job.state().as_str()) => Some(letter),
            _ => None,
        };
        match expects {
            None => {
                if !self.insert(job, record)? {
                    return self.holder(job).map(ChangeOutcome::Duplicate);
                }
            }
            Some(revision) => {
                if !self.update(job, revision, record)? {
                    return Ok(ChangeOutcome::Conflict);
                }
            }
        }
        if let Some(letter) = letter {
            self.sequence_last += 1;
            let text = json(&letter)?;
            let tenant = letter.tenant.as_str();
            self.put_dead_letter.execute(params![self.sequence_last, job.id().as_str(), tenant, text])?;
        }
        if job.was_released() {
            self.delete_dead_letter.execute([job.id().as_str()])?;
        }
        for (key, value, expires_at) in blobs {
            self.put_blob.execute(params![key.as_str(), expires_at.0, &value[..]])?;
        }
        Ok(ChangeOutcome::Rows(1))
    }

    fn insert(&mut self, job: &Job, record: &str) -> Result<bool> {
        self.sequence_last += 1;
        let request = &job.request;
        let rows = self.insert_job.execute(named_params! {
            ":seq": self.sequence_last,
            ":id": request.id.as_str(),
            ":revision": job.revision as i64,
            ":live": job.is_live(),
            ":state": job.state().as_str(),
            ":updated_at": job.updated_at.0,
            ":tenant": request.tenant.as_str(),
            ":topic": request.topic.as_str(),
            ":team": request.actor.team,
            ":trace_id": request.trace_id,
            ":idempotency_key": request.idempotency_key,
            ":record": record,
        })?;
        Ok(rows == 1)
    }

    /// Compares and swaps.
    fn update(&mut self, job: &Job, expects: u64, record: &str) -> Result<bool> {
        let (id, state) = (job.id().as_str(), job.state().as_str());
        if job.is_live() {
            let rows = self.update_live_job.execute(named_params! {
                ":id": id, ":expects": expects as i64, ":state": state, ":updated_at": job.updated_at.0,
                ":record": record,
            })?;
            if rows == 1 {
                return Ok(true);
            }
        }
        let rows = self.update_job.execute(named_params! {
            ":id": id, ":expects": expects as i64, ":state": state, ":updated_at": job.updated_at.0,
            ":record": record, ":live": job.is_live(),
        })?;
        Ok(rows == 1)
    }

    fn state_before(&mut self, job: &Job) -> Result<Option<String>> {
        self.state_of_job.query_row([job.id().as_str()], |row| row.get(0)).optional()
    }

    /// Whose id or idempotency key a refused new job has.
    fn holder(&mut self, job: &Job) -> Result<JobId> {
        if self.state_before(job)?.is_some() {
            return Ok(job.id().clone());
        }
        let key = params![job.request.tenant.as_str(), job.request.idempotency_key];
        self.holder_of_key.query_row(key, |row| row.get::<_, String>(0)).map(JobId::known)
    }

    fn prune(&mut self, ended_before: Millis, now: Millis, limit: usize) -> Result<Applied> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut applied = Applied::from(ChangeOutcome::Rows(0));
        let mut rows = 0;
        let ended =
            self.ended_jobs.query_map(params![ended_before.0, limit], |row| row.get::<_, String>(0))?;
        for id in ended.collect::<Result<Vec<_>>>()? {
            let id = JobId::known(id);
            rows += self.delete_job.execute([id.as_str()])?;
            rows += self.delete_dead_letter.execute([id.as_str()])?;
            for key in [BlobKey::context_of(&id), BlobKey::result_of(&id)] {
                rows += self.delete_blob.execute([key.as_str()])?;
                applied.blobs_gone.push(key);
            }
            applied.jobs_gone.push(id);
        }
        let expired = self.expired_blobs.query_map(params![now.0, limit], |row| row.get::<_, String>(0))?;
        for key in expired.collect::<Result<Vec<_>>>()? {
            rows += self.delete_blob.execute([&key])?;
            applied.blobs_gone.extend(BlobKey::parse_readable(&key));
        }
        rows += self.delete_lapsed_locks.execute(params![now.0, limit])?;
        rows += self.delete_old_packets.execute([now.0 - DEAD_PACKET_KEEP_MS])?;
        applied.outcome = ChangeOutcome::Rows(rows as u64);
        Ok(applied)
    }
}

pub(super) fn json<T: serde::Serialize>(record: &T) -> Result<String> {
    serde_json::to_string(record).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
