//! Everything that goes over the wire or into the results file, in one place.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::workspace::Enrolment;
use crate::workspace::errors::ErrorReport;
use crate::workspace::seen::{SEEN_MAX, SeenDelegations};
use crate::workspace::tasks::TaskReport;

const WAKE_TEXT: &str = "Delegation results are ready. Review them and take appropriate action.";
const NOTICE_LEN_MAX: usize = 300;
/// The most rows of a listing that are looked at.
const LISTED_MAX: usize = SEEN_MAX / 4;

#[derive(Debug, Serialize)]
pub struct RegisterBody<'a> {
    id: &'a str,
    url: &'a str,
    agent_card: &'a Value,
}

impl<'a> From<&'a Enrolment> for RegisterBody<'a> {
    fn from(enrolment: &'a Enrolment) -> Self {
        let Enrolment { id, url, agent_card, .. } = enrolment;
        Self { id, url, agent_card }
    }
}

/// The answer to a registration, as far as it matters.
#[derive(Debug, Default, Deserialize)]
pub struct RegisterReply {
    /// Handed out once, when the workspace has none.
    pub auth_token: Option<String>,
}

/// The answer to anything by a workspace that was retired.
#[derive(Debug, Default, Deserialize)]
pub struct RetiredReply {
    pub forwarded_to: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct PulseBody<'a> {
    workspace_id: &'a str,
    error_rate: f64,
    sample_error: &'a str,
    active_tasks: usize,
    uptime_seconds: u64,
    current_task: &'a str,
}

impl<'a> PulseBody<'a> {
    pub fn new(workspace_id: &'a str, report: &'a ErrorReport, work: &'a TaskReport) -> Self {
        Self {
            workspace_id,
            error_rate: report.error_rate,
            sample_error: &report.sample_error,
            active_tasks: work.active_tasks,
            uptime_seconds: report.uptime_seconds,
            current_task: &work.current_task,
        }
    }
}

/// How a delegation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompletionStatus {
    Completed,
    Failed,
}

/// A delegation that has ended, as it is listed, and as it is written to the results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    pub delegation_id: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub target_id: String,
    pub source_id: String,
    pub status: CompletionStatus,
    #[serde(default, deserialize_with = "or_empty")]
    pub summary: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub response_preview: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub error: String,
    /// When we saw it, in seconds since the epoch. Not in the listing.
    #[serde(default)]
    pub timestamp: f64,
}

/// What is missing or null is empty, which every reader of the results file can print.
fn or_empty<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(text)?.unwrap_or_default())
}

/// The listed delegations that have ended, are our own, and are new, oldest first. What cannot be read
/// as one, such as a delegation that is still open, is passed over.
pub fn new_completions(
    listed: &[Value],
    own_id: &str,
    seen: &SeenDelegations,
    now_s: f64,
) -> Vec<Completion> {
    let mut found: Vec<Completion> = Vec::new();
    for row in listed.iter().take(LISTED_MAX) {
        let Ok(completion) = Completion::deserialize(row) else { continue };
        // A delegation is listed twice, when it was sent and when it ended; the newer row says more.
        let is_known = seen.contains(&completion.delegation_id)
            || found.iter().any(|other| other.delegation_id == completion.delegation_id);
        if completion.source_id == own_id && !is_known {
            found.push(Completion { timestamp: now_s, ..completion });
        }
    }
    found.reverse();
    found
}

/// The message by which the agent wakes itself.
pub fn wake(message_id: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": message_id,
        "method": "message/send",
        "params": { "message": {
            "role": "user",
            "messageId": message_id,
            "parts": [{ "kind": "text", "text": WAKE_TEXT }],
        }},
    })
}

/// The line that people read about one result.
pub fn notice(completion: &Completion) -> Value {
    let Completion { status, summary, response_preview, error, delegation_id, .. } = completion;
    let (word, told) = match status {
        CompletionStatus::Completed => ("completed", [summary, response_preview]),
        CompletionStatus::Failed => ("failed", [error, summary]),
    };
    let told = told.into_iter().find(|text| !text.is_empty()).unwrap_or(delegation_id);
    let message = shortened(&format!("Delegation {word}: {told}"), NOTICE_LEN_MAX);
    json!({ "message": message, "type": "delegation_result" })
}

/// The first `len_max` characters.
pub fn shortened(text: &str, len_max: usize) -> String {
    text.chars().take(len_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, status: &str) -> Value {
        json!({
            "id": "row", "type": "delegation", "delegation_id": id, "source_id": "me", "target_id": "you",
            "status": status, "summary": "sum", "created_at": "2026-01-01T00:00:00Z",
        })
    }

    #[test]
    fn a_pulse_has_the_five_fields_and_the_id() {
        let report = ErrorReport { error_rate: 0.25, sample_error: "HTTP 503".into(), uptime_seconds: 90 };
        let work = TaskReport { active_tasks: 2, current_task: "answer".into() };
        assert_eq!(
            serde_json::to_string(&PulseBody::new("w", &report, &work)).unwrap(),
            r#"{"workspace_id":"w","error_rate":0.25,"sample_error":"HTTP 503","active_tasks":2,"uptime_seconds":90,"current_task":"answer"}"#
        );
    }

    #[test]
    fn only_new_endings_of_our_own_count_and_each_once() {
        let seen: SeenDelegations = ["old"].into_iter().collect();
        let foreign = json!({ "delegation_id": "f", "source_id": "you", "status": "completed" });
        let listed = [
            row("b", "failed"),
            row("b", "completed"),
            row("a", "completed"),
            row("old", "completed"),
            row("c", "in_progress"),
            foreign,
            json!({ "status": "completed", "source_id": "me" }),
            json!("nonsense"),
        ];
        let found = new_completions(&listed, "me", &seen, 7.0);
        let ids: Vec<_> = found.iter().map(|found| (found.delegation_id.as_str(), found.status)).collect();
        assert_eq!(ids, [("a", CompletionStatus::Completed), ("b", CompletionStatus::Failed)]);
        assert_eq!(
            serde_json::to_string(&found[0]).unwrap(),
            r#"{"delegation_id":"a","target_id":"you","source_id":"me","status":"completed","summary":"sum","response_preview":"","error":"","timestamp":7.0}"#
        );
    }

    #[test]
    fn a_notice_says_what_there_is_to_say() {
        let text = |row: Value| {
            let completion = Completion::deserialize(row).unwrap();
            notice(&completion)["message"].as_str().unwrap().to_owned()
        };
        assert_eq!(text(row("a", "completed")), "Delegation completed: sum");
        assert_eq!(text(row("a", "failed")), "Delegation failed: sum");
        let bare = json!({ "delegation_id": "a", "source_id": "me", "status": "failed", "error": null });
        assert_eq!(text(bare), "Delegation failed: a");
        let mut long = row("a", "completed");
        long["summary"] = "é".repeat(1000).into();
        assert_eq!(text(long).chars().count(), NOTICE_LEN_MAX);
    }

    #[test]
    fn the_wake_up_call_is_a_whole_a2a_message() {
        let message = wake("m-1");
        assert_eq!((&message["jsonrpc"], &message["method"]), (&json!("2.0"), &json!("message/send")));
        assert_eq!(message["params"]["message"]["messageId"], "m-1");
        assert_eq!(message["params"]["message"]["parts"][0], json!({ "kind": "text", "text": WAKE_TEXT }));
    }
}
