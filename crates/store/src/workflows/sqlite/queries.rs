//! Queries on the tables, on a reader's thread.

use crate::workflows::{RunQuery, Saved};
use crate::{Page, StoreError, StoreResult, page_len};
use reveille_core::flow::{Node, Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use serde::de::DeserializeOwned;
use std::sync::Arc;

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` has it")]
fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn read<T: DeserializeOwned>(text: &str) -> StoreResult<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub fn workflow(
    connection: &Connection,
    tenant: &TenantId,
    id: &WorkflowId,
    version: Option<u32>,
) -> StoreResult<Option<Arc<Saved>>> {
    let which = if version.is_some() { "version = ?3" } else { "is_last = 1 AND ?3 IS NULL" };
    let sql = format!("SELECT record FROM workflows WHERE tenant = ?1 AND id = ?2 AND {which}");
    let mut query = connection.prepare_cached(&sql).map_err(failed)?;
    let found =
        query.query_row(params![tenant.as_str(), id.as_str(), version], |row| row.get::<_, String>(0));
    found.optional().map_err(failed)?.map(|record| read(&record).map(Arc::new)).transpose()
}

pub fn workflows(
    connection: &Connection,
    tenant: &TenantId,
    after: Option<&WorkflowId>,
    limit: usize,
) -> StoreResult<Vec<Arc<Saved>>> {
    let mut query = connection
        .prepare_cached(
            "SELECT record FROM workflows WHERE tenant = ? AND is_last = 1 AND id > ? ORDER BY id LIMIT ?",
        )
        .map_err(failed)?;
    let after = after.map_or("", WorkflowId::as_str);
    let rows = query
        .query_map(params![tenant.as_str(), after, limit as i64], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    rows.map(|row| read(&row.map_err(failed)?).map(Arc::new)).collect()
}

pub fn holder(
    connection: &Connection,
    id: &RunId,
    tenant: &TenantId,
    key: Option<&str>,
) -> StoreResult<Option<RunId>> {
    let mut query = connection
        .prepare_cached("SELECT id FROM runs WHERE id = ?1 OR (tenant = ?2 AND idempotency_key = ?3)")
        .map_err(failed)?;
    let found = query.query_row(params![id.as_str(), tenant.as_str(), key], |row| row.get::<_, String>(0));
    Ok(found.optional().map_err(failed)?.map(RunId::known))
}

/// Head and parts are read in one transaction, so that they have the same revision.
pub fn run(connection: &Connection, id: &RunId) -> StoreResult<Option<Run>> {
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let mut query = transaction.prepare_cached("SELECT head FROM runs WHERE id = ?").map_err(failed)?;
    let head = query.query_row([id.as_str()], |row| row.get::<_, String>(0)).optional().map_err(failed)?;
    let Some(head) = head else { return Ok(None) };
    let mut query = transaction
        .prepare_cached("SELECT name, body FROM run_parts WHERE run = ? ORDER BY name")
        .map_err(failed)?;
    let rows = query.query_map([id.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let parts = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(failed)?;
    let parts = parts.iter().map(|(name, body)| (name.as_str(), body.as_str()));
    Run::of_parts(read(&head)?, parts).map(Some).map_err(StoreError::Corrupt)
}

pub fn node(connection: &Connection, id: &RunId, name: &str) -> StoreResult<Option<Node>> {
    let mut query =
        connection.prepare_cached("SELECT body FROM run_parts WHERE run = ? AND name = ?").map_err(failed)?;
    let found = query.query_row([id.as_str(), name], |row| row.get::<_, String>(0)).optional();
    found.map_err(failed)?.map(|body| read(&body)).transpose()
}

pub fn runs(connection: &Connection, query: &RunQuery) -> StoreResult<Page<RunHead>> {
    let mut filter = vec!["1 = 1".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut only = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            filter.push(condition.to_owned());
            values.push(value);
        }
    };
    let text = |text: &str| Value::Text(text.to_owned());
    only("tenant = ?", query.tenant.as_ref().map(|tenant| text(tenant.as_str())));
    only("workflow = ?", query.workflow.as_ref().map(|workflow| text(workflow.as_str())));
    only("state = ?", query.state.map(|state| text(state.as_str())));
    only("json_extract(head, '$.actor.team') = ?", query.team.as_deref().map(text));
    only("updated_at >= ?", query.updated_after.map(|after| Value::Integer(after.0)));
    only("updated_at <= ?", query.updated_before.map(|before| Value::Integer(before.0)));
    only("seq < ?", query.cursor.map(|cursor| Value::Integer(i64::try_from(cursor).unwrap_or(i64::MAX))));
    let limit = page_len(query.limit);
    values.push(Value::Integer(limit as i64 + 1));
    let sql = format!("SELECT seq, head FROM runs WHERE {} ORDER BY seq DESC LIMIT ?", filter.join(" AND "));
    let mut statement = connection.prepare_cached(&sql).map_err(failed)?;
    let rows = statement.query_map(params_from_iter(values), |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
    });
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(failed)?;
    let next = (rows.len() > limit).then(|| rows[limit - 1].0);
    let items = rows.iter().take(limit).map(|(_, head)| read(head)).collect::<StoreResult<_>>()?;
    Ok(Page { items, next })
}

pub fn live(connection: &Connection, cursor: Option<u64>, limit: usize) -> StoreResult<Page<RunId>> {
    let mut query = connection
        .prepare_cached("SELECT seq, id FROM runs WHERE live = 1 AND seq > ? ORDER BY seq LIMIT ?")
        .map_err(failed)?;
    let rows = query.query_map(params![cursor.unwrap_or(0) as i64, limit as i64 + 1], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
    });
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(failed)?;
    let next = (rows.len() > limit).then(|| rows[limit - 1].0);
    Ok(Page { items: rows.into_iter().take(limit).map(|(_, id)| RunId::known(id)).collect(), next })
}

/// Only servers that share a store ask, so there is no index for it.
pub fn due(connection: &Connection, by: Millis, limit: usize) -> StoreResult<Vec<RunId>> {
    let mut query = connection
        .prepare_cached("SELECT id FROM runs WHERE live = 1 AND json_extract(head, '$.due') <= ? LIMIT ?")
        .map_err(failed)?;
    let rows = query.query_map(params![by.0, limit as i64], |row| row.get::<_, String>(0));
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(failed)?;
    Ok(rows.into_iter().map(RunId::known).collect())
}

pub fn timeline(
    connection: &Connection,
    id: &RunId,
    after: u64,
    limit: usize,
) -> StoreResult<Vec<(u64, TimelineEntry)>> {
    let mut query = connection
        .prepare_cached("SELECT n, body FROM run_lines WHERE run = ? AND n > ? ORDER BY n LIMIT ?")
        .map_err(failed)?;
    let rows = query.query_map(params![id.as_str(), after as i64, limit as i64], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
    });
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(failed)?;
    rows.into_iter().map(|(n, line)| Ok((n, read(&line)?))).collect()
}
