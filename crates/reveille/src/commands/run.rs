//! `reveille run …`

use crate::args::{Run, Server};
use crate::client::connect;
use crate::{exit, output};
use anyhow::{Context, Result};
use reveille_client::{Client, RUN_ENDS};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

pub fn run(command: Run) -> Result<ExitCode> {
    match command {
        Run::Start { workflow, input, idempotency_key, wait, server } => {
            start(&workflow, input.as_deref(), idempotency_key.as_deref(), wait, &server)
        }
        Run::Get { id, server } => get(&id, &server),
        Run::List { workflow, status, limit, server } => {
            list(workflow.as_deref(), status.as_deref(), limit, &server)
        }
        Run::Watch { id, server } => watch(&connect(&server)?, &id, &server),
        Run::Timeline { id, server } => timeline(&id, &server),
        Run::Cancel { id, reason, server } => cancel(&id, &reason, &server),
        Run::Rerun { id, from, server } => rerun(&id, from.as_deref(), &server),
    }
}

fn start(
    workflow: &str,
    input: Option<&str>,
    key: Option<&str>,
    wait: bool,
    server: &Server,
) -> Result<ExitCode> {
    let client = connect(server)?;
    let body = json!({ "input": self::input(input)?, "idempotency_key": key });
    let reply: Value = client.post(&format!("/api/v1/workflows/{workflow}/runs"), &body)?;
    if wait {
        return watch(&client, &output::text(&reply["run_id"]), server);
    }
    said(&reply, server);
    Ok(ExitCode::SUCCESS)
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

fn said(reply: &Value, server: &Server) {
    if server.json {
        output::json(reply);
    } else {
        output::line(&output::text(&reply["run_id"]));
    }
}

fn get(id: &str, server: &Server) -> Result<ExitCode> {
    let run: Value = connect(server)?.get(&format!("/api/v1/workflow-runs/{id}"), &[])?;
    if server.json {
        output::json(&run);
        return Ok(ExitCode::SUCCESS);
    }
    for field in [
        "id",
        "workflow_id",
        "workflow_version",
        "status",
        "origin",
        "parent_run_id",
        "rollback_run_id",
        "created_at",
        "completed_at",
        "error",
    ] {
        let value = output::text(&run[field]);
        if !value.is_empty() {
            output::line(&format!("{field:17} {value}"));
        }
    }
    for field in ["input", "output"] {
        if !run[field].is_null() {
            output::line(&format!("{field:17} {}", run[field]));
        }
    }
    output::line("");
    let row = |(id, step): (&String, &Value)| {
        let text = |field: &str| output::text(&step[field]);
        vec![id.clone(), text("status"), text("attempt"), text("since"), text("message")]
    };
    let rows: Vec<_> = run["steps"].as_object().into_iter().flatten().map(row).collect();
    output::table(&["STEP", "STATUS", "ATTEMPT", "SINCE", "WHY"], &rows);
    Ok(ExitCode::SUCCESS)
}

fn list(workflow: Option<&str>, status: Option<&str>, limit: usize, server: &Server) -> Result<ExitCode> {
    let filters = [("workflow_id", workflow), ("status", status)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let items: Vec<Value> =
        connect(server)?.list("/api/v1/workflow-runs", &filters, limit).collect::<Result<_, _>>()?;
    if server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |run: &Value| {
        ["id", "workflow_id", "status", "origin", "created_at", "error"]
            .map(|field| output::text(&run[field]))
            .to_vec()
    };
    let rows: Vec<_> = items.iter().map(row).collect();
    output::table(&["RUN", "WORKFLOW", "STATUS", "ORIGIN", "BEGAN", "ERROR"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// Prints lines as they come. The exit code says how the run ended; what it gives goes to standard output.
fn watch(client: &Client, id: &str, server: &Server) -> Result<ExitCode> {
    let mut shown = 0;
    loop {
        let run: Value = client.get(&format!("/api/v1/workflow-runs/{id}"), &[("wait", "1s")])?;
        // The lines of a run that is over are complete, so they are read after the run.
        for line in lines(client, id, shown)? {
            eprintln!("{}", told(&line));
            shown = line["n"].as_u64().unwrap_or(shown);
        }
        if RUN_ENDS.iter().any(|end| run["status"] == *end) {
            if server.json {
                output::json(&run);
            } else if !run["output"].is_null() {
                output::json(&run["output"]);
            }
            if run["status"] == "succeeded" {
                return Ok(ExitCode::SUCCESS);
            }
            eprintln!("run {id} ended as {}: {}", output::text(&run["status"]), output::text(&run["error"]));
            return Ok(ExitCode::from(exit::JOB_FAILED));
        }
    }
}

fn timeline(id: &str, server: &Server) -> Result<ExitCode> {
    let all = lines(&connect(server)?, id, 0)?;
    if server.json {
        output::json(&Value::Array(all));
    } else {
        for line in &all {
            output::line(&told(line));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All lines after this one.
fn lines(client: &Client, id: &str, mut after: u64) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    loop {
        let query = [("limit", "500"), ("after", &after.to_string())];
        let page: Vec<Value> = client.get(&format!("/api/v1/workflow-runs/{id}/timeline"), &query)?;
        let Some(last) = page.last() else { return Ok(all) };
        after = last["n"].as_u64().unwrap_or(u64::MAX);
        all.extend(page);
    }
}

fn told(line: &Value) -> String {
    let text = |field: &str| output::text(&line[field]);
    let what = if line["step_id"].is_null() { "the run".to_owned() } else { text("step_id") };
    let told = format!("{:24}  {what:<20}  {:<10}  {}", text("time"), text("status"), text("message"));
    told.trim_end().to_owned()
}

fn cancel(id: &str, reason: &str, server: &Server) -> Result<ExitCode> {
    connect(server)?.runs().cancel(id, reason)?;
    if server.json {
        output::json(&json!({ "run_id": id, "cancelled": true }));
    } else {
        output::line(&format!("{id} is cancelled"));
    }
    Ok(ExitCode::SUCCESS)
}

fn rerun(id: &str, from: Option<&str>, server: &Server) -> Result<ExitCode> {
    let reply: Value =
        connect(server)?.post(&format!("/api/v1/workflow-runs/{id}/rerun"), &json!({ "from_step": from }))?;
    said(&reply, server);
    Ok(ExitCode::SUCCESS)
}
