//! A job as the console shows it: a task, and while a person has to decide, an intervention.

use super::node::usual_domain;
use reveille_core::job::{Event, Job, State};
use reveille_core::presence::Contract;
use reveille_core::request::Priority;
use reveille_core::time::Millis;
use serde::Serialize;
use std::ops::RangeInclusive;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Task)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleTask {
    pub id: String,
    /// The node that has it; empty while nobody does.
    pub agent_id: String,
    pub agent_name: String,
    pub domain: &'static str,
    pub title: String,
    pub description: String,
    /// pending, `waiting_approval`, `in_progress`, completed or failed.
    pub status: &'static str,
    /// low, medium or urgent.
    pub priority: &'static str,
    /// From 0 to 100.
    pub progress: u8,
    pub start_time: String,
    #[schema(value_type = Vec<String>)]
    pub integrations_used: [&'static str; 0],
    #[schema(value_type = Vec<String>)]
    pub collaborators: [&'static str; 0],
}

impl ConsoleTask {
    /// `agent` is the node that has it, and its name.
    pub fn of(job: &Job, agent: Option<(String, String)>) -> Self {
        let (agent_id, agent_name) = agent.unwrap_or_default();
        Self {
            id: job.id().to_string(),
            agent_id,
            agent_name,
            domain: usual_domain(holder_contract(job)),
            title: job.request.topic.to_string(),
            description: description(job),
            status: status(job.state()),
            priority: priority(job.request.priority),
            progress: progress(job),
            start_time: job.created_at.rfc3339(),
            integrations_used: [],
            collaborators: [],
        }
    }
}

/// How whoever has the job speaks to us.
pub fn holder_contract(job: &Job) -> Contract {
    if job.request.delegated.is_some() { Contract::Molecule } else { Contract::Cap }
}

fn status(state: State) -> &'static str {
    match state {
        State::Pending | State::Scheduled => "pending",
        State::ApprovalRequired => "waiting_approval",
        State::Dispatched | State::Running => "in_progress",
        State::Succeeded => "completed",
        State::Failed | State::Timeout | State::Cancelled | State::Denied | State::OutputQuarantined => {
            "failed"
        }
    }
}

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Critical => "urgent",
        Priority::Interactive => "medium",
        Priority::Batch => "low",
    }
}

fn progress(job: &Job) -> u8 {
    let told = job.attempt().and_then(|attempt| attempt.progress.as_ref()).map(|told| told.percent.min(100));
    if job.state() == State::Succeeded { 100 } else { told.unwrap_or(0) }
}

fn description(job: &Job) -> String {
    let told = job.attempt().and_then(|attempt| attempt.progress.as_ref()).map(|told| told.message.clone());
    told.or_else(|| job.ending().map(|ending| ending.words.clone())).unwrap_or_default()
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intervention {
    pub id: String,
    pub agent_id: String,
    pub agent_name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub question: String,
    pub context: String,
    /// approve, deny and later.
    #[schema(value_type = Vec<String>)]
    pub options: [&'static str; 3],
    pub timestamp: String,
    pub priority: &'static str,
}

impl Intervention {
    /// Nothing unless a person has to decide.
    pub fn of(job: &Job) -> Option<Self> {
        if job.state() != State::ApprovalRequired {
            return None;
        }
        let verdict = job.last_verdict().map(|recorded| &recorded.verdict);
        let (rule, reason) =
            verdict.map_or(("", ""), |verdict| (verdict.rule_id.as_str(), verdict.reason.as_str()));
        Some(Self {
            id: job.id().to_string(),
            agent_id: String::new(),
            agent_name: job.request.actor.principal_id.clone(),
            kind: "approval_needed",
            question: format!("May a job on {} run?", job.request.topic),
            context: if reason.is_empty() {
                format!("Rule {rule}")
            } else {
                format!("Rule {rule}: {reason}")
            },
            options: ["approve", "deny", "later"],
            timestamp: job.since().rfc3339(),
            priority: priority(job.request.priority),
        })
    }
}

/// What became of an intervention within this time, if one ended in it.
pub fn resolution(job: &Job, within: &RangeInclusive<Millis>) -> Option<&'static str> {
    let marks: Vec<_> = job.marks.iter().filter(|mark| within.contains(&mark.at)).collect();
    let ended_here = job.ending().is_some_and(|end| end.from == State::ApprovalRequired)
        && marks.iter().any(|mark| mark.state.is_terminal());
    if ended_here {
        return Some("deny");
    }
    marks.iter().any(|mark| mark.event == Event::Approve).then_some("approve")
}
