//! `reveille policy …`: for the people who write policies, on their machine and in their CI.

mod cases;

use crate::args::{PolicyAskArgs, PolicyCommand, ServerArgs};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::{Context, Result, anyhow};
use reveille_api_types::policy::{
    CheckMeta, PolicyAnswer, PolicyCheck, ReplayDifference, ReplayReply, ReplayRequest, TraceLine,
};
use reveille_core::policy::Policy;
use reveille_engine::rules::read_policy;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

pub fn run(command: PolicyCommand) -> Result<ExitCode> {
    match command {
        PolicyCommand::Check { file, strict, json } => check(&file, strict, json),
        PolicyCommand::Test { file, cases, json } => cases::run(&file, cases.as_deref(), json),
        PolicyCommand::Simulate { file, since, server } => simulate(&file, &since, &server),
        PolicyCommand::Ask(question) => ask(&question),
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

fn load(file: &Path) -> Result<Policy> {
    read_policy(&read(file)?).map_err(|problem| anyhow!("{}: {problem}", file.display()))
}

fn check(file: &Path, strict: bool, as_json: bool) -> Result<ExitCode> {
    let policy = load(file)?;
    let remarks: Vec<String> = policy.remarks().iter().map(ToString::to_string).collect();
    if as_json {
        output::json(&json!({ "snapshot": policy.snapshot(), "remarks": remarks }));
    } else {
        for remark in &remarks {
            output::line(&format!("remark: {remark}"));
        }
        output::line(&format!("{} can be used; its snapshot is {}", file.display(), policy.snapshot()));
    }
    Ok(ExitCode::from(if strict && !remarks.is_empty() { exit::FAILED } else { 0 }))
}

fn simulate(file: &Path, since: &str, server: &ServerArgs) -> Result<ExitCode> {
    let text = read(file)?;
    // A mistake in the file is found here, with its name.
    load(file)?;
    let body = ReplayRequest { policy: text, since: since.to_owned() };
    let client = connect(server)?;
    let asked = "asking the policy about the jobs of the past";
    let answer: Value = progress::during(asked, || client.post("/api/v1/policy/replay", &body))?;
    output::answer(server, &answer, |reply: ReplayReply| {
        let rows: Vec<Vec<String>> = reply.differences.into_iter().map(difference_row).collect();
        if !rows.is_empty() {
            output::table(&["JOB", "TENANT", "TOPIC", "WAS", "WOULD BE"], &rows);
        }
        let more = if reply.partial { "; there are more jobs than are looked at" } else { "" };
        output::line(&format!("{} of {} decisions would be others{more}", reply.changed, reply.examined));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn difference_row(found: ReplayDifference) -> Vec<String> {
    let was = format!("{} ({})", found.was, found.was_rule);
    let would_be = format!("{} ({})", found.would_be, found.would_be_rule);
    vec![found.job_id, found.tenant, found.topic, was, would_be]
}

fn ask(question: &PolicyAskArgs) -> Result<ExitCode> {
    let body = PolicyCheck {
        topic: question.topic.clone(),
        principal_id: question.principal.clone().unwrap_or_default(),
        labels: question.labels.iter().cloned().collect(),
        meta: CheckMeta {
            capability: question.capability.clone().unwrap_or_default(),
            risk_tags: question.risk_tags.clone(),
            ..CheckMeta::default()
        },
        ..PolicyCheck::default()
    };
    let answer: Value = connect(&question.server)?.post("/api/v1/policy/explain", &body)?;
    output::answer(&question.server, &answer, |said: PolicyAnswer| {
        let decision = said.decision.strip_prefix("DECISION_TYPE_").unwrap_or(&said.decision);
        output::line(&format!("{decision} by {}: {}", said.rule_id, said.reason));
        let row = |line: TraceLine| vec![line.rule_id, line.matched.to_string(), line.why];
        let rows: Vec<Vec<String>> = said.trace.into_iter().map(row).collect();
        if !rows.is_empty() {
            output::table(&["RULE", "MATCHED", "WHY"], &rows);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
