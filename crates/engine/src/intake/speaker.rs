//! Who speaks in a packet, and whether they may: a worker with a credential of its own speaks for itself, about jobs
//! that its grant covers. These are the rules for every packet of a worker, whichever way it came.

use super::{Intake, Problem};
use reveille_bus::MessageOrigin;
use reveille_core::fleet::WorkerCredential;
use reveille_core::id::{JobId, WorkerId};
use reveille_core::placement::ClaimRefused;
use std::sync::Arc;

impl From<ClaimRefused> for Problem {
    fn from(refused: ClaimRefused) -> Self {
        Self::Refused(refused.to_string())
    }
}

impl Intake {
    /// What a sender may serve as a worker; nothing for one that serves everybody.
    pub(super) fn credential_of(
        &self,
        origin: &MessageOrigin,
    ) -> Result<Option<Arc<WorkerCredential>>, Problem> {
        let MessageOrigin::Client(sender) = origin else { return Ok(None) };
        match sender.key.as_ref().and_then(|key| self.access.worker_credential(key)) {
            Some(credential) => Ok(Some(credential)),
            None => Err(Problem::Refused("this credential is not a worker's".to_owned())),
        }
    }

    /// Whether this sender may say what became of a job at that worker.
    pub(super) async fn check_report(
        &self,
        worker: &WorkerId,
        job: &JobId,
        origin: &MessageOrigin,
    ) -> Result<(), Problem> {
        let credential = self.credential_of(origin)?;
        self.fleet.may_report(worker, credential.as_ref())?;
        let Some(credential) = credential else { return Ok(()) };
        let known = self.jobs.job(job).await.map_err(|error| Problem::NotNow(error.to_string()))?;
        match known {
            Some(job) if credential.grant.serves(&job.request.tenant, &job.request.topic) => Ok(()),
            _ => Err(Problem::Refused(format!("job {job}: there is no such job"))),
        }
    }
}
