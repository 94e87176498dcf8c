//! Policy: which jobs may run. Rules are tried in order, the nearer tier first; the first that matches
//! decides, and what no rule allows is denied.
//!
//! Evaluation is a pure function of the job's facts and of how often things were asked lately, so it costs
//! microseconds and can be replayed. A file that cannot be honoured to the letter is refused when it is
//! loaded, because a rule whose conditions are ignored would match too much.

mod condition;
mod content;
mod document;
mod facts;
mod glob;
mod input;
mod lint;
mod mcp;
mod output;
pub(crate) mod pattern;
mod rule;
mod tenants;
mod trace;
mod velocity;

pub use content::ContentMetadata;
pub use document::{
    Budgets, Constraints, ContentMatcher, ContentRule, Diff, Document, FailMode, Matcher, Remediation,
    Sandbox, TenantRules, Tier, Toolchain,
};
pub use input::{InputContent, InputVerdict};
pub use lint::Remark;
pub use output::{ContentScan, OutputRules};
pub use trace::{Line, Trace};
pub use velocity::{Counted, Counting, Windows};

use crate::cost::{CostLimit, Meter, TooExpensive};
use crate::id::TenantId;
use crate::request::Request;
use crate::scan::Library;
use crate::time::Millis;
use input::InputRules;
use rule::{Case, Hit, Rule};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use tenants::Tenants;

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
    pub const ALL: &'static [Self] =
        &[Self::Allow, Self::Deny, Self::RequireApproval, Self::Throttle, Self::AllowWithConstraints];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|decision| decision.as_str() == word)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::RequireApproval => "REQUIRE_APPROVAL",
            Self::Throttle => "THROTTLE",
            Self::AllowWithConstraints => "ALLOW_WITH_CONSTRAINTS",
        }
    }

    /// Whether the job goes on without anybody else.
    pub fn lets_run(self) -> bool {
        matches!(self, Self::Allow | Self::AllowWithConstraints)
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
pub struct RecordedVerdict {
    pub verdict: Verdict,
    pub checked_at: Millis,
}

/// What policy is asked.
pub struct Question<'a> {
    pub request: &'a Request,
    /// What [`Policy::scan_input`] said.
    pub input_verdict: Option<&'a InputVerdict>,
    pub counting: Counting,
    pub now: Millis,
}

/// A loaded policy. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Policy(Arc<CompiledPolicy>);

#[derive(Debug)]
struct CompiledPolicy {
    snapshot: String,
    default_decision: Decision,
    /// In the order in which they are asked.
    rules: Vec<Rule>,
    tenants: Tenants,
    input: InputRules,
    output: OutputRules,
    has_velocity: bool,
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    #[error("rule {rule}: {problem}")]
    Rule { rule: String, problem: String },
    #[error("{0}")]
    Head(String),
}

/// A rule that takes more to evaluate than there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule}: {reason}")]
pub struct ExpensiveRule {
    pub rule: String,
    pub reason: TooExpensive,
}

impl Policy {
    /// The policy of a machine without a policy file: it allows, and every verdict says so.
    pub fn builtin() -> Self {
        let rule = document::Rule {
            id: "builtin-allow".to_owned(),
            decision: "allow".to_owned(),
            ..Default::default()
        };
        let document = Document { rules: vec![rule], ..Document::default() };
        match Self::named(document, "builtin".to_owned(), &Library::default()) {
            Ok(policy) => policy,
            Err(problem) => unreachable!("the built-in policy is a policy: {problem}"),
        }
    }

    /// Checks a document and makes it ready; `source` is the text it came from, which names the snapshot.
    pub fn new(document: Document, source: &[u8]) -> Result<Self, BadPolicy> {
        Self::with_scanners(document, source, &Library::default())
    }

    /// The same, where rules may choose from more than the built-in scanners. The text of those is part of
    /// the source: other scanners make another policy.
    pub fn with_scanners(document: Document, source: &[u8], library: &Library) -> Result<Self, BadPolicy> {
        let mut snapshot = format!("{}:", document.version_text());
        for byte in Sha256::digest(source) {
            let _ = write!(snapshot, "{byte:02x}");
        }
        Self::named(document, snapshot, library)
    }

