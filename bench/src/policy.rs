//! What policy costs: a file of fifty rules, of which the last decides.

use crate::report::BenchReport;
use anyhow::{Context, Result};
use reveille_core::policy::{Document, Policy};
use reveille_core::request::Request;
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

const RULES: usize = 50;
const ROUNDS: u32 = 1_000_000;

pub fn measure(report: &mut BenchReport) -> Result<()> {
    let plain = evaluation_ns(&policy(|_| json!({}))?);
    report.add(format!("policy, {RULES} rules"), 1e9 / plain, "evaluations/s", "≥ 500,000");
    let conditions = policy(|number| match number % 5 {
        0 => json!({"when": "job.max_input_tokens > 50000 && job.labels.env == 'prod'"}),
        _ => json!({}),
    })?;
    let ns = evaluation_ns(&conditions);
    report.add("  with a condition in every fifth that is reached", 1e9 / ns, "evaluations/s", "");
    if let Some(job_us) = report.value("  server CPU for a job") {
        report.add("  of a job's server CPU", plain / 1000.0 / job_us * 100.0, "%", "< 5");
    }
    Ok(())
}

fn evaluation_ns(policy: &Policy) -> f64 {
    let mut request = Request::plain("j", &format!("job.team{}.deploy", RULES - 1));
    request.labels.insert("env".to_owned(), "prod".to_owned());
    let began = Instant::now();
    for _ in 0..ROUNDS {
        black_box(policy.evaluate(black_box(&request)));
    }
    began.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

/// Every rule asks for a topic, a tenant and a label; `more` adds to it.
fn policy(more: impl Fn(usize) -> Value) -> Result<Policy> {
    let rule = |number: usize| {
        let mut rule = json!({
            "id": format!("r{number}"),
            "match": {"topics": [format!("job.team{number}.*")], "tenants": ["default", "acme"], "labels": {"env": "prod"}},
            "decision": "allow",
        });
        if let (Value::Object(rule), Value::Object(more)) = (&mut rule, more(number)) {
            rule.extend(more);
            // A condition is asked only where everything else fits.
            if rule.contains_key("when") {
                rule.insert("match".to_owned(), json!({"topics": ["job.*"]}));
            }
        }
        rule
    };
    let rules: Vec<Value> = (0..RULES).map(rule).collect();
    let document: Document = serde_json::from_value(json!({ "rules": rules }))?;
    Policy::new(document, b"bench").context("the bench's policy")
}
