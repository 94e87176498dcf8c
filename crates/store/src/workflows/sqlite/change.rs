//! Changes to the tables. Each runs on the writer's thread, and may run more than once.

use crate::StoreError;
use crate::workflows::{RunStep, Saved};
use reveille_core::flow::LINES_MAX;
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use rusqlite::{Connection, OptionalExtension as _, Result, params};

pub const DONE: u64 = 0;
pub const CONFLICT: u64 = 1;
pub const DUPLICATE: u64 = 2;
pub const NO_ROOM: u64 = 3;

/// A step of a run as rows.
pub struct Encoded {
    step: RunStep,
    head: String,
    parts: Vec<(String, Option<String>)>,
    lines: Vec<(u64, String)>,
}

impl Encoded {
    pub fn of(step: &RunStep) -> std::result::Result<Self, StoreError> {
        let bad = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
        let head = serde_json::to_string(&step.change.head).map_err(bad)?;
        let first = step.change.head.lines - step.change.timeline.len() as u64 + 1;
        let line = |(n, line)| serde_json::to_string(line).map(|line| (n, line)).map_err(bad);
        let lines = (first..).zip(&step.change.timeline).map(line).collect::<std::result::Result<_, _>>()?;
        Ok(Self { head, parts: step.parts(), lines, step: step.clone() })
    }

    pub fn apply(&self, connection: &Connection) -> Result<u64> {
        let refused = match self.step.expects {
            Some(expects) => self.update(connection, expects)?,
            None => self.insert(connection)?,
        };
        if refused != DONE {
            return Ok(refused);
        }
        let id = self.step.change.head.id.as_str();
        let mut put = connection.prepare_cached("INSERT INTO run_parts (run, name, body) VALUES (?, ?, ?) ON CONFLICT (run, name) DO UPDATE SET body = excluded.body")?;
        let mut remove = connection.prepare_cached("DELETE FROM run_parts WHERE run = ? AND name = ?")?;
        for (name, body) in &self.parts {
            match body {
                Some(body) => put.execute(params![id, name, body])?,
                None => remove.execute(params![id, name])?,
            };
        }
        let mut line = connection.prepare_cached("INSERT INTO run_lines (run, n, body) VALUES (?, ?, ?)")?;
        for (n, body) in &self.lines {
            line.execute(params![id, *n as i64, body])?;
        }
        let last = self.step.change.head.lines;
        if last > LINES_MAX as u64 && !self.lines.is_empty() {
            let mut old = connection.prepare_cached("DELETE FROM run_lines WHERE run = ? AND n <= ?")?;
            old.execute(params![id, last as i64 - LINES_MAX as i64])?;
        }
        Ok(DONE)
    }

    fn update(&self, connection: &Connection, expects: u64) -> Result<u64> {
        let head = &self.step.change.head;
        let mut update = connection.prepare_cached(
            "UPDATE runs SET revision = ?, live = ?, is_open = ?, state = ?, updated_at = ?, head = ? WHERE id = ? AND revision = ?",
        )?;
        let changed = update.execute(params![
            head.revision as i64,
            head.is_live(),
            !head.state.is_terminal(),
            head.state.as_str(),
            head.updated_at.0,
            self.head,
            head.id.as_str(),
            expects as i64
        ])?;
        Ok(if changed == 1 { DONE } else { CONFLICT })
    }

    fn insert(&self, connection: &Connection) -> Result<u64> {
        let head = &self.step.change.head;
        let mut taken = connection
            .prepare_cached("SELECT 1 FROM runs WHERE id = ?1 OR (tenant = ?2 AND idempotency_key = ?3)")?;
        if taken.exists(params![head.id.as_str(), head.tenant.as_str(), head.idempotency_key])? {
            return Ok(DUPLICATE);
        }
        if let Some(max) = self.step.runs_max {
            let mut open =
                connection.prepare_cached("SELECT count(*) FROM runs WHERE tenant = ? AND is_open = 1")?;
            let open: u32 = open.query_row([head.tenant.as_str()], |row| row.get(0))?;
            if open >= max {
                return Ok(NO_ROOM);
            }
        }
        let mut version = connection
            .prepare_cached("SELECT 1 FROM workflows WHERE tenant = ? AND id = ? AND version = ?")?;
        if head.origin.goes_by_a_version()
            && !version.exists(params![head.tenant.as_str(), head.workflow.as_str(), head.version])?
        {
            return Ok(CONFLICT);
        }
        let mut insert = connection.prepare_cached(
            "INSERT INTO runs (id, revision, live, is_open, state, tenant, workflow, version, updated_at, idempotency_key, head)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        insert.execute(params![
            head.id.as_str(),
            head.revision as i64,
            head.is_live(),
            !head.state.is_terminal(),
            head.state.as_str(),
            head.tenant.as_str(),
            head.workflow.as_str(),
            head.version,
            head.updated_at.0,
            head.idempotency_key,
            self.head
        ])?;
        Ok(DONE)
    }
}