    fn named(document: Document, snapshot: String, library: &Library) -> Result<Self, BadPolicy> {
        let default_decision = match document.default_decision.as_str() {
            "" => Decision::Deny,
            word => document::decision(word)
                .ok_or_else(|| BadPolicy::Head(format!("default_decision: {word:?} is no decision")))?,
        };
        let mut seen = BTreeSet::new();
        let mut rules = Vec::with_capacity(document.rules.len());
        for (index, written) in document.rules.into_iter().enumerate() {
            let name = format!("{} ({:?})", index + 1, written.id);
            let bad = |problem| BadPolicy::Rule { rule: name.clone(), problem };
            if !seen.insert(written.id.clone()) {
                return Err(bad("the id is used twice".to_owned()));
            }
            rules.push(Rule::new(written, document.tier, &document.selector).map_err(bad)?);
        }
        let steps = rules.iter().map(Rule::steps).fold(0, u64::saturating_add);
        let most = CostLimit::VERDICT.steps;
        if steps > most {
            let problem = format!("rules: their conditions together take {steps} steps, and may take {most}");
            return Err(BadPolicy::Head(problem));
        }
        // Within a tier the order of the file stands.
        rules.sort_by_key(|rule| rule.tier);
        let has_velocity = rules.iter().any(Rule::has_velocity);
        let tenants = Tenants::new(document.tenants).map_err(BadPolicy::Head)?;
        let meter = Meter::new(CostLimit::PATTERNS);
        let Document { input_policy, input_rules, require_human, output_policy, output_rules, .. } = document;
        let input = InputRules::new(&input_policy, input_rules, &require_human, library, &meter)?;
        let output = OutputRules::new(&output_policy, output_rules, &snapshot, library, &meter)?;
        Ok(Self(Arc::new(CompiledPolicy {
            snapshot,
            default_decision,
            rules,
            tenants,
            input,
            output,
            has_velocity,
        })))
    }

    pub fn snapshot(&self) -> &str {
        &self.0.snapshot
    }

    /// Whether a verdict depends on how often things were asked.
    pub fn has_velocity(&self) -> bool {
        self.0.has_velocity
    }

    /// What the file says of jobs whose input cannot be read.
    pub fn input_fail_mode(&self) -> FailMode {
        self.0.input.fail_mode
    }

    /// What the input rules say. It takes as long as the input is large, and nothing else does.
    pub fn scan_input(&self, request: &Request, input: InputContent<'_>) -> Option<InputVerdict> {
        self.0.input.scan(request, input)
    }

    /// The same of a whole input, by a policy that nobody has put in force: what reading takes is charged.
    pub fn scan_input_within(
        &self,
        request: &Request,
        input: &[u8],
        meter: &Meter,
    ) -> Result<Option<InputVerdict>, ExpensiveRule> {
        let charged = meter.step(self.0.input.scan_steps(request, input.len()));
        charged.map_err(|reason| ExpensiveRule { rule: "input_rules".to_owned(), reason })?;
        Ok(self.scan_input(request, InputContent::Whole(input)))
    }

    /// Why a tenant's own lists refuse a job, whoever else allowed it.
    pub fn refusal(&self, request: &Request) -> Option<Verdict> {
        let (rule_id, reason) = match self.0.tenants.refuse_topic(request) {
            Some(reason) => ("tenant-topics", reason),
            None => self.0.tenants.refuse_call(request)?,
        };
        Some(self.verdict(Decision::Deny, rule_id, reason))
    }

    /// Whether a rule might want to read the job's input.
    pub fn reads_input(&self, request: &Request) -> bool {
        self.0.input.reads(request)
    }

    /// The rules for results.
    pub fn output(&self) -> &OutputRules {
        &self.0.output
    }

    /// Judges a job as if nothing had been asked before and it had no input.
    pub fn evaluate(&self, request: &Request) -> Verdict {
        let question =
            Question { request, input_verdict: None, counting: Counting::DryRun, now: Millis::ZERO };
        self.judge(&question, &mut Windows::default())
    }

    /// Judges a job. A condition that is too expensive is one that could not be evaluated: what it would have
    /// allowed is not allowed, and what it would have restricted is.
    pub fn judge(&self, question: &Question<'_>, windows: &mut Windows) -> Verdict {
        self.walk(&Case::new(question, &Meter::new(CostLimit::VERDICT)), windows, |_, _| {})
    }

    /// The same for a policy that nobody has put in force: one that is too expensive is an answer, not a verdict.
    pub fn try_judge(
        &self,
        question: &Question<'_>,
        windows: &mut Windows,
        meter: &Meter,
    ) -> Result<Verdict, ExpensiveRule> {
        let mut expensive = None;
        let verdict = self.walk(&Case::new(question, meter), windows, |rule, _| {
            if let (None, Some(reason)) = (&expensive, meter.exceeded()) {
                expensive = Some(ExpensiveRule { rule: rule.id.clone(), reason });
            }
        });
        expensive.map_or(Ok(verdict), Err)
    }

