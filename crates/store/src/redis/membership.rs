//! Who is here, by the clock of Redis, and who takes over whose jobs.

use super::RedisStore;
use super::listing::read_job;
use super::script::{ScriptCall, call};
use super::scripts::{AdoptJobs, SendBeat};
use crate::membership::BEAT_TTL_MS;
use crate::{Members, Membership, Page, StoreError};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::sync::Arc;

#[async_trait::async_trait]
impl Membership for RedisStore {
    fn name(&self) -> &str {
        &self.options.replica
    }

    async fn beat(&self, about: &str) -> Result<Members, StoreError> {
        let beat = call!(SendBeat {
            replicas: self.keys.of("cordum:replicas"),
            prefix: &self.keys.prefix,
            me: &self.options.replica,
            about: about,
            ttl_ms: BEAT_TTL_MS,
            now: self.script_now(),
            grace_ms: self.grace_ms(),
        });
        let beat = beat.of(&self.scripts);
        let (was_here, silent, here): (bool, Vec<String>, Vec<String>) = self.link.run(&beat).await?;
        Ok(Members { was_here, silent, here })
    }

    async fn adopt(&self, silent: &str, limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        let adopt = call!(AdoptJobs {
            replicas: self.keys.of("cordum:replicas"),
            prefix: &self.keys.prefix,
            silent: silent,
            me: &self.options.replica,
            limit: limit,
            ttl_ms: BEAT_TTL_MS,
            now: self.script_now(),
        });
        let records: Option<Vec<Vec<u8>>> = self.link.run(&adopt.of(&self.scripts)).await?;
        let Some(records) = records else { return Ok(None) };
        // An unreadable job must not hide the others: they are already ours.
        let jobs = records.iter().filter_map(|record| match read_job(record) {
            Ok(job) => Some(Arc::new(job)),
            Err(error) => {
                tracing::error!(%error, "a job of a silent server is left alone");
                None
            }
        });
        Ok(Some(jobs.collect()))
    }

    async fn owned(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.list_up(vec![self.keys.owners_jobs(&self.options.replica)], cursor, limit).await
    }

    async fn owner(&self, job: &JobId) -> Result<Option<String>, StoreError> {
        let mut get = redis::cmd("HGET");
        get.arg(self.keys.meta(job)).arg("owner");
        let owner: Option<String> = self.link.command(&get).await?;
        Ok(owner.filter(|owner| !owner.is_empty()))
    }
}
