//! `reveille policy test`: the cases beside a policy, each a job and what is to be said of it.

use super::{load, read};
use crate::{exit, output};
use anyhow::{Context, Result, bail};
use reveille_core::id::{TenantId, Topic};
use reveille_core::policy::{Counting, Policy, Question, Windows};
use reveille_core::request::{Priority, Request};
use reveille_core::time::Millis;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    cases: Vec<PolicyCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyCase {
    name: String,
    job: CaseJob,
    expect: ExpectedVerdict,
}

/// The facts of a job that matter; what is left out is empty.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct CaseJob {
    topic: String,
    tenant: String,
    priority: Priority,
    labels: BTreeMap<String, String>,
    capability: String,
    risk_tags: Vec<String>,
    requires: Vec<String>,
    pack_id: String,
    principal_id: String,
    actor_id: String,
    actor_type: String,
    team: String,
    workflow_id: String,
    max_input_tokens: i64,
    max_output_tokens: i64,
    deadline_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedVerdict {
    decision: String,
    /// The rule that is to decide; without one any may.
    #[serde(default)]
    rule: Option<String>,
}

pub fn run(file: &Path, cases: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let policy = load(file)?;
    let beside = cases.map_or_else(|| beside(file), Path::to_path_buf);
    let text = read(&beside)?;
    let cases: Cases =
        serde_saphyr::from_str(&text).with_context(|| format!("reading {}", beside.display()))?;
    if cases.cases.is_empty() {
        bail!("{}: has no cases", beside.display());
    }
    let mut told = Vec::new();
    for case in &cases.cases {
        let problem = case.run(&policy).with_context(|| format!("{}: {}", beside.display(), case.name))?;
        if !as_json {
            let mark = if problem.is_none() { "ok  " } else { "FAIL" };
            output::line(&format!("{mark}  {}", case.name));
            if let Some(words) = &problem {
                output::line(&format!("      {}", words.replace('\n', "\n      ")));
            }
        }
        told.push(json!({ "name": case.name, "ok": problem.is_none(), "problem": problem }));
    }
    let failed = told.iter().filter(|case| case["ok"] == false).count();
    if as_json {
        output::json(&json!({ "snapshot": policy.snapshot(), "cases": told, "failed": failed }));
    } else {
        output::line(&format!("{} of {} cases hold", told.len() - failed, told.len()));
    }
    Ok(ExitCode::from(if failed > 0 { exit::FAILED } else { 0 }))
}

/// `safety.yaml` has its cases in `safety.test.yaml`.
fn beside(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}.test.yaml"))
}

impl PolicyCase {
    /// What is wrong, if something is.
    fn run(&self, policy: &Policy) -> Result<Option<String>> {
        let request = self.job.request()?;
        let (verdict, trace) = {
            let (counting, now) = (Counting::DryRun, Millis::ZERO);
            let question = Question { request: &request, input_verdict: None, counting, now };
            policy.explain(&question, &mut Windows::default())
        };
        let decision = verdict.decision.as_str().to_ascii_lowercase();
        let expected = self.expect.decision.to_ascii_lowercase();
        let is_other_rule = self.expect.rule.as_ref().is_some_and(|rule| *rule != verdict.rule_id);
        if decision == expected && !is_other_rule {
            return Ok(None);
        }
        let wanted =
            self.expect.rule.as_ref().map_or(expected.clone(), |rule| format!("{expected} by {rule}"));
        let mut words = format!("is {decision} by {}, not {wanted}: {}", verdict.rule_id, verdict.reason);
        let line = |line: &reveille_core::policy::Line| {
            format!("\n{} {}: {}", if line.matched { "→" } else { " " }, line.rule_id, line.why)
        };
        words.extend(trace.lines.iter().map(line));
        Ok(Some(words))
    }
}

impl CaseJob {
    fn request(&self) -> Result<Request> {
        let mut request = Request::plain("case", "job.default");
        request.topic = Topic::parse(&self.topic).context("job.topic")?;
        if !self.tenant.is_empty() {
            request.tenant = TenantId::parse(&self.tenant).context("job.tenant")?;
        }
        request.priority = self.priority;
        request.labels.clone_from(&self.labels);
        request.needs.capability.clone_from(&self.capability);
        request.needs.risk_tags.clone_from(&self.risk_tags);
        request.needs.requires.clone_from(&self.requires);
        request.needs.pack_id.clone_from(&self.pack_id);
        request.actor.principal_id.clone_from(&self.principal_id);
        request.actor.actor_id.clone_from(&self.actor_id);
        request.actor.actor_type.clone_from(&self.actor_type);
        request.actor.team.clone_from(&self.team);
        request.place.workflow_id.clone_from(&self.workflow_id);
        request.budget.max_input_tokens = self.max_input_tokens;
        request.budget.max_output_tokens = self.max_output_tokens;
        request.budget.deadline_ms = self.deadline_ms;
        request.check()?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
rules:
  - id: ask
    match: {topics: ['job.deploy.*']}
    decision: require_approval
  - id: small
    when: job.max_input_tokens < 100
    decision: allow
";

    fn problem(job: &str, expect: &str) -> Option<String> {
        let policy = reveille_engine::rules::read_policy(POLICY).unwrap();
        let text = format!("cases: [{{name: n, job: {job}, expect: {expect}}}]");
        let cases: Cases = serde_saphyr::from_str(&text).unwrap();
        cases.cases[0].run(&policy).unwrap()
    }

    #[test]
    fn a_case_holds_or_says_why_not() {
        assert_eq!(problem("{topic: job.deploy.web}", "{decision: require_approval, rule: ask}"), None);
        assert_eq!(problem("{topic: job.a}", "{decision: ALLOW}"), None);
        let words = problem("{topic: job.a, max_input_tokens: 500}", "{decision: allow}").unwrap();
        assert!(words.contains("is deny by default, not allow"), "{words}");
        assert!(words.contains("small: when: not so"), "{words}");
        assert!(
            problem("{topic: job.a}", "{decision: allow, rule: ask}").unwrap().contains("not allow by ask")
        );
    }

    #[test]
    fn cases_are_beside_the_policy() {
        assert_eq!(beside(Path::new("a/safety.yaml")), Path::new("a/safety.test.yaml"));
    }
}