    /// Judges a job and says of each rule why it matched or did not. Counts nothing.
    pub fn explain(&self, question: &Question<'_>, windows: &mut Windows) -> (Verdict, Trace) {
        let mut trace = Trace::default();
        let meter = Meter::new(CostLimit::VERDICT);
        let case = Case::new(&Question { counting: Counting::DryRun, ..*question }, &meter);
        let request = case.request;
        let verdict = self.walk(&case, windows, |rule, outcome| trace.add(rule, outcome, request));
        trace.finish(&self.0.rules, &verdict, request);
        (verdict, trace)
    }

    /// The order of things: the topic, the tenant's own lists, the rules, the default, and then what can
    /// still turn an allowance into a denial.
    fn walk(
        &self,
        case: &Case<'_>,
        windows: &mut Windows,
        mut observe: impl FnMut(&Rule, &Result<Hit, rule::Miss>),
    ) -> Verdict {
        let request = case.request;
        if !request.topic.as_str().starts_with("job.") {
            return self.verdict(Decision::Deny, "topic", "a topic must start with job.".to_owned());
        }
        if let Some(reason) = self.0.tenants.refuse_topic(request) {
            return self.verdict(Decision::Deny, "tenant-topics", reason);
        }
        let mut decided = None;
        for rule in &self.0.rules {
            let outcome = rule.matches(case, windows);
            observe(rule, &outcome);
            if let Ok(hit) = outcome {
                decided = Some(self.by_rule(rule, &hit));
                break;
            }
        }
        let verdict = decided.unwrap_or_else(|| self.by_default(request));
        if verdict.decision == Decision::Deny {
            return verdict;
        }
        if let Some((rule_id, reason)) = self.0.tenants.refuse_call(request) {
            return self.verdict(Decision::Deny, rule_id, reason);
        }
        match case.input_verdict.filter(|input| input.overrides(verdict.decision)) {
            Some(input) => self.verdict(input.decision, &input.rule_id, input.reason.clone()),
            None => verdict,
        }
    }

    fn by_rule(&self, rule: &Rule, hit: &Hit) -> Verdict {
        let mut reason =
            if rule.reason.is_empty() { format!("rule {} matched", rule.id) } else { rule.reason.clone() };
        match hit {
            Hit::Plain => {}
            Hit::Unevaluated(problem) => {
                let _ = write!(reason, " (its condition could not be told: {problem})");
            }
            Hit::OverLimit(count) => {
                let _ = write!(reason, " ({count} requests within the window)");
            }
        }
        Verdict {
            constraints: rule.constraints.clone(),
            remediations: rule.remediations.clone(),
            ..self.verdict(rule.decision, &rule.id, reason)
        }
    }

    /// Nothing matched. Where there are no rules at all, a tenant's own list of topics allows.
    fn by_default(&self, request: &Request) -> Verdict {
        if self.0.rules.is_empty() && self.0.tenants.allow_topic(request) {
            let reason = format!("{} is among the topics of tenant {}", request.topic, request.tenant);
            return self.verdict(Decision::Allow, "tenant-topics", reason);
        }
        let decision = self.0.default_decision;
        let reason = format!("no rule matched; the default is {}", decision.as_str());
        self.verdict(decision, "default", reason)
    }

    fn verdict(&self, decision: Decision, rule_id: &str, reason: String) -> Verdict {
        Verdict {
            decision,
            reason,
            rule_id: rule_id.to_owned(),
            snapshot: self.0.snapshot.clone(),
            constraints: None,
            remediations: Vec::new(),
        }
    }

    /// Every tenant that has a limit.
    pub fn tenant_limits(&self) -> BTreeMap<TenantId, u32> {
        self.0.tenants.limits()
    }

    /// The same of one tenant.
    pub fn tenant_jobs_max(&self, tenant: &TenantId) -> Option<u32> {
        self.0.tenants.jobs_max(tenant)
    }

    /// How many jobs of a tenant that have not ended there may be, if the file says so.
    pub fn tenant_queue_max(&self, tenant: &TenantId) -> Option<u32> {
        self.0.tenants.queue_max(tenant)
    }

    /// Its rules in the order in which they are asked: name, tier, decision and reason.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &'static str, Decision, &str)> {
        self.0
            .rules
            .iter()
            .map(|rule| (rule.id.as_str(), rule.tier.as_str(), rule.decision, rule.reason.as_str()))
    }

    pub fn default_decision(&self) -> Decision {
        self.0.default_decision
    }

    /// What a careful reader of the file would remark on.
    pub fn remarks(&self) -> Vec<Remark> {
        // Where there are no rules at all, a tenant's own list of topics allows.
        let tenants_allow = self.0.rules.is_empty() && self.0.tenants.allow_something();
        lint::remarks(&self.0.rules, self.0.default_decision, tenants_allow)
    }
}
