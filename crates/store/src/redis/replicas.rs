//! Who is here, by the clock of Redis, and who takes over whose jobs.

use super::RedisStore;
use super::listing::read_job;
use crate::replica::BEAT_TTL_MS;
use crate::{Replicas, Roll, StoreError};
use reveille_core::job::Job;
use std::sync::Arc;

#[async_trait::async_trait]
impl Replicas for RedisStore {
    fn name(&self) -> &str {
        &self.options.replica
    }

    async fn beat(&self, about: &str) -> Result<Roll, StoreError> {
        let mut script = self.scripts.beat.prepare_invoke();
        script.arg(&self.keys.prefix).arg(&self.options.replica).arg(about).arg(BEAT_TTL_MS);
        script.arg(self.script_now()).arg(self.grace_ms());
        let (was_here, silent, here): (bool, Vec<String>, Vec<String>) = self.link.run(&script).await?;
        Ok(Roll { was_here, silent, here })
    }

    async fn adopt(&self, silent: &str, limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        let mut script = self.scripts.adopt.prepare_invoke();
        script.arg(&self.keys.prefix).arg(silent).arg(&self.options.replica).arg(limit);
        script.arg(BEAT_TTL_MS).arg(self.script_now());
        let records: Option<Vec<Vec<u8>>> = self.link.run(&script).await?;
        let Some(records) = records else { return Ok(None) };
        records.iter().map(|record| read_job(record).map(Arc::new)).collect::<Result<_, _>>().map(Some)
    }
}
