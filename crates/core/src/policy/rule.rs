//! A rule made ready: what it asks of a job, in the order that is cheapest to find out.

use super::condition::Condition;
use super::document::{self, Constraints, Remediation, Selector, Tier, decision};
use super::facts::Facts;
use super::pattern::Patterns;
use super::velocity::{Counting, Velocity, Windows};
use super::{Decision, InputVerdict, Question, mcp};
use crate::cost::Meter;
use crate::id::{TenantId, Topic};
use crate::request::Request;
use crate::time::Millis;
use std::cell::OnceCell;
use std::collections::BTreeMap;

const DECISIONS: &str = "allow, deny, require_approval, throttle, allow_with_constraints";

#[derive(Debug, Clone)]
pub struct Rule {
    pub id: String,
    pub tier: Tier,
    pub decision: Decision,
    pub reason: String,
    pub constraints: Option<Box<Constraints>>,
    pub remediations: Vec<Remediation>,
    asks: Asks,
    /// `when` and `match.predicate`.
    conditions: Vec<Condition>,
    velocity: Option<Velocity>,
}

/// What can be read off the request.
#[derive(Debug, Clone, PartialEq, Default)]
struct Asks {
    selector: Selector,
    tenants: Vec<String>,
    topics: Patterns,
    capabilities: Vec<String>,
    risk_tags: Vec<String>,
    requires: Vec<String>,
    pack_ids: Vec<String>,
    actor_ids: Vec<String>,
    actor_types: Vec<String>,
    agent_risk_tiers: Vec<String>,
    agent_data_classifications: Vec<String>,
    labels: BTreeMap<String, String>,
    label_allowlist: BTreeMap<String, Vec<String>>,
    label_threshold: BTreeMap<String, f64>,
    secrets_present: Option<bool>,
    delegation: Option<bool>,
    mcp: Option<mcp::Filter>,
}

/// The circumstances of one verdict.
pub struct Case<'a> {
    pub request: &'a Request,
    pub input_verdict: Option<&'a InputVerdict>,
    now: Millis,
    counting: Counting,
    meter: &'a Meter,
    facts: OnceCell<Facts<'a>>,
}

impl<'a> Case<'a> {
    /// All conditions together have what `meter` has.
    pub fn new(question: &Question<'a>, meter: &'a Meter) -> Self {
        let Question { request, input_verdict, counting, now } = *question;
        Self { request, input_verdict, now, counting, meter, facts: OnceCell::new() }
    }
}

/// Why a rule does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// The field of `match` that the job does not meet.
    Field(&'static str),
    Label(String),
    Condition(String),
    /// The condition could not be evaluated, and then an allowance is none.
    Unevaluated(String),
    /// So many requests, which is not too often.
    UnderLimit {
        count: u32,
        max: u32,
    },
}

/// How a rule matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hit {
    Plain,
    /// The condition could not be evaluated, and then a restriction holds.
    Unevaluated(String),
    /// So many requests within the window.
    OverLimit(u32),
}

impl Rule {
    /// Whether it is about jobs of this tenant, whatever else it asks for.
    pub fn is_for(&self, tenant: &TenantId) -> bool {
        let tenants = &self.asks.tenants;
        tenants.is_empty() || tenants.iter().any(|name| name == tenant.as_str())
    }

    pub fn new(written: document::Rule, tier: Tier, selector: &Selector) -> Result<Self, String> {
        if written.id.is_empty() {
            return Err("has no id".to_owned());
        }
        let word = &written.decision;
        let decision = decision(word).ok_or_else(|| format!("decision: {word:?} is none of {DECISIONS}"))?;
        let sources = [&written.when, &written.matcher.predicate];
        let conditions = sources.into_iter().filter(|source| !source.trim().is_empty());
        let conditions = conditions.map(|source| Condition::parse(source)).collect::<Result<_, _>>();
        check_remediations(&written.remediations)?;
        let asks = Asks::new(written.matcher, written.selector.unwrap_or_else(|| selector.clone()))?;
        Ok(Self {
            id: written.id,
            tier: written.tier.unwrap_or(tier),
            decision,
            reason: written.reason,
            constraints: written.constraints,
            remediations: written.remediations,
            asks,
            conditions: conditions.map_err(|problem| format!("when: {problem}"))?,
            velocity: written.velocity.as_ref().map(Velocity::new).transpose()?,
        })
    }

