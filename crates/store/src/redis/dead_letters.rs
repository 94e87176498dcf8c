//! Dead letters, listed and counted.

use super::RedisStore;
use super::errors::unreadable;
use super::keys::part;
use super::script::{ScriptCall, call};
use super::scripts::RemoveDeadLetter;
use crate::query::page_len;
use crate::{DeadLetterCounts, DeadLetterQuery, DeadLetters, Page, StoreError};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::DeadLetter;
use reveille_core::reason::Reason;

/// Letters that are fetched at once.
const LETTERS: usize = 500;

#[async_trait::async_trait]
impl DeadLetters for RedisStore {
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
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

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        let name =
            tenant.map_or("dlq:count".to_owned(), |tenant| format!("dlq:count:{}", part(tenant.as_str())));
        let counts: Vec<(String, u64)> =
            self.link.command(redis::cmd("HGETALL").arg(self.keys.of(&name))).await?;
        Ok(counts.into_iter().map(|(code, count)| (Reason::parse(&code), count)).collect())
    }
    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        let remove = call!(RemoveDeadLetter {
            job_meta: self.keys.meta(job),
            prefix: &self.keys.prefix,
            id: job.as_str(),
        });
        Ok(self.link.run_surely(&remove.of(&self.scripts)).await?)
    }
}
