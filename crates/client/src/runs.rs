//! Runs of workflows: started, looked at, waited for, cancelled.

use crate::client::segment;
use crate::jobs::said;
use crate::{Client, Error, Pages};
use reveille_api_types::run::{CancelBody, RunDetail, RunRecord, StartedReply};
use serde::Serialize;
use std::time::Duration;

const PATH: &str = "/api/v1/workflow-runs";

#[derive(Debug, Clone, Copy)]
pub struct Runs<'a>(pub(crate) &'a Client);

impl<'a> Runs<'a> {
    /// The same `idempotency_key` gives the same run.
    pub fn start(
        &self,
        workflow_id: &str,
        input: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<StartedReply, Error> {
        let body = StartRunBody { input, idempotency_key };
        self.0.post(&format!("/api/v1/workflows/{}/runs", segment(workflow_id)), &body)
    }

    pub fn get(&self, run_id: &str) -> Result<RunDetail, Error> {
        self.0.get(&path(run_id), &[])
    }

    /// The run once it has ended, however it did; [`Error::WaitTimeout`] if that takes longer than one has patience.
    pub fn wait(&self, run_id: &str, patience: Duration) -> Result<RunDetail, Error> {
        self.0.wait(&path(run_id), patience, |run: &RunDetail| run.has_ended())
    }

    /// Those that fit, newest first.
    pub fn list(&self, filter: &RunFilter<'_>, limit: usize) -> Pages<'a, RunRecord> {
        let RunFilter { status, workflow_id, org_id, team_id } = *filter;
        let named =
            [("status", status), ("workflow_id", workflow_id), ("org_id", org_id), ("team_id", team_id)];
        self.0.list(PATH, &said(&named), limit)
    }

    /// And the jobs and runs that it has under way. One that is over is refused.
    pub fn cancel(&self, run_id: &str, reason: &str) -> Result<(), Error> {
        self.0.post(&format!("{}/cancel", path(run_id)), &CancelBody { reason: reason.to_owned() })
    }
}

/// Which runs are listed; nothing said is all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    pub status: Option<&'a str>,
    pub workflow_id: Option<&'a str>,
    pub org_id: Option<&'a str>,
    pub team_id: Option<&'a str>,
}

#[derive(Serialize)]
struct StartRunBody<'a, T> {
    input: &'a T,
    idempotency_key: Option<&'a str>,
}

fn path(run_id: &str) -> String {
    format!("{PATH}/{}", segment(run_id))
}
