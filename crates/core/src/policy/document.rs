//! `safety.yaml` as it is written. Parsing is strict: a key that is not understood is an error.

use super::Decision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    /// A number or a word; part of the snapshot's name.
    pub version: serde_json::Value,
    /// The tier of rules that name none.
    pub tier: Tier,
    /// What rules that have no selector of their own are about.
    pub selector: Selector,
    pub default_tenant: String,
    pub default_decision: String,
    pub rules: Vec<Rule>,
    pub tenants: BTreeMap<String, TenantRules>,
    pub input_policy: InputPolicy,
    pub input_rules: Vec<ContentRule>,
    pub require_human: RequireHuman,
    pub output_policy: OutputPolicy,
    pub output_rules: Vec<ContentRule>,
}

/// The nearer tier is asked first: a job's own rules, then its workflow's, then everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Job,
    Workflow,
    #[default]
    Global,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Workflow => "workflow",
            Self::Global => "global",
        }
    }
}

/// Which job or workflow a rule is about. An empty name does not ask.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selector {
    pub workflow_id: String,
    pub job_id: String,
    /// The label `session_id`.
    pub session_id: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    pub tier: Option<Tier>,
    pub selector: Option<Selector>,
    #[serde(rename = "match")]
    pub matcher: Matcher,
    /// A CEL expression over the job's facts.
    pub when: String,
    pub velocity: Option<Velocity>,
    pub decision: String,
    pub reason: String,
    pub constraints: Option<Box<Constraints>>,
    pub remediations: Vec<Remediation>,
}

/// What a rule looks at. An empty list does not ask.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    pub tenants: Vec<String>,
    /// Patterns.
    pub topics: Vec<String>,
    pub capabilities: Vec<String>,
    /// Any of them.
    pub risk_tags: Vec<String>,
    /// All of them.
    pub requires: Vec<String>,
    pub pack_ids: Vec<String>,
    pub actor_ids: Vec<String>,
    pub actor_types: Vec<String>,
    /// The label `agent_risk_tier`.
    pub agent_risk_tiers: Vec<String>,
    /// The label `agent_data_classification`.
    pub agent_data_classifications: Vec<String>,
    /// Exactly these values.
    pub labels: BTreeMap<String, String>,
    /// Matches when the label's value is *not* in the list; a label that is not there is not in it.
    pub label_allowlist: BTreeMap<String, Vec<String>>,
    /// Matches when the label's value is a larger number, or no number at all.
    pub label_threshold: BTreeMap<String, f64>,
    /// The label `secrets_present`, or the risk tag `secrets`.
    pub secrets_present: Option<bool>,
    /// The same as the rule's `when`.
    pub predicate: String,
    /// Whether a workspace gave the job to another.
    pub delegation: Option<bool>,
    pub mcp: Option<Mcp>,
}

/// How often is too often: the rule matches from the request after `max_requests` within the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Velocity {
    pub max_requests: u32,
    pub window_seconds: u32,
    /// What is counted apart: `tenant`, `topic`, `actor_id`, `labels.X`, …, or several joined with `:`.
    pub key: String,
}

/// Which MCP calls. Of what both lists name, the denial counts; an empty list of allowances allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    pub allow_servers: Vec<String>,
    pub deny_servers: Vec<String>,
    pub allow_tools: Vec<String>,
    pub deny_tools: Vec<String>,
    pub allow_resources: Vec<String>,
    pub deny_resources: Vec<String>,
    pub allow_actions: Vec<String>,
    pub deny_actions: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantRules {
    pub allow_topics: Vec<String>,
    pub deny_topics: Vec<String>,
    /// Hosts of the label `repo_url`, or else `repo_host`.
    pub allowed_repo_hosts: Vec<String>,
    pub max_concurrent_jobs: u32,
    /// Jobs that have not ended, wherever they are.
    pub max_queued_jobs: u32,
    pub mcp: Option<Mcp>,
}

/// How jobs' inputs are looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputPolicy {
    pub enabled: bool,
    pub fail_mode: FailMode,
    pub max_scan_bytes: usize,
}

impl Default for InputPolicy {
    fn default() -> Self {
        Self { enabled: true, fail_mode: FailMode::default(), max_scan_bytes: 2 * 1024 * 1024 }
    }
}

/// How jobs' results are looked at.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputPolicy {
    pub enabled: Option<bool>,
    pub fail_mode: Option<FailMode>,
    /// Nobody reads a result before its content was looked at.
    pub hold: bool,
}

/// What happens when nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    #[default]
    Closed,
    Open,
}

/// A rule about content: a job's input, or its result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContentRule {
    pub id: String,
    pub severity: String,
    #[serde(rename = "match")]
    pub matcher: ContentMatcher,
    pub decision: String,
    pub reason: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContentMatcher {
    pub tenants: Vec<String>,
    pub topics: Vec<String>,
    pub capabilities: Vec<String>,
    pub risk_tags: Vec<String>,
    /// Names of scanners.
    pub scanners: Vec<String>,
    /// More of them.
    pub detectors: Vec<String>,
    pub content_patterns: Vec<String>,
    pub keywords: Vec<String>,
    /// The label `content_type`.
    pub content_types: Vec<String>,
    /// Which part of the content: `prompt`, or all of it.
    pub scope: String,
    /// Matches what is larger.
    pub input_size_gt: u64,
    pub max_input_bytes: u64,
    pub output_size_gt: u64,
    pub max_output_bytes: u64,
    /// Whether the worker reported an error.
    pub has_error: Option<bool>,
}

/// When a finding is sure enough to deny, and when a person decides instead.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequireHuman {
    pub min_severity_for_deny: String,
    /// From 0 to 1.
    pub min_confidence_for_deny: f64,
    pub downgrade_when_prompt_only: bool,
}

/// What an allowed job must keep to. Workers get it in their environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    pub budgets: Budgets,
    pub sandbox: Sandbox,
    pub toolchain: Toolchain,
    pub diff: Diff,
    pub redaction_level: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    pub max_runtime_ms: i64,
    pub max_retries: u32,
    pub max_artifact_bytes: i64,
    pub max_concurrent_jobs: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    pub isolated: bool,
    pub network_allowlist: Vec<String>,
    pub fs_read_only: Vec<String>,
    pub fs_read_write: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Toolchain {
    pub allowed_tools: Vec<String>,
    pub allowed_commands: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Diff {
    pub max_files: i32,
    pub max_lines: i32,
    pub deny_path_globs: Vec<String>,
}

/// What would make a refused job acceptable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Remediation {
    pub id: String,
    pub title: String,
    pub summary: String,
    pub replacement_topic: String,
    pub replacement_capability: String,
    pub add_labels: BTreeMap<String, String>,
    pub remove_labels: Vec<String>,
}

/// The decision that a word of the file stands for.
pub fn decision(word: &str) -> Option<Decision> {
    Some(match word.to_ascii_lowercase().as_str() {
        "allow" | "permit" => Decision::Allow,
        "deny" | "block" => Decision::Deny,
        "require_approval" | "require_human" => Decision::RequireApproval,
        "throttle" => Decision::Throttle,
        "allow_with_constraints" => Decision::AllowWithConstraints,
        _ => return None,
    })
}

impl Document {
    pub fn version_text(&self) -> String {
        match &self.version {
            serde_json::Value::Null => "0".to_owned(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}
