//! A safety kernel as one life of the server sees it: it judges as the server's own policy would, if it
//! answers at all.

use crate::faults::Fault;
use crate::server::Life;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_core::policy::{ContentMetadata, FailMode, Policy, Verdict};
use reveille_core::request::Request;
use reveille_kernel::{Kernel, NoAnswer, OutputQuestion, OutputScan, Purpose};
use reveille_store::{BlobKey, Blobs, PutMode};
use std::sync::Arc;

const COPY_KEPT_MS: i64 = 24 * 3600 * 1000;

pub struct SimKernel {
    world: Arc<World>,
    life: Life,
}

impl SimKernel {
    /// In every third world somebody else judges.
    pub fn of(world: &Arc<World>, life: &Life) -> Option<Arc<dyn Kernel>> {
        let kernel = Self { world: world.clone(), life: life.clone() };
        world.seed.is_multiple_of(3).then(|| Arc::new(kernel) as Arc<dyn Kernel>)
    }

    async fn policy(&self) -> Result<Policy, NoAnswer> {
        let world = &self.world;
        sleep_ms(world.rng.skewed(0, 200)).await;
        self.life.here().await;
        if world.strikes(Fault::KernelHung) {
            std::future::pending::<()>().await;
        }
        if world.strikes(Fault::KernelFailed) {
            return Err(NoAnswer::Down("the simulation says so".to_owned()));
        }
        Ok(world.rules().map_err(NoAnswer::Down)?.policy)
    }
}

#[async_trait::async_trait]
impl Kernel for SimKernel {
    fn address(&self) -> &'static str {
        "simulated"
    }

    async fn judge(&self, request: &Request, _: Option<&Bytes>, _: Purpose) -> Result<Verdict, NoAnswer> {
        let verdict = self.policy().await?.evaluate(request);
        self.world.situations.record(Situation::KernelJudged);
        Ok(verdict)
    }

    async fn scan_output(&self, result: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer> {
        let policy = self.policy().await?;
        let sheet = ContentMetadata { len: result.len, has_error: false };
        let Some(content) = result.content else {
            let verdict = policy.output().check_metadata(result.request, sheet);
            let stage = reveille_core::output::Stage::Sync;
            let unread = || policy.output().unchecked(FailMode::Open, stage, "not read yet");
            return Ok(OutputScan { verdict: verdict.unwrap_or_else(unread), redacted_ptr: None });
        };
        let outcome = policy.output().check_content(result.request, sheet, &content, FailMode::Closed);
        let mut redacted_ptr = None;
        if let Some(copy) = outcome.redacted {
            let key = BlobKey::redacted_result_of(result.id, "kernel");
            let until = self.world.now() + COPY_KEPT_MS;
            let put = self.world.store.put_blob(key.clone(), copy.into(), until, PutMode::Always).await;
            redacted_ptr = put.is_ok().then(|| key.pointer());
        }
        self.world.situations.record(Situation::KernelLooked);
        Ok(OutputScan { verdict: outcome.verdict, redacted_ptr })
    }
}
