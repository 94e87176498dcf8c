//! `reveille workflow dry-run`: what would become of each step, and nothing done.

use super::checked;
use crate::args::ServerArgs;
use crate::client::connect;
use crate::commands::run::input as read_input;
use crate::{exit, output};
use anyhow::{Context, Result};
use reveille_api_types::dry_run::{DryRunBody, DryRunReply, DryStepRecord};
use serde_json::Value;
use serde_json::value::to_raw_value;
use std::path::Path;
use std::process::ExitCode;

/// The exit code says whether some step would be denied or fail.
pub fn run(of: &str, input: Option<&str>, server: &ServerArgs) -> Result<ExitCode> {
    let mut body = DryRunBody { input: Some(read_input(input)?), ..DryRunBody::default() };
    let mut id = of.to_owned();
    if Path::new(of).is_file() {
        let document = checked(Path::new(of))?;
        body.workflow = Some(to_raw_value(&document).context("writing the workflow")?).into();
        id = document.id;
    }
    let answer: Value = connect(server)?.post(&format!("/api/v1/workflows/{id}/dry-run"), &body)?;
    let reply: DryRunReply = output::read(&answer)?;
    if server.json {
        output::json(&answer);
    } else {
        print(&reply);
    }
    Ok(if has_bad_end(&reply) { ExitCode::from(exit::JOB_FAILED) } else { ExitCode::SUCCESS })
}

/// Whether some step would be denied or fail, here or in a run within the run.
fn has_bad_end(reply: &DryRunReply) -> bool {
    reply.steps.iter().any(|step| {
        matches!(step.status.as_str(), "denied" | "failed") || step.run.as_deref().is_some_and(has_bad_end)
    })
}

/// A row for each step; those of a run within the run stand below it, as `step/inner`.
fn rows(reply: &DryRunReply, within: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for step in &reply.steps {
        let name = format!("{within}{}", step.step_id);
        let inner = step.run.as_deref().map(|run| self::rows(run, &format!("{name}/")));
        let policy = step.policy.as_ref().map(|policy| (policy.decision.clone(), policy.rule_id.clone()));
        let (decision, rule) = policy.unwrap_or_default();
        rows.push(vec![name, step.status.clone(), decision, rule, why(step)]);
        rows.extend(inner.into_iter().flatten());
    }
    rows
}

fn print(reply: &DryRunReply) {
    output::table(&["STEP", "WOULD BE", "POLICY", "RULE", "WHY"], &rows(reply, ""));
    for warning in &reply.warnings {
        eprintln!("warning: {warning}");
    }
}

/// What is not known beforehand, or what stands in the way.
fn why(step: &DryStepRecord) -> String {
    let mut words = vec![step.error.clone()];
    if let Some(policy) = step.policy.as_ref().filter(|policy| policy.decision != "ALLOW") {
        words.push(policy.reason.clone());
    }
    if let Some(rounds) = step.rounds {
        words.push(format!("{rounds} rounds"));
    }
    for (what, on) in [("begins", &step.begins_on), ("input", &step.input_on)] {
        if !on.is_empty() {
            words.push(format!("{what} rests on {}", on.join(", ")));
        }
    }
    words.retain(|words| !words.is_empty());
    words.join("; ")
}
