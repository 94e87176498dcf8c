//! A delegation: work that one workspace gives to another. It is a job; this is its status in Molecule's
//! words.

use crate::id::{JobId, TenantId, WorkspaceId};
use crate::job::{Job, State};
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// In the order in which they are announced; none is skipped.
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

    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// The status of a job. Between DISPATCHED and RUNNING lies `Received`, which only the A2A client sees.
    pub fn of(job: &Job) -> Self {
        match job.state() {
            State::Pending | State::ApprovalRequired | State::Scheduled => Self::Pending,
            State::Dispatched => Self::Dispatched,
            State::Running => Self::InProgress,
            State::Succeeded => Self::Completed,
            _ => Self::Failed,
        }
    }

    /// The statuses to announce on the way from this one to `to`. A job that ended well was dispatched,
    /// received and in progress before, however quickly; one that never left the platform was not.
    pub fn announcements(self, to: Self) -> Vec<Self> {
        if self.is_final() || self == to {
            return Vec::new();
        }
        match to {
            Self::Completed => {
                let between = [Self::Dispatched, Self::Received, Self::InProgress];
                between.into_iter().filter(|status| *status > self).chain([to]).collect()
            }
            Self::InProgress if self < Self::InProgress => {
                let between = [Self::Dispatched, Self::Received];
                between.into_iter().filter(|status| *status > self).chain([to]).collect()
            }
            _ => vec![to],
        }
    }
}

/// One row of `/delegations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The job's id; for one that an agent only reports, the agent's own.
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
    /// It is a job of ours; otherwise an agent runs it and reports.
    pub is_job: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[cfg(test)]
mod tests {
    use super::DelegationStatus::{Completed, Dispatched, Failed, InProgress, Pending, Received};

    #[test]
    fn no_status_is_skipped() {
        assert_eq!(Pending.announcements(Completed), [Dispatched, Received, InProgress, Completed]);
        assert_eq!(Received.announcements(InProgress), [InProgress]);
        assert_eq!(Pending.announcements(InProgress), [Dispatched, Received, InProgress]);
        assert_eq!(Pending.announcements(Failed), [Failed]);
        assert_eq!(InProgress.announcements(Pending), [Pending], "its worker was lost; it waits again");
        assert_eq!(Completed.announcements(Failed), []);
        assert_eq!(Dispatched.announcements(Dispatched), []);
    }
}
