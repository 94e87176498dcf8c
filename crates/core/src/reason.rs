//! Reason codes: the short words that say why a job failed, was refused or waits.
//!
//! They are part of the API, of dead letters and of `explain`, so each is spelled in one place.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason {
            $($(#[$doc])* #[serde(rename = $code)] $name,)*
        }

        impl Reason {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            pub fn parse(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.code() == code)
            }
        }
    };
}

reasons! {
    /// No pool is configured for the topic.
    NoPoolMapping = "no_pool_mapping";
    /// No live worker fits.
    NoWorkers = "no_workers";
    /// Workers fit, and all of them are at their limits.
    PoolOverloaded = "pool_overloaded";
    /// The tenant already runs as many jobs as it may.
    TenantLimit = "tenant_limit";
    /// As many jobs of the topic are at workers as may be.
    TopicLimit = "topic_limit";
    /// A dispatch reached nobody.
    DispatchFailed = "dispatch_failed";
    /// Policy said no.
    SafetyDenied = "safety_denied";
    /// A person said no.
    ApprovalRejected = "approval_rejected";
    /// No person said anything in time.
    ApprovalExpired = "approval_expired";
    /// Policy asks for a person, and as many jobs of the tenant wait for one as may.
    ApprovalQuota = "approval_quota";
    /// Fifty scheduling tries were not enough.
    MaxSchedulingRetries = "max_scheduling_retries";
    /// The job's own retries are used up.
    MaxRetriesExceeded = "max_retries_exceeded";
    /// Every worker that took the job died with it.
    WorkerLost = "worker_lost";
    /// The worker said that the job failed.
    JobFailed = "job_failed";
    /// The result, or something else the job made, is larger than policy allows.
    ArtifactTooLarge = "artifact_too_large";
    /// The job's deadline, or the time allowed in its state, has passed.
    Timeout = "timeout";
    /// Output policy holds the result back.
    OutputQuarantined = "output_quarantined";
    /// It does so after a look at the content.
    OutputQuarantinedAsync = "output_quarantined_async";
    /// What undoes a job cannot be read.
    SagaUnmarshalFailed = "saga_unmarshal_failed";
    /// What undoes a job cannot be kept: its saga holds as much as it may, or the store refuses it.
    SagaNotRecorded = "saga_not_recorded";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_back_as_its_reason() {
        for reason in Reason::ALL {
            let json = serde_json::to_string(reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.code()));
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), *reason);
        }
    }
}
