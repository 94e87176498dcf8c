//! `cordum.v1.OutputPolicyService`: our output rules, for schedulers of others.

use super::{Services, tenant};
use crate::ApiError;
use reveille_kernel::convert;
use reveille_kernel::cordum::output_policy_service_server::OutputPolicyService;
use reveille_roster::Scope;
use reveille_wire::cordum::{OutputCheckRequest, OutputCheckResponse};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl OutputPolicyService for Services {
    /// A result without its content is judged by what is known of it. A redacted copy is kept with us, under
    /// the pointer in the answer, so this takes the right to bring work.
    async fn check_output(
        &self,
        request: Request<OutputCheckRequest>,
    ) -> Result<Response<OutputCheckResponse>, Status> {
        let auth = self.auth(&request)?;
        auth.needs(Scope::Submit)?;
        let check = request.into_inner();
        let tenant = tenant(&auth, &check.tenant)?;
        let job = convert::looked_at(&check, &tenant).map_err(ApiError::from)?;
        job.check().map_err(ApiError::from)?;
        let len = u64::try_from(check.output_size_bytes).unwrap_or(0).max(check.output_content.len() as u64);
        let has_error = !(check.error_message.is_empty() && check.error_code.is_empty());
        let looked = self.engine.jobs().scan_for_others(&job, len, has_error, check.output_content).await;
        let (verdict, copy) = looked.map_err(ApiError::from)?;
        Ok(Response::new(convert::looked(verdict, copy)))
    }
}
