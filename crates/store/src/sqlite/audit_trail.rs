//! The reading side of the audit trail.
//!
//! As with jobs, the index is named: by number within a tenant, by job, by the kind of event where that
//! is rare, and otherwise by the order of recording. Within one tenant that order and the numbers agree.

use super::listing::{Listing, before};
use super::rows::from_text;
use super::schema::RARE_EVENTS;
use crate::query::page_len;
use crate::{AuditOrder, AuditQuery, ChainPage, Page, StoreError};
use reveille_core::audit::{Bounds, Draft, Entry, EventType, Hash, Link, Severity};
use reveille_core::id::{JobId, TenantId};
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

const COLUMNS: &str =
    "tenant, seq, at, event_type, severity, action, identity, job_id, decision, matched_rule,
                       reason, policy_version, extra, prev_hash, event_hash";

/// One page of entries.
pub(super) fn list(connection: &Connection, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
    let (sql, values) = listing(query);
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| {
        let number = if query.tenant.is_some() { row.get::<_, i64>("seq") } else { row.get("id") };
        Ok((number?.max(0) as u64, entry(row)))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let page = Page::take(page_len(query.limit), rows.into_iter());
    Ok(Page { items: readable(page.items), next: page.next })
}

/// A piece of a chain and its bounds, both as of one moment.
pub(super) fn chain(
    connection: &Connection,
    tenant: &TenantId,
    after: u64,
    limit: usize,
) -> Result<ChainPage, StoreError> {
    let moment = connection.unchecked_transaction()?;
    let mut bounds = moment.prepare_cached(
        "SELECT boundary_seq, boundary_hash, head_seq, head_hash FROM audit_chains WHERE tenant = ?1",
    )?;
    let link = |row: &Row<'_>, at: usize| {
        Ok::<_, rusqlite::Error>(Link { seq: row.get::<_, i64>(at)? as u64, hash: Hash(row.get(at + 1)?) })
    };
    let bounds = bounds
        .query_row([tenant.as_str()], |row| Ok(Bounds { boundary: link(row, 0)?, head: link(row, 2)? }))
        .optional()?;
    let mut entries = moment.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM audit INDEXED BY audit_of_tenant
         WHERE tenant = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    ))?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let len = page_len(limit) as i64;
    let entries = entries.query_map(params![tenant.as_str(), after, len], |row| Ok(entry(row)))?;
    let entries = readable(entries.collect::<rusqlite::Result<Vec<_>>>()?);
    Ok(ChainPage { bounds: bounds.unwrap_or_default(), entries })
}

