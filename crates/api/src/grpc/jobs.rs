//! `cordum.v1.CordumApi`: jobs, as over HTTP.

use super::Services;
use crate::convert;
use crate::jobs::{accepted, submit_job, visible};
use crate::trace::context;
use reveille_api_types::submit::{SubmitReply, SubmitRequest};
use reveille_kernel::cordum::cordum_api_server::CordumApi;
use reveille_roster::Scope;
use reveille_wire::cordum::{GetJobStatusRequest, GetJobStatusResponse, SubmitJobRequest, SubmitJobResponse};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl CordumApi for Services {
    async fn submit_job(
        &self,
        request: Request<SubmitJobRequest>,
    ) -> Result<Response<SubmitJobResponse>, Status> {
        let auth = self.auth(&request)?;
        let trace = context(request.metadata().as_ref());
        let job = submit_job(&self.engine, &auth, trace, asked(request.into_inner())).await?;
        accepted(&job)?;
        let reason = job.last_verdict().map(|recorded| recorded.verdict.reason.clone());
        let SubmitReply { job_id, trace_id, .. } = convert::submit_reply(&job);
        Ok(Response::new(SubmitJobResponse {
            job_id,
            trace_id,
            status: job.state().to_string(),
            reason: reason.unwrap_or_default(),
        }))
    }

    async fn get_job_status(
        &self,
        request: Request<GetJobStatusRequest>,
    ) -> Result<Response<GetJobStatusResponse>, Status> {
        let auth = self.auth(&request)?;
        auth.needs(Scope::Read)?;
        let job = visible(&self.engine, &auth, &request.into_inner().job_id).await?;
        // What is held back has no address either.
        let result_ptr = job.ending().map(|ending| ending.result_ptr.clone());
        let result_ptr = result_ptr.filter(|_| !self.engine.jobs().holds_result(&job)).unwrap_or_default();
        Ok(Response::new(GetJobStatusResponse {
            job_id: job.id().to_string(),
            status: job.state().to_string(),
            result_ptr,
        }))
    }
}

fn asked(job: SubmitJobRequest) -> SubmitRequest {
    let told = |word: String| Some(word).filter(|word| !word.is_empty());
    SubmitRequest {
        prompt: told(job.prompt),
        topic: told(job.topic),
        adapter_id: told(job.adapter_id),
        priority: told(job.priority),
        org_id: told(job.org_id),
        team_id: told(job.team_id),
        project_id: told(job.project_id),
        principal_id: told(job.principal_id),
        idempotency_key: told(job.idempotency_key),
        actor_id: told(job.actor_id),
        actor_type: told(job.actor_type),
        pack_id: told(job.pack_id),
        capability: told(job.capability),
        risk_tags: job.risk_tags,
        requires: job.requires,
        labels: job.labels,
        memory_id: told(job.memory_id),
        ..SubmitRequest::default()
    }
}
