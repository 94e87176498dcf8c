//! What jobs call back, in the rooms above them: workflows, whose steps are jobs, and delegations, which are jobs.

use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::sync::Arc;

#[async_trait::async_trait]
pub trait RunHook: Send + Sync {
    /// A job has ended; it may be a step of a run.
    fn job_ended(&self, job: &Arc<Job>);

    /// A job concerns its saga, and has ended. Called as it is acted on, so that whoever sees it ended comes later.
    fn saga_owed(&self, job: &Arc<Job>);

    /// The same, and returns when it is noted.
    async fn note_in_saga(&self, job: &Job);

    /// A start, or the loss of a server, has brought a live job that may be a step's.
    fn job_found(&self, job: &Job);

    /// A server is gone, and what it owed its runs is to be found.
    fn server_lost(&self);
}

#[async_trait::async_trait]
pub trait DelegationHook: Send + Sync {
    /// A delegated job was committed. Called with its lock held, so that its statuses are recorded in order.
    async fn job_committed(&self, job: &Job);

    /// A delegated job is to be taken to its workspace.
    fn deliver(&self, job: &Arc<Job>);

    /// A start, or the loss of a server, has brought a delegated job: if it is at its workspace, the connection is lost.
    fn resume(&self, job: &Arc<Job>);

    /// Whether the workspace still works on the job, as far as the connection shows.
    fn is_in_flight(&self, job: &JobId) -> bool;

    /// A server is gone, and may have left statuses unrecorded.
    fn server_lost(&self);
}