/// The tenants that have a chain.
pub(super) fn chains(
    connection: &Connection,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TenantId>, StoreError> {
    let after = after.map_or("", |after| after.as_str());
    let mut names =
        connection.prepare("SELECT tenant FROM audit_chains WHERE tenant > ?1 ORDER BY tenant LIMIT ?2")?;
    let names = names.query_map(params![after, page_len(limit) as i64], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
    names.iter().map(|name| read(name, |name| TenantId::parse(name).ok())).collect()
}

/// The statement and its values, for one row more than a page holds.
fn listing(query: &AuditQuery) -> (String, Vec<Value>) {
    let mut listing = Listing::default();
    let number = if query.tenant.is_some() { "seq" } else { "id" };
    let direction = match query.order {
        AuditOrder::NewestFirst => {
            listing.filter(&format!("{number} <"), before(query.cursor));
            "DESC"
        }
        AuditOrder::OldestFirst => {
            let after = query.cursor.map_or(0, |cursor| i64::try_from(cursor).unwrap_or(i64::MAX));
            listing.filter(&format!("{number} >"), after);
            "ASC"
        }
    };
    if let Some(tenant) = &query.tenant {
        listing.filter("tenant =", tenant.as_str().to_owned());
    }
    if let Some(event_type) = query.event_type {
        listing.filter("event_type =", event_type.as_str().to_owned());
    }
    if let Some(severity) = query.severity {
        listing.filter("severity =", severity.as_str().to_owned());
    }
    if let Some(job) = &query.job_id {
        listing.filter("job_id =", job.as_str().to_owned());
    }
    if let Some(from) = query.from {
        listing.filter("at >=", from.0);
    }
    if let Some(to) = query.to {
        listing.filter("at <=", to.0);
    }
    let (source, order) = if query.job_id.is_some() {
        ("INDEXED BY audit_of_job", "id")
    } else if query.event_type.is_some_and(|event_type| event_type != EventType::Decision) {
        // A partial index can only be used by a statement that repeats its condition word for word.
        listing.preconditions.push(RARE_EVENTS.to_owned());
        ("INDEXED BY audit_rare", "id")
    } else if query.tenant.is_some() {
        ("INDEXED BY audit_of_tenant", "seq")
    } else {
        ("NOT INDEXED", "id")
    };
    listing.values.push(Value::from(page_len(query.limit) as i64 + 1));
    let (preconditions, limit) = (listing.preconditions.join(" AND "), listing.values.len());
    let sql = format!(
        "SELECT {COLUMNS}, id FROM audit {source} WHERE {preconditions} ORDER BY {order} {direction} LIMIT ?{limit}"
    );
    (sql, listing.values)
}

/// Unreadable entries are left out, and so noticed by whoever checks the chain; they hide no others.
fn readable(entries: Vec<Result<Entry, StoreError>>) -> Vec<Entry> {
    let readable = entries.into_iter().filter_map(|entry| {
        entry.inspect_err(|error| tracing::error!(%error, "an entry of the audit trail is left out")).ok()
    });
    readable.collect()
}

fn entry(row: &Row<'_>) -> Result<Entry, StoreError> {
    let text = |at: usize| row.get::<_, String>(at);
    let job_id = row.get::<_, Option<String>>(7)?;
    let decision = row.get::<_, Option<String>>(8)?;
    let draft = Draft {
        tenant: read(&text(0)?, |id| TenantId::parse(id).ok())?,
        at: Millis(row.get(2)?),
        event_type: read(&text(3)?, EventType::parse)?,
        severity: read(&text(4)?, Severity::parse)?,
        action: text(5)?,
        identity: text(6)?,
        job_id: job_id.map(|id| read(&id, |id| JobId::parse(id).ok())).transpose()?,
        decision: decision.map(|word| read(&word, Decision::parse)).transpose()?,
        matched_rule: text(9)?,
        reason: text(10)?,
        policy_version: text(11)?,
        extra: from_text(&text(12)?, "an entry")?,
    };
    let seq = row.get::<_, i64>(1)?.max(0) as u64;
    Ok(Entry { seq, draft, prev_hash: Hash(row.get(13)?), event_hash: Hash(row.get(14)?) })
}

fn read<T>(word: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
    parse(word).ok_or_else(|| StoreError::Corrupt(format!("an entry has {word:?} in it")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn every_list_is_read_in_order_from_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&schema::create()).unwrap();
        let check = |query: AuditQuery, expected: &str| {
            for order in [AuditOrder::NewestFirst, AuditOrder::OldestFirst] {
                let (sql, values) = listing(&AuditQuery { order, ..query.clone() });
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let plan = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3));
                let plan = plan.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
                assert!(plan.contains(expected), "{plan}");
                assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
            }
        };
        let all = AuditQuery::default();
        let one = AuditQuery { tenant: Some(TenantId::known("t")), ..all.clone() };
        let job_id = Some(JobId::known("j"));
        check(all.clone(), "INTEGER PRIMARY KEY (rowid");
        check(one.clone(), "audit_of_tenant (tenant=? AND seq");
        for query in [all, one] {
            check(AuditQuery { job_id: job_id.clone(), ..query.clone() }, "audit_of_job (job_id=?");
            for event_type in [EventType::Approval, EventType::Auth] {
                check(
                    AuditQuery { event_type: Some(event_type), ..query.clone() },
                    "audit_rare (event_type=?",
                );
            }
        }
    }
}
