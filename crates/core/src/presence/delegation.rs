//! A delegation: work that one workspace gives to another. It is a job; this is how its life is told
//! in Molecule's words.

use crate::id::{JobId, TenantId, WorkspaceId};
use crate::job::{Job, State};
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// The rungs in the order in which they are announced; none is left out on the way up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStatus {
    Pending,
    Dispatched,
    Received,
    InProgress,
    Completed,
    Failed,
}

impl DelegationStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatched => "dispatched",
            Self::Received => "received",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn is_last(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// Where a job stands. Between DISPATCHED and RUNNING lies `Received`, which only the courier sees.
    pub fn of(job: &Job) -> Self {
        match job.state() {
            State::Pending | State::ApprovalRequired | State::Scheduled => Self::Pending,
            State::Dispatched => Self::Dispatched,
            State::Running => Self::InProgress,
            State::Succeeded => Self::Completed,
            _ => Self::Failed,
        }
    }

    /// What is to be announced on the way from here to `to`. A job that ended well was dispatched,
    /// received and in progress before, however quickly; one that never left the platform was not.
    pub fn path(self, to: Self) -> Vec<Self> {
        if self.is_last() || self == to {
            return Vec::new();
        }
        match to {
            Self::Completed => {
                let between = [Self::Dispatched, Self::Received, Self::InProgress];
                between.into_iter().filter(|rung| *rung > self).chain([to]).collect()
            }
            Self::InProgress if self < Self::InProgress => {
                let between = [Self::Dispatched, Self::Received];
                between.into_iter().filter(|rung| *rung > self).chain([to]).collect()
            }
            _ => vec![to],
        }
    }
}

/// One row of `/delegations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The job's id; for one that an agent only told us of, the agent's own.
    pub id: JobId,
    pub tenant: TenantId,
    pub source: WorkspaceId,
    pub target: WorkspaceId,
    /// What was asked for, shortened.
    pub summary: String,
    pub status: DelegationStatus,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub response_preview: Option<String>,
    /// It is a job of ours; otherwise an agent runs it and tells us.
    pub is_job: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[cfg(test)]
mod tests {
    use super::DelegationStatus::{Completed, Dispatched, Failed, InProgress, Pending, Received};

    #[test]
    fn no_rung_is_left_out_on_the_way_up() {
        assert_eq!(Pending.path(Completed), [Dispatched, Received, InProgress, Completed]);
        assert_eq!(Received.path(InProgress), [InProgress]);
        assert_eq!(Pending.path(InProgress), [Dispatched, Received, InProgress]);
        assert_eq!(Pending.path(Failed), [Failed]);
        assert_eq!(InProgress.path(Pending), [Pending], "its worker was lost; it waits again");
        assert_eq!(Completed.path(Failed), []);
        assert_eq!(Dispatched.path(Dispatched), []);
    }
}
