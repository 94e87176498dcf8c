//! Policy: which jobs may run. Rules are tried in order, the first that matches decides, and what no
//! rule allows is denied.
//!
//! Evaluation is a pure function of the job's facts, so it costs microseconds and can be replayed.
//! Not here yet: tiers, velocity, scanners and expressions; a file that uses them is refused when it
//! is loaded, because a rule whose conditions are ignored would match too much.

mod document;
mod glob;

pub use document::{Budgets, Constraints, Document, Matcher, Remediation, Rule, TenantRules};

use crate::id::TenantId;
use crate::request::Request;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    Allow,
    Deny,
    RequireApproval,
    Throttle,
    AllowWithConstraints,
}

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::RequireApproval => "REQUIRE_APPROVAL",
            Self::Throttle => "THROTTLE",
            Self::AllowWithConstraints => "ALLOW_WITH_CONSTRAINTS",
        }
    }
}

/// What policy said of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
    pub rule_id: String,
    /// Names the policy that spoke, by its content.
    pub snapshot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Box<Constraints>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<Remediation>,
}

/// A verdict with the moment it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: Verdict,
    pub checked_at: Millis,
}

/// A loaded policy.
#[derive(Debug, Clone)]
pub struct Policy {
    document: Document,
    snapshot: String,
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    #[error("rule {rule}: {problem}")]
    Rule { rule: String, problem: String },
    #[error("{0}")]
    Head(String),
}

impl Policy {
    /// The policy of a machine without a policy file: it allows, and every judgement says so.
    pub fn builtin() -> Self {
        let rule = Rule { id: "builtin-allow".to_owned(), decision: "allow".to_owned(), ..Rule::default() };
        let document = Document { rules: vec![rule], ..Document::default() };
        Self { document, snapshot: "builtin".to_owned() }
    }

    /// Checks a document; `source` is the text it came from, which names the snapshot.
    pub fn new(document: Document, source: &[u8]) -> Result<Self, BadPolicy> {
        document.check()?;
        let mut snapshot = format!("{}:", document.version_text());
        for byte in Sha256::digest(source) {
            let _ = write!(snapshot, "{byte:02x}");
        }
        Ok(Self { document, snapshot })
    }

    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Judges a job.
    pub fn evaluate(&self, request: &Request) -> Verdict {
        let verdict = |decision, rule_id: &str, reason: String| Verdict {
            decision,
            reason,
            rule_id: rule_id.to_owned(),
            snapshot: self.snapshot.clone(),
            constraints: None,
            remediations: Vec::new(),
        };
        if !request.topic.as_str().starts_with("job.") {
            return verdict(Decision::Deny, "topic", "a topic must start with job.".to_owned());
        }
        if let Some(reason) = self.document.tenant_refuses(request) {
            return verdict(Decision::Deny, "tenant-topics", reason);
        }
        let Some(rule) = self.document.rules.iter().find(|rule| rule.matcher.matches(request)) else {
            let decision = self.document.default_decision();
            return verdict(
                decision,
                "default",
                format!("no rule matched; the default is {}", decision.as_str()),
            );
        };
        let reason =
            if rule.reason.is_empty() { format!("rule {} matched", rule.id) } else { rule.reason.clone() };
        Verdict {
            constraints: rule.constraints.clone(),
            remediations: rule.remediations.clone(),
            ..verdict(rule.decision(), &rule.id, reason)
        }
    }

