//! Pages of jobs and of dead letters.

use super::RedisStore;
use super::commit::state_name;
use super::errors::unreadable;
use super::keys::part;
use crate::query::page_len;
use crate::{DeadLetterCounts, DeadLetterQuery, JobQuery, Page, StoreError};
use reveille_core::id::TenantId;
use reveille_core::job::{DeadLetter, Job, State};
use reveille_core::reason::Reason;
use std::sync::Arc;

/// Entries of an index that one script looks at; others wait for it.
const LOOKED_AT: u32 = 2_000;
/// Letters that are fetched at once.
const LETTERS: usize = 500;
/// What comes after the last job.
const END: &str = "";

/// What to read of an index.
struct Stretch<'a> {
    index: String,
    goes_down: bool,
    cursor: Option<u64>,
    limit: usize,
    query: Option<&'a JobQuery>,
}

impl RedisStore {
    pub(super) async fn list(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let name = match query {
            JobQuery { trace_id: Some(trace), .. } if !trace.is_empty() => format!("trace:{trace}"),
            JobQuery { asked: true, .. } => "job:index:asked".to_owned(),
            // Most jobs have succeeded: there is no gain in their index.
            JobQuery { state: Some(state), .. } if *state != State::Succeeded => {
                format!("job:index:{}", state_name(*state))
            }
            JobQuery { tenant: Some(tenant), .. } => format!("job:index:tenant:{}", part(tenant.as_str())),
            _ => "job:recent".to_owned(),
        };
        let (index, limit) = (self.keys.of(&name), query.limit);
        self.stretch(Stretch { index, goes_down: true, cursor: query.cursor, limit, query: Some(query) })
            .await
    }

    /// Jobs of an index in the order of their creation.
    pub(super) async fn list_up(
        &self,
        name: &str,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<Page<Arc<Job>>, StoreError> {
        let index = self.keys.of(name);
        self.stretch(Stretch { index, goes_down: false, cursor, limit, query: None }).await
    }

    async fn stretch(&self, stretch: Stretch<'_>) -> Result<Page<Arc<Job>>, StoreError> {
        let len = page_len(stretch.limit);
        let none = JobQuery::default();
        let query = stretch.query.unwrap_or(&none);
        let start = if stretch.goes_down { "+inf" } else { "-inf" };
        let mut last = stretch.cursor.map_or(start.to_owned(), |cursor| cursor.to_string());
        let mut found = Vec::new();
        while found.len() <= len {
            let mut script = self.scripts.page.key(&stretch.index);
            script.arg(&self.keys.prefix).arg(if stretch.goes_down { "down" } else { "up" }).arg(&last);
            script.arg(len + 1 - found.len()).arg(LOOKED_AT);
            script.arg(query.updated_after.map_or(i64::MIN, |at| at.0));
            script.arg(query.updated_before.map_or(i64::MAX, |at| at.0));
            script.arg(query.tenant.as_ref().map_or(String::new(), |tenant| part(tenant.as_str())));
            script.arg(query.state.map_or(String::new(), state_name));
            script.arg(query.topic.as_ref().map_or("", |topic| topic.as_str()));
            script.arg(query.team.as_deref().unwrap_or_default());
            script.arg(query.trace_id.as_deref().unwrap_or_default());
            let reply: Vec<Option<Vec<u8>>> = self.link.run_surely(&script).await?;
            let mut parts = reply.into_iter();
            last = text(parts.next().flatten())?;
            while let (Some(sequence), Some(record)) = (parts.next(), parts.next()) {
                let sequence = text(sequence)?;
                let sequence = sequence.parse().map_err(|error| unreadable("a place in a list", &error))?;
                // It was pruned between two looks.
                let Some(record) = record else { continue };
                found.push((sequence, Arc::new(read_job(&record)?)));
            }
            if last == END {
                break;
            }
        }
        Ok(Page::take(len, found.into_iter()))
    }

    pub(super) async fn list_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        let len = page_len(query.limit);
        let name = query
            .tenant
            .as_ref()
            .map_or("dlq:index".to_owned(), |tenant| format!("dlq:index:{}", part(tenant.as_str())));
        let mut last = query.cursor.map_or("+inf".to_owned(), |cursor| format!("({cursor}"));
        let mut found = Vec::new();
        while found.len() <= len {
            let mut range = redis::cmd("ZRANGE");
            range.arg(self.keys.of(&name)).arg(&last).arg("-inf").arg("BYSCORE").arg("REV");
            range.arg("LIMIT").arg(0).arg(LETTERS).arg("WITHSCORES");
            let ids: Vec<(String, u64)> = self.link.command(&range).await?;
            let Some((_, lowest)) = ids.last() else { break };
            last = format!("({lowest}");
            let mut get = redis::cmd("MGET");
            for (id, _) in &ids {
                get.arg(self.keys.letter(id));
            }
            let letters: Vec<Option<Vec<u8>>> = self.link.command(&get).await?;
            for ((id, sequence), letter) in ids.iter().zip(letters) {
                let Some(letter) = letter else { continue };
                let letter: DeadLetter = serde_json::from_slice(&letter)
                    .map_err(|error| unreadable(&format!("the dead letter of {id}"), &error))?;
                if query.matches(&letter) {
                    found.push((*sequence, letter));
                }
            }
        }
        Ok(Page::take(len, found.into_iter()))
    }

    pub(super) async fn count_letters(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<DeadLetterCounts, StoreError> {
        let name =
            tenant.map_or("dlq:count".to_owned(), |tenant| format!("dlq:count:{}", part(tenant.as_str())));
        let counts: Vec<(String, u64)> =
            self.link.command(redis::cmd("HGETALL").arg(self.keys.of(&name))).await?;
        Ok(counts.into_iter().map(|(code, count)| (Reason::parse(&code), count)).collect())
    }
}

pub(super) fn read_job(record: &[u8]) -> Result<Job, StoreError> {
    serde_json::from_slice(record).map_err(|error| unreadable("a job", &error))
}

fn text(bytes: Option<Vec<u8>>) -> Result<String, StoreError> {
    String::from_utf8(bytes.unwrap_or_default()).map_err(|error| unreadable("a list", &error))
}
