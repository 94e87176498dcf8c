//! From packets to core types.

use super::Unusable;
use crate::cap;
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::job::Progress;
use reveille_core::life::{Made, Report, Status};
use reveille_core::request::{Actor, Budget, Hints, Needs, Place, Priority, Request};

/// Labels, capabilities and topics that one worker may announce.
const ANNOUNCED_MAX: usize = 256;
/// The longest text that a worker may attach to a job.
const WORDS_LEN_MAX: usize = 4096;
/// Artifacts that one result may name.
const ARTIFACTS_MAX: usize = 1_000;

/// A worker's handshake: who it is and what it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    pub worker: WorkerId,
    pub topics: Vec<Topic>,
}

/// A job submitted over the bus. The tenant is the credential's; a packet that names another is refused.
pub fn request(job: cap::JobRequest, trace_id: String, tenant: &TenantId) -> Result<Request, Unusable> {
    let meta = job.meta.unwrap_or_default();
    for named in [&job.tenant_id, &meta.tenant_id].into_iter().chain(job.env.get("tenant_id")) {
        if !named.is_empty() && named != tenant.as_str() {
            return Err(Unusable::Field(format!(
                "tenant_id {named:?} is not the credential's tenant {tenant}"
            )));
        }
    }
    let mut labels = meta.labels;
    labels.extend(job.labels);
    let budget = job.budget.unwrap_or_default();
    let hints = job.context_hints.unwrap_or_default();
    Ok(Request {
        id: JobId::parse(&job.job_id)?,
        tenant: tenant.clone(),
        topic: Topic::parse(&job.topic)?,
        priority: match cap::JobPriority::try_from(job.priority) {
            Ok(cap::JobPriority::Critical) => Priority::Critical,
            Ok(cap::JobPriority::Batch) => Priority::Batch,
            _ => Priority::Interactive,
        },
        trace_id,
        context_ptr: job.context_ptr,
        labels,
        env: job.env,
        actor: Actor {
            principal_id: job.principal_id,
            actor_id: meta.actor_id,
            actor_type: match cap::ActorType::try_from(meta.actor_type) {
                Ok(cap::ActorType::Human) => "human".to_owned(),
                Ok(cap::ActorType::Service) => "service".to_owned(),
                _ => String::new(),
            },
            team: String::new(),
        },
        needs: Needs {
            capability: meta.capability,
            risk_tags: meta.risk_tags,
            requires: meta.requires,
            pack_id: meta.pack_id,
        },
        budget: Budget {
            max_input_tokens: budget.max_input_tokens,
            max_output_tokens: budget.max_output_tokens,
            max_total_tokens: budget.max_total_tokens,
            deadline_ms: budget.deadline_ms,
        },
        hints: Hints {
            max_input_tokens: hints.max_input_tokens,
            allow_summarization: hints.allow_summarization,
            allow_retrieval: hints.allow_retrieval,
            tags: hints.tags,
        },
        place: Place {
            adapter_id: job.adapter_id,
            parent_job_id: job.parent_job_id,
            workflow_id: job.workflow_id,
            step_index: job.step_index,
            memory_id: job.memory_id,
            // Steps of runs come from the runs, never in a packet.
            of_run: None,
        },
        idempotency_key: Some(meta.idempotency_key).filter(|key| !key.is_empty()),
        compensation: job.compensation.as_ref().map(super::kept_compensation).unwrap_or_default(),
        // Delegations come from workspaces, never in a packet.
        delegated: None,
        submitted_by: None,
        submitter_name: None,
        // It is in the message's headers, if anywhere.
        trace: None,
    })
}