    pub fn has_velocity(&self) -> bool {
        self.velocity.is_some()
    }

    /// How many steps its conditions take, at least.
    pub fn steps(&self) -> u64 {
        self.conditions.iter().map(Condition::steps).sum()
    }

    pub fn matches(&self, case: &Case<'_>, windows: &mut Windows) -> Result<Hit, Miss> {
        if let Some(miss) = self.asks.missed_by(case.request) {
            return Err(miss);
        }
        let mut hit = Hit::Plain;
        for condition in &self.conditions {
            match condition.holds(case.facts.get_or_init(|| Facts::of(case.request, case.meter))) {
                Ok(true) => {}
                Ok(false) => return Err(Miss::Condition(condition.source().to_owned())),
                Err(problem) if self.decision.lets_run() => return Err(Miss::Unevaluated(problem)),
                Err(problem) => hit = Hit::Unevaluated(problem),
            }
        }
        if let Some(velocity) = &self.velocity {
            let count = windows.count(&self.id, velocity, case.request, case.counting, case.now);
            let max = velocity.max_requests;
            return if count > max {
                Ok(Hit::OverLimit(count))
            } else {
                Err(Miss::UnderLimit { count, max })
            };
        }
        Ok(hit)
    }

    /// Whether this rule takes every job that the other would take, as far as can be told.
    pub fn hides(&self, other: &Self) -> bool {
        self.conditions.is_empty() && self.velocity.is_none() && self.asks.ask_no_more_than(&other.asks)
    }
}

impl Asks {
    fn new(written: document::Matcher, selector: Selector) -> Result<Self, String> {
        Ok(Self {
            selector,
            topics: Patterns::parse(&written.topics).map_err(|problem| format!("topics: {problem}"))?,
            mcp: written.mcp.as_ref().map(mcp::Filter::new).transpose()?,
            tenants: written.tenants,
            capabilities: written.capabilities,
            risk_tags: written.risk_tags,
            requires: written.requires,
            pack_ids: written.pack_ids,
            actor_ids: written.actor_ids,
            actor_types: written.actor_types,
            agent_risk_tiers: written.agent_risk_tiers,
            agent_data_classifications: written.agent_data_classifications,
            labels: written.labels,
            label_allowlist: written.label_allowlist,
            label_threshold: written.label_threshold,
            secrets_present: written.secrets_present,
            delegation: written.delegation,
        })
    }

