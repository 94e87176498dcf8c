//! `safety.yaml` as it is written. Parsing is strict: a key that is not understood is an error.

use super::{BadPolicy, Decision, glob};
use crate::request::Request;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    /// A number or a word; part of the snapshot's name.
    pub version: serde_json::Value,
    pub default_tenant: String,
    pub default_decision: String,
    pub rules: Vec<Rule>,
    pub tenants: BTreeMap<String, TenantRules>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    #[serde(rename = "match")]
    pub matcher: Matcher,
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
    /// Exactly these values.
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantRules {
    pub allow_topics: Vec<String>,
    pub deny_topics: Vec<String>,
    pub max_concurrent_jobs: u32,
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

fn decision(word: &str) -> Option<Decision> {
    Some(match word.to_ascii_lowercase().as_str() {
        "allow" | "permit" => Decision::Allow,
        "deny" | "block" => Decision::Deny,
        "require_approval" | "require_human" => Decision::RequireApproval,
        "throttle" => Decision::Throttle,
        "allow_with_constraints" => Decision::AllowWithConstraints,
        _ => return None,
    })
}

impl Rule {
    /// The word was checked when the document was; an unknown one would deny.
    pub fn decision(&self) -> Decision {
        decision(&self.decision).unwrap_or(Decision::Deny)
    }
}

impl Document {
    pub fn check(&self) -> Result<(), BadPolicy> {
        if !self.default_decision.is_empty() && decision(&self.default_decision).is_none() {
            let words = format!("default_decision: {:?} is none of {DECISIONS}", self.default_decision);
            return Err(BadPolicy::Head(words));
        }
        let mut seen = BTreeSet::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let bad =
                |problem: String| BadPolicy::Rule { rule: format!("{} ({:?})", index + 1, rule.id), problem };
            if rule.id.is_empty() {
                return Err(bad("has no id".to_owned()));
            }
            if !seen.insert(&rule.id) {
                return Err(bad("the id is used twice".to_owned()));
            }
            if decision(&rule.decision).is_none() {
                return Err(bad(format!("decision: {:?} is none of {DECISIONS}", rule.decision)));
            }
            for pattern in &rule.matcher.topics {
                glob::check(pattern).map_err(|problem| bad(format!("topics: {pattern:?} {problem}")))?;
            }
        }
        for (tenant, rules) in &self.tenants {
            for pattern in rules.allow_topics.iter().chain(&rules.deny_topics) {
                let bad = |problem| BadPolicy::Head(format!("tenants.{tenant}: {pattern:?} {problem}"));
                glob::check(pattern).map_err(bad)?;
            }
        }
        Ok(())
    }

    pub fn default_decision(&self) -> Decision {
        decision(&self.default_decision).unwrap_or(Decision::Deny)
    }

    pub fn version_text(&self) -> String {
        match &self.version {
            serde_json::Value::Null => "0".to_owned(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Why a tenant's own lists refuse the topic, if they do.
    pub fn tenant_refuses(&self, request: &Request) -> Option<String> {
        let (tenant, topic) = (request.tenant.as_str(), request.topic.as_str());
        let rules = self.tenants.get(tenant)?;
        let listed = |patterns: &[String]| patterns.iter().any(|pattern| glob::matches(pattern, topic));
        if listed(&rules.deny_topics) {
            return Some(format!("tenant {tenant} may not use {topic}"));
        }
        let allowed = rules.allow_topics.is_empty() || listed(&rules.allow_topics);
        (!allowed).then(|| format!("{topic} is not among the topics of tenant {tenant}"))
    }
}

const DECISIONS: &str = "allow, deny, require_approval, throttle, allow_with_constraints";

impl Matcher {
    pub fn matches(&self, request: &Request) -> bool {
        let one_of = |list: &[String], value: &str| list.is_empty() || list.iter().any(|item| item == value);
        one_of(&self.tenants, request.tenant.as_str())
            && (self.topics.is_empty()
                || self.topics.iter().any(|pattern| glob::matches(pattern, request.topic.as_str())))
            && one_of(&self.capabilities, &request.needs.capability)
            && (self.risk_tags.is_empty()
                || self.risk_tags.iter().any(|tag| request.needs.risk_tags.contains(tag)))
            && self.requires.iter().all(|need| request.needs.requires.contains(need))
            && one_of(&self.pack_ids, &request.needs.pack_id)
            && one_of(&self.actor_ids, &request.actor.actor_id)
            && one_of(&self.actor_types, &request.actor.actor_type)
            && self.labels.iter().all(|(key, value)| request.labels.get(key) == Some(value))
    }
}
