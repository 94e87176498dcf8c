//! Pages of jobs.

use super::RedisStore;
use super::commit::state_name;
use super::errors::unreadable;
use super::index_page::{IndexOrder, IndexQuery};
use super::keys::part;
use crate::{JobQuery, JobStore, Page, StoreError};
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use std::sync::Arc;

impl RedisStore {
    pub(super) async fn list(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let page = self.look_up(query).await?;
        let is_without_any = page.items.is_empty() && page.next.is_none() && query.cursor.is_none();
        let trace = query.trace_id.as_deref().and_then(|trace| JobId::parse(trace).ok());
        match trace {
            // A trace that has only the job it is named after has no list.
            Some(trace) if is_without_any => {
                let job = self.job(&trace).await?.filter(|job| query.matches(job));
                Ok(Page { items: job.into_iter().collect(), next: None })
            }
            _ => Ok(page),
        }
    }

    async fn look_up(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let tenant = query.tenant.as_ref().map(|tenant| part(tenant.as_str()));
        let index = match query {
            JobQuery { trace_id: Some(trace), .. } if !trace.is_empty() => format!("trace:{trace}"),
            JobQuery { asked: true, .. } => "job:index:asked".to_owned(),
            // Most jobs have succeeded: they have no index.
            JobQuery { state: Some(state), .. } if *state != State::Succeeded => {
                format!("job:index:{}", state_name(*state))
            }
            _ => {
                tenant.as_ref().map_or("job:recent".to_owned(), |tenant| format!("job:index:tenant:{tenant}"))
            }
        };
        let fields = [
            ("tenant", tenant),
            ("state", query.state.map(state_name)),
            ("topic", query.topic.as_ref().map(ToString::to_string)),
            ("team", query.team.clone().filter(|team| !team.is_empty())),
            ("trace_id", query.trace_id.clone().filter(|trace| !trace.is_empty())),
        ];
        let query = IndexQuery {
            look_through: query.look_through,
            updated_after: query.updated_after,
            updated_before: query.updated_before,
            fields: fields.into_iter().filter_map(|(field, wanted)| Some((field, wanted?))).collect(),
            ..self.jobs_of(vec![self.keys.of(&index)], IndexOrder::NewestFirst, query.cursor, query.limit)
        };
        self.read_index(&query, read_listed).await
    }

    /// Jobs of some indexes in the order of their creation.
    pub(super) async fn list_up(
        &self,
        indexes: Vec<String>,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<Page<Arc<Job>>, StoreError> {
        if indexes.is_empty() {
            return Ok(Page { items: Vec::new(), next: None });
        }
        self.read_index(&self.jobs_of(indexes, IndexOrder::OldestFirst, cursor, limit), read_listed).await
    }

    /// The live jobs of one server each, for all that have any.
    pub(super) async fn owners_jobs(&self) -> Result<Vec<String>, StoreError> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.of("cordum:replicas")).arg(0).arg(-1);
        let owners: Vec<String> = self.link.command(&range).await?;
        Ok(owners.iter().map(|owner| self.keys.owners_jobs(owner)).collect())
    }

    fn jobs_of(
        &self,
        indexes: Vec<String>,
        order: IndexOrder,
        cursor: Option<u64>,
        limit: usize,
    ) -> IndexQuery {
        IndexQuery {
            indexes,
            order,
            cursor,
            limit,
            look_through: None,
            updated_after: None,
            updated_before: None,
            hash: self.keys.of("job:meta:"),
            record: Some(self.keys.of("job:rec:")),
            fields: Vec::new(),
        }
    }
}

pub(super) fn read_job(record: &[u8]) -> Result<Job, StoreError> {
    serde_json::from_slice(record).map_err(|error| unreadable("a job", &error))
}

fn read_listed(record: &[u8]) -> Result<Arc<Job>, StoreError> {
    read_job(record).map(Arc::new)
}
