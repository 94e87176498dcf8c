//! Jobs: ask for one, look at them, change your mind, and ask why.

use crate::client::segment;
use crate::{Client, Error, Pages};
use reveille_api_types::job::{Cancelled, Explained, JobDetail, JobRecord};
use reveille_api_types::submit::SubmitReply;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

const PATH: &str = "/api/v1/jobs";

#[derive(Debug, Clone, Copy)]
pub struct Jobs<'a>(pub(crate) &'a Client);

impl<'a> Jobs<'a> {
    /// Asks for a job. If policy says no, that is a [`Error::Refused`] with the code `safety_denied`.
    pub fn submit(&self, job: &NewJob) -> Result<SubmitReply, Error> {
        self.0.post(PATH, job)
    }

    pub fn get(&self, job_id: &str) -> Result<JobDetail, Error> {
        self.0.get(&path(job_id), &[])
    }

    /// The job once it has ended, however it did; [`Error::WaitTimeout`] if that takes longer than one has patience.
    pub fn wait(&self, job_id: &str, patience: Duration) -> Result<JobDetail, Error> {
        self.0.wait(&path(job_id), patience, |job: &JobDetail| job.has_ended())
    }

    /// Those that fit, newest first.
    pub fn list(&self, filter: &JobFilter<'_>, limit: usize) -> Pages<'a, JobRecord> {
        let JobFilter { state, topic, tenant, team, trace_id } = *filter;
        let named =
            [("state", state), ("topic", topic), ("tenant", tenant), ("team", team), ("trace_id", trace_id)];
        self.0.list(PATH, &said(&named), limit)
    }

    /// If it has ended already, `reason` says so.
    pub fn cancel(&self, job_id: &str) -> Result<Cancelled, Error> {
        self.0.post(&format!("{}/cancel", path(job_id)), &Map::new())
    }

    /// Why it is where it is, since when, and what would help.
    pub fn explain(&self, job_id: &str) -> Result<Explained, Error> {
        self.0.get(&format!("{}/explain", path(job_id)), &[])
    }
}

/// What is asked for. Everything but the topic may be left out, as long as there is a context or a prompt.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewJob {
    pub topic: String,
    /// Any JSON: the worker's input.
    pub context: Value,
    pub prompt: Option<String>,
    /// batch, interactive or critical.
    pub priority: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Capabilities that the worker must have.
    pub requires: Vec<String>,
    /// For policy.
    pub risk_tags: Vec<String>,
    /// What the job does, for policy.
    pub capability: Option<String>,
    /// The same key gives the same job.
    pub idempotency_key: Option<String>,
    /// Milliseconds until the job must be over.
    pub deadline_ms: Option<i64>,
    /// Whatever else the API takes, by its name.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl NewJob {
    pub fn new(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), ..Self::default() }
    }

    pub fn context(self, context: Value) -> Self {
        Self { context, ..self }
    }

    pub fn prompt(self, prompt: impl Into<String>) -> Self {
        Self { prompt: Some(prompt.into()), ..self }
    }

    pub fn priority(self, priority: impl Into<String>) -> Self {
        Self { priority: Some(priority.into()), ..self }
    }

    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    pub fn requires(mut self, capability: impl Into<String>) -> Self {
        self.requires.push(capability.into());
        self
    }

    pub fn risk_tag(mut self, tag: impl Into<String>) -> Self {
        self.risk_tags.push(tag.into());
        self
    }

    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }
}

/// Which jobs are listed; nothing said is all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobFilter<'a> {
    pub state: Option<&'a str>,
    pub topic: Option<&'a str>,
    pub tenant: Option<&'a str>,
    pub team: Option<&'a str>,
    pub trace_id: Option<&'a str>,
}

/// What is said, without what is not.
pub(crate) fn said<'a>(query: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
    query.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect()
}

fn path(job_id: &str) -> String {
    format!("{PATH}/{}", segment(job_id))
}
