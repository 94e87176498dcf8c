//! Packets as clients and workers send them.

use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobRequest, JobResult, JobStatus};
use reveille_wire::packet as wire;

pub fn packet(sender: &str, payload: Payload) -> Bytes {
    wire::encode(&wire::envelope(sender, "trace", Millis(1), payload))
}

/// A client asks for a job.
pub fn job_packet(id: &str, topic: &str) -> Bytes {
    let job = JobRequest { job_id: id.into(), topic: topic.into(), ..JobRequest::default() };
    packet("client", Payload::JobRequest(job))
}

/// A result that says nothing more than that it went well. Whoever reports it puts its own name in.
pub fn succeeded(job: &str) -> JobResult {
    JobResult { job_id: job.to_owned(), status: JobStatus::Succeeded as i32, ..JobResult::default() }
}
