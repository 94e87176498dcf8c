//! Approvals: what waits for a person, and the person's answer.

use crate::client::segment;
use crate::{Client, Error, Pages};
use reveille_api_types::approval::{Approval, Approved, Rejected, Resolution};

const PATH: &str = "/api/v1/approvals";

#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a>(pub(crate) &'a Client);

impl<'a> Approvals<'a> {
    /// Those that wait, newest first.
    pub fn list(&self, limit: usize) -> Pages<'a, Approval> {
        self.0.list(PATH, &[("include_resolved", "false")], limit)
    }

    /// Those that were decided, too.
    pub fn list_all(&self, limit: usize) -> Pages<'a, Approval> {
        self.0.list(PATH, &[("include_resolved", "true")], limit)
    }

    /// Lets it go on. With `job_hash` only if it is still the request that was looked at.
    pub fn approve(&self, job_id: &str, answer: &Resolution) -> Result<Approved, Error> {
        self.0.post(&format!("{PATH}/{}/approve", segment(job_id)), answer)
    }

    pub fn reject(&self, job_id: &str, answer: &Resolution) -> Result<Rejected, Error> {
        self.0.post(&format!("{PATH}/{}/reject", segment(job_id)), answer)
    }
}
