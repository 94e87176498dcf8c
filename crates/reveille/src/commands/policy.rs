//! `reveille policy …`: for the people who write policies, on their machine and in their CI.

mod cases;

use crate::args::{Ask, Policy as Command, Server};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::{Context, Result, anyhow};
use reveille_core::policy::Policy;
use reveille_engine::rules::read_policy;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Check { file, strict, json } => check(&file, strict, json),
        Command::Test { file, cases, json } => cases::run(&file, cases.as_deref(), json),
        Command::Simulate { file, since, server } => simulate(&file, &since, &server),
        Command::Ask(question) => ask(&question),
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

fn simulate(file: &Path, since: &str, server: &Server) -> Result<ExitCode> {
    let text = read(file)?;
    // A mistake in the file is found here, with its name.
    load(file)?;
    let body = json!({ "policy": text, "since": since });
    let client = connect(server)?;
    let asked = "asking the policy about the jobs of the past";
    let reply: Value = progress::during(asked, || client.post("/api/v1/policy/replay", &body))?;
    if server.json {
        output::json(&reply);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |found: &Value| {
        let text = |field: &str| output::text(&found[field]);
        let pair = |decision: &str, rule: &str| format!("{} ({})", text(decision), text(rule));
        vec![
            text("job_id"),
            text("tenant"),
            text("topic"),
            pair("was", "was_rule"),
            pair("would_be", "would_be_rule"),
        ]
    };
    let rows: Vec<Vec<String>> = reply["differences"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        output::table(&["JOB", "TENANT", "TOPIC", "WAS", "WOULD BE"], &rows);
    }
    let (changed, examined) = (output::text(&reply["changed"]), output::text(&reply["examined"]));
    let more = if reply["partial"] == true { "; there are more jobs than are looked at" } else { "" };
    output::line(&format!("{changed} of {examined} decisions would be others{more}"));
    Ok(ExitCode::SUCCESS)
}

fn ask(question: &Ask) -> Result<ExitCode> {
    let labels: Map<_, _> =
        question.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    let body = json!({
        "topic": question.topic,
        "principal_id": question.principal.as_deref().unwrap_or_default(),
        "labels": labels,
        "meta": {
            "capability": question.capability.as_deref().unwrap_or_default(),
            "risk_tags": question.risk_tags,
        },
    });
    let answer: Value = connect(&question.server)?.post("/api/v1/policy/explain", &body)?;
    if question.server.json {
        output::json(&answer);
        return Ok(ExitCode::SUCCESS);
    }
    let decision = output::text(&answer["decision"]);
    let decision = decision.strip_prefix("DECISION_TYPE_").unwrap_or(&decision);
    output::line(&format!(
        "{decision} by {}: {}",
        output::text(&answer["ruleId"]),
        output::text(&answer["reason"])
    ));
    let row = |line: &Value| ["ruleId", "matched", "why"].map(|field| output::text(&line[field])).to_vec();
    let rows: Vec<Vec<String>> = answer["trace"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        output::table(&["RULE", "MATCHED", "WHY"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}
