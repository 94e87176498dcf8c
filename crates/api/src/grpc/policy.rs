//! `cordum.agent.v1.SafetyKernel`: our policy, for schedulers of others.

use super::{Services, tenant};
use crate::ApiError;
use crate::auth::Auth;
use reveille_core::policy::{Trace, Verdict};
use reveille_core::request::Request as Job;
use reveille_kernel::Purpose;
use reveille_kernel::cap::safety_kernel_server::SafetyKernel;
use reveille_kernel::convert::{self, SentInput};
use reveille_roster::Scope;
use reveille_wire::cap::{
    ListSnapshotsRequest, ListSnapshotsResponse, PolicyCheckRequest, PolicyCheckResponse,
};
use std::fmt::Write;
use tonic::{Request, Response, Status};

impl Services {
    fn asked(&self, request: Request<PolicyCheckRequest>) -> Result<(Auth, Job, SentInput), ApiError> {
        let auth = self.auth(&request)?;
        auth.needs(Scope::Read)?;
        let question = request.into_inner();
        let tenant = tenant(&auth, &question.tenant)?;
        let (job, input) = convert::asked(question, &tenant)?;
        job.check()?;
        Ok((auth, job, input))
    }

    async fn answer(
        &self,
        request: Request<PolicyCheckRequest>,
        purpose: Purpose,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        let (auth, job, input) = self.asked(request)?;
        let said = self.engine.jobs().policy().check_for_others(&job, input, purpose).await;
        let (verdict, trace) = said.map_err(ApiError::from)?;
        let trace = if auth.is_operator() { trace } else { trace.without_rules_of_others() };
        let reason = in_words(&verdict, &trace);
        Ok(Response::new(convert::answer(Verdict { reason, ..verdict })))
    }
}

#[tonic::async_trait]
impl SafetyKernel for Services {
    /// The job will run if it may, so it counts where a rule counts.
    async fn check(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        self.answer(request, Purpose::Check).await
    }

    async fn evaluate(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        self.answer(request, Purpose::Evaluate).await
    }

    /// The same as evaluate, with every rule's part in the reason.
    async fn explain(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        self.answer(request, Purpose::Explain).await
    }

    async fn simulate(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        self.answer(request, Purpose::Simulate).await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        self.auth(&request)?.needs(Scope::Read)?;
        let snapshots = self.engine.audit().snapshots().await.map_err(ApiError::from)?;
        Ok(Response::new(ListSnapshotsResponse { snapshots }))
    }
}

fn in_words(verdict: &Verdict, trace: &Trace) -> String {
    let mut words = verdict.reason.clone();
    for line in &trace.lines {
        let _ = write!(words, "\n{} ({}, {}): {}", line.rule_id, line.tier, line.decision, line.why);
    }
    words
}
