//! Where packets are published, and under which name components share a subscription.
//!
//! Workers of one topic share the queue named after the topic; a worker's own subject has no queue. Ids go into
//! subjects as they are: the protocol has no escaping.

use reveille_core::id::WorkerId;

/// Submits a job.
pub const JOB_SUBMIT: &str = "sys.job.submit";
/// A job's result. Workers publish here.
pub const JOB_RESULT: &str = "sys.job.result";
/// Cancels a job.
pub const JOB_CANCEL: &str = "sys.job.cancel";
/// A job's progress.
pub const JOB_PROGRESS: &str = "sys.job.progress";
/// A dead letter.
pub const JOB_DLQ: &str = "sys.job.dlq";

/// A worker's heartbeat.
pub const HEARTBEAT: &str = "sys.heartbeat";
/// A component announces itself.
pub const HANDSHAKE: &str = "sys.handshake";

/// A worker that is about to prove who it is asks for a challenge. It is answered.
pub const WORKER_CHALLENGE: &str = "sys.worker.handshake.challenge";
/// And answers it. It gets its session, or why not.
pub const WORKER_AUTHENTICATE: &str = "sys.worker.handshake.authenticate";

/// A workflow's notification step.
pub const WORKFLOW_EVENT: &str = "sys.workflow.event";

/// A pseudo topic: the scheduler answers such a job itself once it is approved.
pub const APPROVAL_GATE_TOPIC: &str = "job.cordum.approval-gate";

/// Every worker's own subject.
pub const WORKER_JOBS_ALL: &str = "worker.*.jobs";

/// The queue that schedulers share.
pub const QUEUE_SCHEDULER: &str = "cordum-scheduler";

const TOPIC_PREFIX: &str = "job.";
const WORKER_PREFIX: &str = "worker.";
const WORKER_SUFFIX: &str = ".jobs";

/// The subject that only this worker listens on.
pub fn worker_jobs(worker: &WorkerId) -> String {
    format!("{WORKER_PREFIX}{worker}{WORKER_SUFFIX}")
}

/// Whose subject this is, if it is a worker's own. A pattern is nobody's.
pub fn worker_of(subject: &str) -> Option<WorkerId> {
    let id = subject.strip_prefix(WORKER_PREFIX)?.strip_suffix(WORKER_SUFFIX)?;
    if id.split('.').any(|token| token == "*" || token == ">") {
        return None;
    }
    WorkerId::parse(id).ok()
}

/// Whether jobs are published here for whichever worker takes them.
pub fn is_topic(subject: &str) -> bool {
    subject.strip_prefix(TOPIC_PREFIX).is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_subject_names_the_worker() {
        for id in ["w-echo", "rack.7", "jobs", "a.jobs"] {
            let worker = WorkerId::known(id);
            assert_eq!(worker_of(&worker_jobs(&worker)), Some(worker));
        }
        assert_eq!(worker_jobs(&WorkerId::known("w-echo")), "worker.w-echo.jobs");
    }

    #[test]
    fn other_subjects_name_no_worker() {
        for subject in
            ["worker.jobs", "worker..jobs", "worker.w", "job.echo", "", WORKER_JOBS_ALL, "worker.a b.jobs"]
        {
            assert_eq!(worker_of(subject), None, "{subject:?}");
        }
    }

    #[test]
    fn a_topic_has_a_name_after_its_prefix() {
        assert!(is_topic("job.echo"));
        assert!(is_topic(APPROVAL_GATE_TOPIC));
        for subject in ["job.", "job", "jobs.echo", JOB_SUBMIT, "worker.w.jobs"] {
            assert!(!is_topic(subject), "{subject:?}");
        }
    }
}