/// A workflow to save.
pub struct Save {
    saved: Saved,
    document: String,
    workflows_max: u32,
}

impl Save {
    pub fn encode(saved: &Saved, workflows_max: u32) -> std::result::Result<Self, StoreError> {
        let bad = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
        let document = serde_json::to_string(&saved.document).map_err(bad)?;
        Ok(Self { document, saved: saved.clone(), workflows_max })
    }

    /// The version that it has; 0, if there is no room for it.
    pub fn apply(&self, connection: &Connection) -> Result<u64> {
        let (tenant, id) = (self.saved.tenant.as_str(), self.saved.document.id.as_str());
        let mut last = connection.prepare_cached(
            "SELECT version, is_last, document FROM workflows WHERE tenant = ? AND id = ? ORDER BY version DESC LIMIT 1",
        )?;
        let last = last.query_row([tenant, id], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, bool>(1)?, row.get::<_, String>(2)?))
        });
        let last = last.optional()?;
        if let Some((version, true, _)) = last.as_ref().filter(|(_, _, document)| *document == self.document)
        {
            return Ok(u64::from(*version));
        }
        if !last.as_ref().is_some_and(|(_, is_final, _)| *is_final) {
            let mut count = connection
                .prepare_cached("SELECT count(*) FROM workflows WHERE tenant = ? AND is_last = 1")?;
            if count.query_row([tenant], |row| row.get::<_, u32>(0))? >= self.workflows_max {
                return Ok(0);
            }
        }
        let version = last.map_or(1, |(version, _, _)| version + 1);
        let saved = Saved { version, ..self.saved.clone() };
        let record = serde_json::to_string(&saved)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        connection
            .prepare_cached("UPDATE workflows SET is_last = 0 WHERE tenant = ? AND id = ? AND is_last = 1")?
            .execute([tenant, id])?;
        let mut insert = connection.prepare_cached(
            "INSERT INTO workflows (tenant, id, version, is_last, document, record) VALUES (?, ?, ?, 1, ?, ?)",
        )?;
        insert.execute(params![tenant, id, version, self.document, record])?;
        Ok(u64::from(version))
    }
}

pub fn delete_workflow(connection: &Connection, tenant: &TenantId, id: &WorkflowId) -> Result<u64> {
    let mut delete = connection
        .prepare_cached("UPDATE workflows SET is_last = 0 WHERE tenant = ? AND id = ? AND is_last = 1")?;
    Ok(delete.execute([tenant.as_str(), id.as_str()])? as u64)
}

pub fn delete_run(connection: &Connection, id: &RunId) -> Result<u64> {
    let gone =
        connection.prepare_cached("DELETE FROM runs WHERE id = ? AND live = 0")?.execute([id.as_str()])?;
    if gone > 0 {
        delete_rest(connection, id.as_str())?;
    }
    Ok(gone as u64)
}

fn delete_rest(connection: &Connection, id: &str) -> Result<()> {
    connection.prepare_cached("DELETE FROM run_parts WHERE run = ?")?.execute([id])?;
    connection.prepare_cached("DELETE FROM run_lines WHERE run = ?")?.execute([id])?;
    Ok(())
}

pub fn prune(connection: &Connection, ended_before: Millis, limit: usize) -> Result<u64> {
    let mut old = connection.prepare_cached(
        "SELECT id FROM runs WHERE live = 0 AND updated_at < ? ORDER BY updated_at LIMIT ?",
    )?;
    let ids = old
        .query_map(params![ended_before.0, limit as i64], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>>>()?;
    for id in &ids {
        connection.prepare_cached("DELETE FROM runs WHERE id = ?")?.execute([id])?;
        delete_rest(connection, id)?;
    }
    connection.execute(
        "DELETE FROM workflows WHERE is_last = 0 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.tenant = workflows.tenant
             AND runs.workflow = workflows.id AND runs.version = workflows.version)",
        [],
    )?;
    Ok(ids.len() as u64)
}
