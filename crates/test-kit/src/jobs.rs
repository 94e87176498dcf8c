//! Asking for jobs, and looking at them.

use crate::wait::soon;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::request::Request;
use reveille_engine::{Engine, Submission, SubmitError, Submitted, Submitter};
use std::sync::Arc;
use std::time::Duration;

/// A job with an empty object for its input.
pub fn submission(request: Request) -> Submission {
    Submission { request, context: Some(Bytes::from_static(b"{}")), submitter: Submitter::Listens }
}

pub async fn submit(engine: &Engine, request: Request) -> Result<Submitted, SubmitError> {
    engine.jobs().submit(submission(request)).await
}

/// The job, which must be taken and must not have been there.
pub async fn new_job(engine: &Engine, request: Request) -> Arc<Job> {
    match submit(engine, request).await.unwrap() {
        Submitted::New(job) => job,
        other => panic!("{other:?}"),
    }
}

pub async fn job(engine: &Engine, id: &str) -> Arc<Job> {
    engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap_or_else(|| panic!("there is no {id}"))
}

pub async fn state(engine: &Engine, id: &str) -> State {
    job(engine, id).await.state()
}

/// Waits until a job that may not be there yet is in this state.
pub async fn wait_for_state(engine: &Engine, id: &str, wanted: State) {
    let key = JobId::known(id);
    soon(async {
        while engine.jobs().job(&key).await.unwrap().map(|job| job.state()) != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