pub fn beat(heartbeat: cap::Heartbeat) -> Result<(WorkerId, Beat), Unusable> {
    let worker = worker_id(&heartbeat.worker_id)?;
    announced("labels", heartbeat.labels.len())?;
    announced("capabilities", heartbeat.capabilities.len())?;
    let percent = |value: f32| if value.is_finite() { value.clamp(0.0, 100.0) } else { 0.0 };
    let load = Load {
        active_jobs: heartbeat.active_jobs.max(0) as u32,
        max_parallel_jobs: heartbeat.max_parallel_jobs.max(0) as u32,
        cpu: percent(heartbeat.cpu_load),
        gpu: percent(heartbeat.gpu_utilization),
        memory: percent(heartbeat.memory_load),
    };
    let beat = Beat {
        pool: if heartbeat.pool.is_empty() { None } else { Some(PoolId::parse(&heartbeat.pool)?) },
        region: clipped(heartbeat.region, 128),
        kind: clipped(heartbeat.r#type, 128),
        agent_name: clipped(heartbeat.agent_name.split_whitespace().collect::<Vec<_>>().join(" "), 128),
        capabilities: heartbeat.capabilities.into_iter().map(|word| clipped(word, 256)).collect(),
        labels: heartbeat
            .labels
            .into_iter()
            .map(|(key, value)| (clipped(key, 256), clipped(value, 1024)))
            .collect(),
        load,
    };
    Ok((worker, beat))
}

/// Nothing unless it is a worker introducing itself.
pub fn introduction(handshake: &cap::Handshake) -> Result<Option<Introduction>, Unusable> {
    if handshake.role() != cap::ComponentRole::Worker {
        return Ok(None);
    }
    announced("ready_topics", handshake.ready_topics.len())?;
    let topics = handshake.ready_topics.iter().map(|topic| Topic::parse(topic));
    Ok(Some(Introduction {
        worker: worker_id(&handshake.component_id)?,
        topics: topics.collect::<Result<_, _>>()?,
    }))
}

pub fn report(result: cap::JobResult) -> Result<(JobId, Report), Unusable> {
    let status = match result.status() {
        cap::JobStatus::Succeeded => Status::Succeeded,
        cap::JobStatus::Failed if is_the_workers_own_trouble(&result.error_message) => Status::Retryable,
        cap::JobStatus::FailedRetryable => Status::Retryable,
        cap::JobStatus::FailedFatal => Status::Fatal,
        cap::JobStatus::Cancelled => Status::Cancelled,
        cap::JobStatus::Timeout => Status::Timeout,
        cap::JobStatus::Denied => Status::Denied,
        cap::JobStatus::Failed => Status::Failed,
        other => {
            return Err(Unusable::Field(format!(
                "job_result.status {} does not end a job",
                other.as_str_name()
            )));
        }
    };
    let error_code = match result.error_code_enum() {
        cap::ErrorCode::Unspecified => result.error_code,
        code if result.error_code.is_empty() => code.as_str_name().to_owned(),
        _ => result.error_code,
    };
    let refs = result.artifact_refs.iter().chain(&result.result_ref);
    let made = Made {
        largest_bytes: refs.map(|told| told.size_bytes).max().unwrap_or_default(),
        artifact_ptrs: result.artifact_ptrs,
    };
    if made.artifact_ptrs.len() > ARTIFACTS_MAX {
        let problem = format!("job_result.artifact_ptrs names more than {ARTIFACTS_MAX} artifacts");
        return Err(Unusable::Field(problem));
    }
    let report = Report {
        worker: worker_id(&result.worker_id)?,
        attempt: result.dispatch.map(|dispatch| dispatch.attempt).filter(|attempt| *attempt > 0),
        status,
        result_ptr: clipped(result.result_ptr, 1024),
        error_code: clipped(error_code, 256),
        error_message: clipped(result.error_message, WORDS_LEN_MAX),
        execution_ms: result.execution_ms,
        trace: None,
        made,
    };
    Ok((JobId::parse(&result.job_id)?, report))
}

pub fn progress(from: &str, told: cap::JobProgress) -> Result<(JobId, WorkerId, Progress), Unusable> {
    let progress =
        Progress { percent: told.percent.clamp(0, 100) as u8, message: clipped(told.message, WORDS_LEN_MAX) };
    Ok((JobId::parse(&told.job_id)?, worker_id(from)?, progress))
}

/// The job to cancel, by whom, and why.
pub fn cancellation(cancel: cap::JobCancel) -> Result<(JobId, String, String), Unusable> {
    let (by, why) = (clipped(cancel.requested_by, 256), clipped(cancel.reason, WORDS_LEN_MAX));
    Ok((JobId::parse(&cancel.job_id)?, by, why))
}

/// The stock SDK reports its own failure to reach the blob store as the job's failure, in the words of its Redis
/// client. The job is not at fault, so it is retried.
fn is_the_workers_own_trouble(error_message: &str) -> bool {
    let lost_connection = |words: &str| {
        let starts = [
            "Connection closed by server",
            "Connection reset",
            "Error while reading from",
            "Timeout reading from",
            "Timeout connecting to",
            "Timeout writing to socket",
        ];
        let numbered = [" connecting to ", " while writing to socket"];
        starts.iter().any(|start| words.starts_with(start))
            || (words.starts_with("Error ") && numbered.iter().any(|part| words.contains(part)))
    };
    match error_message.strip_prefix("result write failed: ") {
        Some(cause) => !["result exceeds max size", "output is not JSON serializable"]
            .iter()
            .any(|own| cause.starts_with(own)),
        None => error_message.starts_with("context fetch timed out") || lost_connection(error_message),
    }
}

/// A worker's name is part of its subject, so it must contain neither wildcards nor empty tokens.
fn worker_id(text: &str) -> Result<WorkerId, Unusable> {
    let id = WorkerId::parse(text)?;
    if text.contains(['*', '>']) || text.split('.').any(str::is_empty) {
        return Err(Unusable::Field(format!("worker_id {text:?} cannot be part of a subject")));
    }
    Ok(id)
}

fn announced(what: &str, count: usize) -> Result<(), Unusable> {
    if count > ANNOUNCED_MAX {
        return Err(Unusable::Field(format!(
            "{what} has {count} entries; at most {ANNOUNCED_MAX} are allowed"
        )));
    }
    Ok(())
}

fn clipped(mut text: String, len_max: usize) -> String {
    if text.len() > len_max {
        let end = (0..=len_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_cannot_choose_its_tenant() {
        let tenant = TenantId::known("acme");
        let job = |tenant_id: &str| cap::JobRequest {
            job_id: "j".into(),
            topic: "job.echo".into(),
            tenant_id: tenant_id.into(),
            ..cap::JobRequest::default()
        };
        assert_eq!(request(job(""), "t".into(), &tenant).unwrap().tenant, tenant);
        assert_eq!(request(job("acme"), "t".into(), &tenant).unwrap().tenant, tenant);
        assert!(request(job("zeta"), "t".into(), &tenant).is_err());
    }

    #[test]
    fn a_stock_workers_own_trouble_is_worth_another_try() {
        let result = |error_message: &str| cap::JobResult {
            job_id: "j".into(),
            worker_id: "w".into(),
            status: cap::JobStatus::Failed as i32,
            error_message: error_message.into(),
            ..cap::JobResult::default()
        };
        assert_eq!(report(result("handler failed")).unwrap().1.status, Status::Failed);
        assert_eq!(
            report(result("result write failed: Connection refused")).unwrap().1.status,
            Status::Retryable
        );
    }

    #[test]
    fn a_name_that_is_a_wildcard_is_no_worker() {
        for name in ["*", "a.>", "a..b", ".a", ""] {
            let heartbeat = cap::Heartbeat { worker_id: name.into(), ..cap::Heartbeat::default() };
            assert!(beat(heartbeat).is_err(), "{name}");
        }
        let heartbeat =
            cap::Heartbeat { worker_id: "rack.7".into(), cpu_load: f32::NAN, ..cap::Heartbeat::default() };
        assert_eq!(beat(heartbeat).unwrap().1.load.cpu.to_bits(), 0);
    }

    #[test]
    fn text_is_clipped_between_characters() {
        assert_eq!(clipped("aé".into(), 2), "a");
        assert_eq!(clipped("aé".into(), 3), "aé");
    }
}