    /// Every tenant that has a limit.
    pub fn tenant_limits(&self) -> BTreeMap<TenantId, u32> {
        let limited = self.document.tenants.iter().filter(|(_, rules)| rules.max_concurrent_jobs > 0);
        let limits = limited
            .filter_map(|(name, rules)| Some((TenantId::parse(name).ok()?, rules.max_concurrent_jobs)));
        limits.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(document: serde_json::Value) -> Policy {
        let source = document.to_string();
        Policy::new(serde_json::from_value(document).unwrap(), source.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_the_default_is_deny() {
        let policy = policy(json!({
            "version": "7",
            "rules": [
                {"id": "no-prod", "match": {"topics": ["job.deploy.*"], "risk_tags": ["prod", "money"]}, "decision": "deny", "reason": "not here"},
                {"id": "ask", "match": {"topics": ["job.deploy.*"]}, "decision": "require_human"},
                {"id": "small", "match": {"labels": {"size": "s"}}, "decision": "allow_with_constraints",
                 "constraints": {"budgets": {"max_runtime_ms": 500}}},
                {"id": "slow", "match": {"tenants": ["acme"], "capabilities": ["pay"]}, "decision": "throttle"},
                {"id": "echo", "match": {"topics": ["job.echo"]}, "decision": "allow"},
            ],
        }));
        let check = |change: &dyn Fn(&mut Request), topic: &str, decision: Decision, rule: &str| {
            let mut request = Request::plain("j", topic);
            change(&mut request);
            let verdict = policy.evaluate(&request);
            assert_eq!((verdict.decision, verdict.rule_id.as_str()), (decision, rule));
            assert!(verdict.snapshot.starts_with("7:"));
        };
        check(&|r| r.needs.risk_tags = vec!["money".into()], "job.deploy.web", Decision::Deny, "no-prod");
        check(&|_| (), "job.deploy.web", Decision::RequireApproval, "ask");
        check(
            &|r| drop(r.labels.insert("size".into(), "s".into())),
            "job.x",
            Decision::AllowWithConstraints,
            "small",
        );
        check(&|_| (), "job.echo", Decision::Allow, "echo");
        check(&|_| (), "job.other", Decision::Deny, "default");
        check(&|_| (), "echo", Decision::Deny, "topic");
        check(
            &|r| {
                r.tenant = TenantId::known("acme");
                r.needs.capability = "pay".into();
            },
            "job.x",
            Decision::Throttle,
            "slow",
        );
    }

    #[test]
    fn a_tenants_lists_narrow_what_rules_allow() {
        let policy = policy(json!({
            "rules": [{"id": "all", "decision": "allow"}],
            "tenants": {"default": {"deny_topics": ["job.secret.*"], "allow_topics": ["job.*", "job.*.*"], "max_concurrent_jobs": 2}},
        }));
        assert_eq!(policy.evaluate(&Request::plain("j", "job.secret.a")).decision, Decision::Deny);
        assert_eq!(policy.evaluate(&Request::plain("j", "job.a.b")).decision, Decision::Allow);
        assert_eq!(
            policy.evaluate(&Request::plain("j", "job.a.b.c")).decision,
            Decision::Allow,
            "* crosses dots"
        );
        assert_eq!(policy.tenant_limits(), BTreeMap::from([(TenantId::known("default"), 2)]));
    }

    #[test]
    fn a_policy_that_cannot_be_honoured_is_refused() {
        let check = |document: serde_json::Value, part: &str| {
            let parsed = serde_json::from_value::<Document>(document).map_err(|error| error.to_string());
            let error =
                parsed.and_then(|document| Policy::new(document, b"").map_err(|error| error.to_string()));
            let error = error.err().unwrap_or_default();
            assert!(error.contains(part), "{error:?} should contain {part:?}");
        };
        check(json!({"rules": [{"id": "a", "decision": "maybe"}]}), "maybe");
        check(json!({"rules": [{"id": "", "decision": "allow"}]}), "has no id");
        check(json!({"rules": [{"id": "a", "decision": "allow"}, {"id": "a", "decision": "deny"}]}), "twice");
        check(json!({"rules": [{"id": "a", "decision": "allow", "velocity": {}}]}), "velocity");
        check(
            json!({"rules": [{"id": "a", "decision": "allow", "match": {"topics": ["job.[a"]}}]}),
            "job.[a",
        );
        check(json!({"default_decision": "perhaps"}), "perhaps");
        check(json!({"tenants": {"acme": {"deny_topics": ["job.[a"]}}}), "acme");
    }
}
