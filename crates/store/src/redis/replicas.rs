//! Who is here, by the clock of Redis, and who takes over whose jobs.

use super::RedisStore;
use super::listing::read_job;
use crate::replica::{BEAT_TTL_MS, HINT_TTL_MS};
use crate::{EventPage, Members, Page, Replicas, StoreError};
use bytes::Bytes;
use redis::Pipeline;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use std::sync::Arc;
use std::time::Duration;

#[async_trait::async_trait]
impl Replicas for RedisStore {
    fn name(&self) -> &str {
        &self.options.replica
    }

    async fn beat(&self, about: &str) -> Result<Members, StoreError> {
        let mut script = self.scripts.beat.key(self.keys.of("cordum:replicas"));
        script.arg(&self.keys.prefix).arg(&self.options.replica).arg(about).arg(BEAT_TTL_MS);
        script.arg(self.script_now()).arg(self.grace_ms());
        let (was_here, silent, here): (bool, Vec<String>, Vec<String>) = self.link.run(&script).await?;
        Ok(Members { was_here, silent, here })
    }

    async fn adopt(&self, silent: &str, limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        let mut script = self.scripts.adopt.key(self.keys.of("cordum:replicas"));
        script.arg(&self.keys.prefix).arg(silent).arg(&self.options.replica).arg(limit);
        script.arg(BEAT_TTL_MS).arg(self.script_now());
        let records: Option<Vec<Vec<u8>>> = self.link.run(&script).await?;
        let Some(records) = records else { return Ok(None) };
        // One that cannot be read must not hide the others: they are ours already.
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

    async fn hint(&self, heard: &[(WorkspaceId, Option<String>)]) -> Result<(), StoreError> {
        let mut pipeline = Pipeline::new();
        for (id, url) in heard {
            let (name, place) = (self.keys.of(&format!("ws:{id}")), self.keys.of(&format!("ws:{id}:url")));
            pipeline.cmd("SET").arg(name).arg("online").arg("PX").arg(HINT_TTL_MS).ignore();
            match url {
                Some(url) => pipeline.cmd("SET").arg(place).arg(url).arg("PX").arg(HINT_TTL_MS).ignore(),
                None => pipeline.cmd("DEL").arg(place).ignore(),
            };
        }
        Ok(self.link.pipeline(&pipeline).await?)
    }

    async fn read_events(&self, after: u64, wait: Duration) -> Result<EventPage, StoreError> {
        self.read_news(after, wait).await
    }

    async fn append_events(&self, batch: u64, items: &[Bytes]) -> Result<(), StoreError> {
        self.announce_news(batch, items).await
    }

    async fn owner(&self, job: &JobId) -> Result<Option<String>, StoreError> {
        let mut get = redis::cmd("HGET");
        get.arg(self.keys.meta(job)).arg("owner");
        let owner: Option<String> = self.link.command(&get).await?;
        Ok(owner.filter(|owner| !owner.is_empty()))
    }
}
