//! What one server tells the others: jobs that it has committed, beats that only it has heard, and requests that it
//! has counted.

use reveille_core::id::{JobId, RunId, TenantId, Topic, WorkerId, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::policy::Counted;
use reveille_core::presence::agent::AgentBeat;
use reveille_core::presence::workspace::Pulse;
use reveille_core::request::Delegated;
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Said {
    Job(Box<Word>),
    Agent {
        tenant: TenantId,
        beat: Box<AgentBeat<'static>>,
    },
    Pulse {
        workspace: WorkspaceId,
        pulse: Box<Pulse>,
    },
    Counted(Counted),
    /// A run is over.
    Run(RunId),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Word {
    pub id: JobId,
    pub revision: u64,
    pub tenant: TenantId,
    pub topic: Topic,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<State>,
    /// The one that has it, or had it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Delegated>,
    pub at: Millis,
}

impl Word {
    pub fn of(job: &Job) -> Self {
        let request = &job.request;
        Self {
            id: job.id().clone(),
            revision: job.revision,
            tenant: request.tenant.clone(),
            topic: request.topic.clone(),
            state: job.state(),
            before: job.state_before(),
            worker: job.worker().cloned(),
            delegated: request.delegated.clone(),
            at: job.updated_at,
        }
    }

    pub fn is_at_worker(&self) -> bool {
        matches!(self.state, State::Dispatched | State::Running)
    }
}
