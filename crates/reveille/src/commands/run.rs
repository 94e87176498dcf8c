//! `reveille run …`

use crate::args::{RunCommand, ServerArgs};
use crate::client::connect;
use crate::{exit, output};
use anyhow::{Context, Result};
use reveille_api_types::run::{RerunBody, RunDetail, RunRecord, StartBody, StartedReply, TimelineLine};
use reveille_client::Client;
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

pub fn run(command: RunCommand) -> Result<ExitCode> {
    match command {
        RunCommand::Start { workflow, input, idempotency_key, wait, server } => {
            start(&workflow, input.as_deref(), idempotency_key.as_deref(), wait, &server)
        }
        RunCommand::Get { id, server } => get(&id, &server),
        RunCommand::List { workflow, status, limit, server } => {
            list(workflow.as_deref(), status.as_deref(), limit, &server)
        }
        RunCommand::Watch { id, server } => watch(&connect(&server)?, &id, &server),
        RunCommand::Timeline { id, server } => timeline(&id, &server),
        RunCommand::Cancel { id, reason, server } => cancel(&id, &reason, &server),
        RunCommand::Rerun { id, from, server } => rerun(&id, from.as_deref(), &server),
    }
}

fn start(
    workflow: &str,
    input: Option<&str>,
    key: Option<&str>,
    wait: bool,
    server: &ServerArgs,
) -> Result<ExitCode> {
    let client = connect(server)?;
    let body = StartBody { input: Some(self::input(input)?), idempotency_key: key.map(str::to_owned) };
    let reply: Value = client.post(&format!("/api/v1/workflows/{workflow}/runs"), &body)?;
    if wait {
        return watch(&client, &output::read::<StartedReply>(&reply)?.run_id, server);
    }
    said(&reply, server)
}

/// What a run is given: JSON, or `-` for what comes on standard input.
pub fn input(given: Option<&str>) -> Result<Value> {
    match given {
        None => Ok(json!({})),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
            serde_json::from_str(&text).context("standard input is not JSON")
        }
        Some(text) => serde_json::from_str(text).with_context(|| format!("{text:?} is not JSON")),
    }
}

fn said(reply: &Value, server: &ServerArgs) -> Result<ExitCode> {
    output::answer(server, reply, |reply: StartedReply| output::line(&reply.run_id))?;
    Ok(ExitCode::SUCCESS)
}

fn get(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/workflow-runs/{id}"), &[])?;
    output::answer(server, &answer, |run: RunDetail| {
        let text = |value: &Value| if value.is_null() { String::new() } else { value.to_string() };
        output::facts(
            17,
            &[
                ("id", &run.id),
                ("workflow_id", &run.workflow_id),
                ("workflow_version", &run.workflow_version.to_string()),
                ("status", &run.status),
                ("origin", &run.origin),
                ("parent_run_id", run.parent_run_id.as_deref().unwrap_or_default()),
                ("rollback_run_id", run.rollback_run_id.as_deref().unwrap_or_default()),
                ("created_at", &run.created_at),
                ("completed_at", run.completed_at.as_deref().unwrap_or_default()),
                ("error", &run.error),
                ("input", &text(&run.input)),
                ("output", &text(&run.output)),
            ],
        );
        output::line("");
        let steps = run.steps.into_iter();
        let rows: Vec<_> = steps
            .map(|(id, step)| vec![id, step.status, step.attempt.to_string(), step.since, step.message])
            .collect();
        output::table(&["STEP", "STATUS", "ATTEMPT", "SINCE", "WHY"], &rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(workflow: Option<&str>, status: Option<&str>, limit: usize, server: &ServerArgs) -> Result<ExitCode> {
    let filters = [("workflow_id", workflow), ("status", status)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    output::list(
        server,
        connect(server)?.list("/api/v1/workflow-runs", &filters, limit),
        &["RUN", "WORKFLOW", "STATUS", "ORIGIN", "BEGAN", "ERROR"],
        |run: RunRecord| vec![run.id, run.workflow_id, run.status, run.origin, run.created_at, run.error],
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Prints lines as they come. The exit code says how the run ended; what it gives goes to standard output.
fn watch(client: &Client, id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let mut shown = 0;
    loop {
        let answer: Value = client.get(&format!("/api/v1/workflow-runs/{id}"), &[("wait", "1s")])?;
        let run: RunDetail = output::read(&answer)?;
        // The lines of a run that is over are complete, so they are read after the run.
        for line in lines(client, id, shown)? {
            eprintln!("{}", told(&line));
            shown = line.n;
        }
        if run.has_ended() {
            if server.json {
                output::json(&answer);
            } else if !run.output.is_null() {
                output::json(&run.output);
            }
            if run.status == "succeeded" {
                return Ok(ExitCode::SUCCESS);
            }
            eprintln!("run {id} ended as {}: {}", run.status, run.error);
            return Ok(ExitCode::from(exit::JOB_FAILED));
        }
    }
}

fn timeline(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let all = lines(&connect(server)?, id, 0)?;
    if server.json {
        output::json(&json!(all));
    } else {
        for line in &all {
            output::line(&told(line));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All lines after this one.
fn lines(client: &Client, id: &str, mut after: u64) -> Result<Vec<TimelineLine>> {
    let mut all: Vec<TimelineLine> = Vec::new();
    loop {
        let query = [("limit", "500"), ("after", &after.to_string())];
        let page: Vec<TimelineLine> = client.get(&format!("/api/v1/workflow-runs/{id}/timeline"), &query)?;
        let Some(last) = page.last() else { return Ok(all) };
        after = last.n;
        all.extend(page);
    }
}

fn told(line: &TimelineLine) -> String {
    let what = line.step_id.as_deref().unwrap_or("the run");
    let told = format!("{:24}  {what:<20}  {:<10}  {}", line.time, line.status, line.message);
    told.trim_end().to_owned()
}

fn cancel(id: &str, reason: &str, server: &ServerArgs) -> Result<ExitCode> {
    connect(server)?.runs().cancel(id, reason)?;
    if server.json {
        output::json(&json!({ "run_id": id, "cancelled": true }));
    } else {
        output::line(&format!("{id} is cancelled"));
    }
    Ok(ExitCode::SUCCESS)
}

fn rerun(id: &str, from: Option<&str>, server: &ServerArgs) -> Result<ExitCode> {
    let body = RerunBody { from_step: from.map(str::to_owned), dry_run: None };
    let reply: Value = connect(server)?.post(&format!("/api/v1/workflow-runs/{id}/rerun"), &body)?;
    said(&reply, server)
}