    fn missed_by(&self, job: &Request) -> Option<Miss> {
        let lacks = |list: &[String], value: &str| !list.is_empty() && !list.iter().any(|item| item == value);
        let label = |name: &str| job.labels.get(name).map_or("", String::as_str);
        let other = |asked: &str, is: &str| !asked.is_empty() && asked != is;
        let field = |name| Some(Miss::Field(name));
        if !self.topics.is_empty() && !self.topics.any(job.topic.as_str()) {
            return field("topics");
        }
        if lacks(&self.tenants, job.tenant.as_str()) {
            return field("tenants");
        }
        if other(&self.selector.workflow_id, &job.place.workflow_id)
            || other(&self.selector.job_id, job.id.as_str())
            || other(&self.selector.session_id, label("session_id"))
        {
            return field("selector");
        }
        if lacks(&self.capabilities, &job.needs.capability) {
            return field("capabilities");
        }
        if !self.risk_tags.is_empty() && !self.risk_tags.iter().any(|tag| job.needs.risk_tags.contains(tag)) {
            return field("risk_tags");
        }
        if !self.requires.iter().all(|need| job.needs.requires.contains(need)) {
            return field("requires");
        }
        if lacks(&self.pack_ids, &job.needs.pack_id) {
            return field("pack_ids");
        }
        if lacks(&self.actor_ids, &job.actor.actor_id) {
            return field("actor_ids");
        }
        if lacks(&self.actor_types, &job.actor.actor_type) {
            return field("actor_types");
        }
        if lacks(&self.agent_risk_tiers, label("agent_risk_tier")) {
            return field("agent_risk_tiers");
        }
        if lacks(&self.agent_data_classifications, label("agent_data_classification")) {
            return field("agent_data_classifications");
        }
        if let Some((name, _)) =
            self.labels.iter().find(|(name, value)| job.labels.get(*name) != Some(*value))
        {
            return Some(Miss::Label(name.clone()));
        }
        let is_listed = |(name, list): &(&String, &Vec<String>)| list.iter().any(|item| item == label(name));
        if let Some((name, _)) = self.label_allowlist.iter().find(is_listed) {
            return Some(Miss::Label(name.clone()));
        }
        let is_below = |(name, limit): &(&String, &f64)| {
            job.labels.get(*name).is_none_or(|value| value.parse().is_ok_and(|value: f64| value <= **limit))
        };
        if let Some((name, _)) = self.label_threshold.iter().find(is_below) {
            return Some(Miss::Label(name.clone()));
        }
        let has_secrets =
            || label("secrets_present") == "true" || job.needs.risk_tags.iter().any(|tag| tag == "secrets");
        if self.secrets_present.is_some_and(|asked| asked != has_secrets()) {
            return field("secrets_present");
        }
        if self.delegation.is_some_and(|asked| asked != job.delegated.is_some()) {
            return field("delegation");
        }
        if let Some(filter) = &self.mcp
            && (!mcp::is_call(job) || filter.stops(job).is_some())
        {
            return field("mcp");
        }
        None
    }

    fn ask_no_more_than(&self, other: &Self) -> bool {
        let wider = |mine: &[String], theirs: &[String]| {
            mine.is_empty() || contains_all(mine, theirs) && !theirs.is_empty()
        };
        let same = |is_asked: bool, is_same: bool| !is_asked || is_same;
        self.topics.cover(&other.topics)
            && wider(&self.tenants, &other.tenants)
            && wider(&self.capabilities, &other.capabilities)
            && wider(&self.risk_tags, &other.risk_tags)
            && contains_all(&other.requires, &self.requires)
            && wider(&self.pack_ids, &other.pack_ids)
            && wider(&self.actor_ids, &other.actor_ids)
            && wider(&self.actor_types, &other.actor_types)
            && wider(&self.agent_risk_tiers, &other.agent_risk_tiers)
            && wider(&self.agent_data_classifications, &other.agent_data_classifications)
            && self.labels.iter().all(|(name, value)| other.labels.get(name) == Some(value))
            && same(!self.label_allowlist.is_empty(), self.label_allowlist == other.label_allowlist)
            && same(!self.label_threshold.is_empty(), self.label_threshold == other.label_threshold)
            && same(self.secrets_present.is_some(), self.secrets_present == other.secrets_present)
            && same(self.delegation.is_some(), self.delegation == other.delegation)
            && same(self.mcp.is_some(), self.mcp == other.mcp)
            && same(self.selector != Selector::default(), self.selector == other.selector)
    }
}

/// What a verdict offers must be possible to take.
fn check_remediations(offered: &[Remediation]) -> Result<(), String> {
    for (index, remediation) in offered.iter().enumerate() {
        let Remediation { id, replacement_topic, .. } = remediation;
        if id.is_empty() {
            return Err("remediations: one has no id".to_owned());
        }
        if offered[..index].iter().any(|other| other.id == *id) {
            return Err(format!("remediations: the id {id:?} is used twice"));
        }
        if !replacement_topic.is_empty() {
            Topic::parse(replacement_topic).map_err(|problem| format!("remediations: {id}: {problem}"))?;
        }
    }
    Ok(())
}

fn contains_all(list: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|item| list.contains(item))
}
