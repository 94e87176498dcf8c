//! The statement behind a list of jobs.
//!
//! SQLite is told which index to use: it has no statistics of a file that is always changing, and the order by `seq`
//! must come from the index, not from sorting everything that matches. Topics, teams and times have no index: rows
//! that the index yields and that do not match come without their record, so that the reader can count what was
//! examined.

use super::schema::{RARE_STATES, WAITING_STATES};
use crate::JobQuery;
use reveille_core::job::State;
use rusqlite::types::Value;

/// The index of jobs that a person was asked about. Its column comes after the record, and is not read for each row.
const ASKED: &str = "INDEXED BY jobs_asked";

/// The statement and its values. Its rows are those that the index yields; the reader stops when a page is full.
pub(super) fn listing(query: &JobQuery) -> (String, Vec<Value>) {
    let mut listing = Listing::default();
    listing.filter("seq <", before(query.cursor));
    let source = listing.narrow(query);
    let walked = std::mem::take(&mut listing.preconditions).join(" AND ");
    if let Some(tenant) = &query.tenant {
        listing.filter("tenant =", tenant.as_str().to_owned());
    }
    if let Some(topic) = &query.topic {
        listing.filter("topic =", topic.as_str().to_owned());
    }
    if let Some(team) = &query.team {
        listing.filter("team =", team.clone());
    }
    if let Some(after) = query.updated_after {
        listing.filter("updated_at >=", after.0);
    }
    if let Some(before) = query.updated_before {
        listing.filter("updated_at <=", before.0);
    }
    if let Some(state) = query.state {
        listing.filter("state =", state.as_str().to_owned());
    }
    if query.asked && source != ASKED {
        listing.preconditions.push("asked = 1".to_owned());
    }
    if listing.preconditions.is_empty() {
        listing.preconditions.push("1".to_owned());
    }
    let fits = listing.preconditions.join(" AND ");
    let sql = format!(
        "SELECT seq, CASE WHEN {fits} THEN record END FROM jobs {source} WHERE {walked} ORDER BY seq DESC"
    );
    (sql, listing.values)
}

/// Where a list that ended at `cursor` continues: with older jobs.
pub(super) fn before(cursor: Option<u64>) -> Value {
    Value::from(cursor.and_then(|cursor| i64::try_from(cursor).ok()).unwrap_or(i64::MAX))
}

/// A condition that grows.
#[derive(Default)]
pub(super) struct Listing {
    pub preconditions: Vec<String>,
    pub values: Vec<Value>,
}

impl Listing {
    pub fn filter(&mut self, comparison: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.preconditions.push(format!("{comparison} ?{}", self.values.len()));
    }

    /// Picks the index that leaves the fewest rows, and returns its condition. A partial index can only be used by a
    /// statement that repeats its condition word for word.
    fn narrow(&mut self, query: &JobQuery) -> &'static str {
        if let Some(trace_id) = &query.trace_id {
            self.filter("trace_id =", trace_id.clone());
            let number = self.values.len();
            self.preconditions.push(format!(
                "seq IN (SELECT seq FROM jobs INDEXED BY jobs_of_trace
                             WHERE trace_id = ?{number} AND trace_id <> id
                         UNION ALL SELECT seq FROM jobs WHERE id = ?{number})"
            ));
            return "NOT INDEXED";
        }
        if self.has_state(query, WAITING_STATES) {
            return "INDEXED BY jobs_waiting";
        }
        if query.asked {
            self.preconditions.push("asked = 1".to_owned());
            return ASKED;
        }
        if self.has_state(query, RARE_STATES) {
            return "INDEXED BY jobs_ended_badly";
        }
        if query.state.is_some_and(|state| !state.is_terminal()) {
            self.preconditions.push("live = 1".to_owned());
            return "INDEXED BY jobs_live";
        }
        let Some(tenant) = &query.tenant else { return "NOT INDEXED" };
        self.filter("tenant =", tenant.as_str().to_owned());
        "INDEXED BY jobs_of_tenant"
    }

    /// Whether the list is of one of these states, which have an index together.
    fn has_state(&mut self, query: &JobQuery, states: &str) -> bool {
        let is_among = |state: &State| states.contains(&format!("'{state}'"));
        let Some(state) = query.state.filter(is_among) else { return false };
        self.preconditions.push(format!("state IN {states}"));
        self.filter("state =", state.as_str().to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;
    use reveille_core::id::TenantId;
    use rusqlite::{Connection, params_from_iter};

    #[test]
    fn every_list_is_read_in_order_from_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&schema::create()).unwrap();
        let check = |query: JobQuery, expected: &str| {
            let (sql, values) = listing(&query);
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan = plan.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
            assert!(plan.contains(expected), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            assert!(!plan.contains("SCAN"), "{plan}");
        };
        let tenant = Some(TenantId::known("t"));
        check(JobQuery::default(), "INTEGER PRIMARY KEY (rowid<?)");
        check(
            JobQuery { tenant: tenant.clone(), ..JobQuery::default() },
            "jobs_of_tenant (tenant=? AND seq<?)",
        );
        for state in State::ALL {
            let expected = match state {
                State::Pending | State::ApprovalRequired | State::Scheduled => {
                    "jobs_waiting (state=? AND seq<?)"
                }
                State::Succeeded => "jobs_of_tenant (tenant=? AND seq<?)",
                state if state.is_terminal() => "jobs_ended_badly (state=? AND seq<?)",
                _ => "jobs_live (seq<?)",
            };
            check(JobQuery { tenant: tenant.clone(), state: Some(*state), ..JobQuery::default() }, expected);
        }
        check(JobQuery { tenant: tenant.clone(), asked: true, ..JobQuery::default() }, "jobs_asked (seq<?)");
        check(JobQuery { tenant, trace_id: Some("x".to_owned()), ..JobQuery::default() }, "jobs_of_trace");
    }
}
