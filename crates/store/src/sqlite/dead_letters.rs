//! Dead letters, listed and counted.
//!
//! They are few, and pruned with their jobs: filters are applied to the records as they are read.

use super::listing::before;
use super::queries::page;
use super::rows::{from_text, store_error};
use crate::query::page_len;
use crate::{DeadLetterCounts, DeadLetterQuery, Page, StoreError};
use reveille_core::id::TenantId;
use reveille_core::job::DeadLetter;
use reveille_core::reason::Reason;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

pub(super) fn list(connection: &Connection, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
    let len = page_len(query.limit);
    let mut values = vec![before(query.cursor), Value::from(len as i64 + 1)];
    let mut preconditions = vec!["seq < ?1".to_owned()];
    let mut filter = |comparison: &str, value: Value| {
        values.push(value);
        preconditions.push(format!("{comparison} ?{}", values.len()));
    };
    if let Some(tenant) = &query.tenant {
        filter("tenant =", tenant.as_str().to_owned().into());
    }
    if let Some(job) = &query.job {
        filter("job_id =", job.as_str().to_owned().into());
    }
    if let Some(reason) = query.reason {
        filter("record ->> 'reason_code' =", reason.code().to_owned().into());
    }
    if let Some(topic) = &query.topic {
        filter("record ->> 'topic' =", topic.as_str().to_owned().into());
    }
    if let Some(before) = query.before {
        filter("record ->> 'created_at' <", before.0.into());
    }
    let source = match (&query.job, &query.tenant) {
        (None, Some(_)) => "INDEXED BY dead_letters_of_tenant",
        _ => "",
    };
    let preconditions = preconditions.join(" AND ");
    let sql = format!(
        "SELECT seq, record FROM dead_letters {source} WHERE {preconditions} ORDER BY seq DESC LIMIT ?2"
    );
    page(connection, &sql, values, len, |record| from_text(record, "a dead letter"))
}

pub(super) fn count(
    connection: &Connection,
    tenant: Option<&TenantId>,
) -> Result<DeadLetterCounts, StoreError> {
    let filter = if tenant.is_some() { "WHERE tenant = ?1" } else { "" };
    let sql = format!(
        "SELECT record ->> 'reason_code' AS reason, count(*) FROM dead_letters {filter} GROUP BY reason"
    );
    let rows = || {
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(tenant.map(TenantId::as_str)), |row| {
            let code: Option<String> = row.get(0)?;
            Ok((code.as_deref().and_then(Reason::parse), row.get::<_, i64>(1)? as u64))
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let mut counts = DeadLetterCounts::new();
    for (reason, count) in rows().map_err(|error| store_error(&error))? {
        *counts.entry(reason).or_default() += count;
    }
    Ok(counts)
}
