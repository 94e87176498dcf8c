//! Why a job was judged as it was: every rule, in the order of asking, with what came of it.

use super::Verdict;
use super::rule::{Hit, Miss, Rule};
use crate::request::Request;
use serde::Serialize;

/// One rule's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub rule_id: String,
    pub tier: &'static str,
    pub decision: &'static str,
    pub matched: bool,
    /// In words.
    pub why: String,
    /// Whether the rule is for the job's tenant at all.
    #[serde(skip)]
    is_for_tenant: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Trace {
    pub lines: Vec<Line>,
}

impl Trace {
    pub(super) fn add(&mut self, rule: &Rule, outcome: &Result<Hit, Miss>, request: &Request) {
        let why = match outcome {
            Ok(Hit::Plain) => "everything it asks for holds".to_owned(),
            Ok(Hit::Unevaluated(problem)) => {
                format!("its condition could not be told ({problem}), and a restriction then holds")
            }
            Ok(Hit::OverLimit(count)) => format!("{count} requests within the window"),
            Err(miss) => miss_words(miss, request),
        };
        self.lines.push(line(rule, outcome.is_ok(), why, request));
    }

    /// As the job's tenant may see it: what rules there are for others is not its business.
    #[must_use]
    pub fn without_rules_of_others(mut self) -> Self {
        self.lines.retain(|line| line.is_for_tenant);
        self
    }

    /// Adds the rules that were not asked any more, and what was decided without one.
    pub(super) fn finish(&mut self, rules: &[Rule], verdict: &Verdict, request: &Request) {
        let asked = self.lines.len();
        let because =
            if asked == 0 { verdict.reason.clone() } else { "an earlier rule had decided".to_owned() };
        let left = rules[asked..].iter();
        self.lines.extend(left.map(|rule| line(rule, false, format!("not asked: {because}"), request)));
        if !self.lines.iter().any(|line| line.matched && line.rule_id == verdict.rule_id) {
            self.lines.push(Line {
                rule_id: verdict.rule_id.clone(),
                tier: "global",
                decision: verdict.decision.as_str(),
                matched: true,
                why: verdict.reason.clone(),
                is_for_tenant: true,
            });
        }
    }
}

fn line(rule: &Rule, matched: bool, why: String, request: &Request) -> Line {
    let (tier, decision) = (rule.tier.as_str(), rule.decision.as_str());
    let is_for_tenant = rule.is_for(&request.tenant);
    Line { rule_id: rule.id.clone(), tier, decision, matched, why, is_for_tenant }
}

fn miss_words(miss: &Miss, request: &Request) -> String {
    match miss {
        Miss::Field(field) => {
            let has = has_words(field, request);
            format!("{field}: the job has {has}")
        }
        Miss::Label(name) => match request.labels.get(name) {
            Some(value) => format!("label {name}: the job has {value:?}"),
            None => format!("label {name}: the job has none"),
        },
        Miss::Condition(source) => format!("when: not so: {source}"),
        Miss::Unevaluated(problem) => {
            format!("when: could not be told ({problem}), and an allowance then is none")
        }
        Miss::UnderLimit { count, max } => format!("velocity: {count} of {max} requests within the window"),
    }
}

fn has_words(field: &str, request: &Request) -> String {
    let (needs, actor) = (&request.needs, &request.actor);
    let label = |name: &str| format!("{:?}", request.labels.get(name).map_or("", String::as_str));
    match field {
        "topics" => format!("{:?}", request.topic.as_str()),
        "tenants" => format!("{:?}", request.tenant.as_str()),
        "selector" => format!("workflow {:?}, id {:?}", request.place.workflow_id, request.id.as_str()),
        "capabilities" => format!("{:?}", needs.capability),
        "risk_tags" => format!("{:?}", needs.risk_tags),
        "requires" => format!("{:?}", needs.requires),
        "pack_ids" => format!("{:?}", needs.pack_id),
        "actor_ids" => format!("{:?}", actor.actor_id),
        "actor_types" => format!("{:?}", actor.actor_type),
        "agent_risk_tiers" => label("agent_risk_tier"),
        "agent_data_classifications" => label("agent_data_classification"),
        "mcp" => "another MCP call, or none".to_owned(),
        _ => "it otherwise".to_owned(),
    }
}
