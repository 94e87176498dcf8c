//! `reveille quarantine …`

use crate::args::{Decide, Quarantine, Server};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: Quarantine) -> Result<ExitCode> {
    match command {
        Quarantine::List { limit, server } => list(limit, &server),
        Quarantine::Show { id, server } => show(&id, &server),
        Quarantine::Release(decide) => resolve(&decide, "release"),
        Quarantine::Discard(decide) => resolve(&decide, "discard"),
    }
}

fn list(limit: usize, server: &Server) -> Result<ExitCode> {
    let items: Vec<Value> =
        connect(server)?.list("/api/v1/quarantine", &[], limit).collect::<Result<_, _>>()?;
    if server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |held: &Value| {
        ["job_id", "tenant", "topic", "worker_id", "reason"].map(|field| output::text(&held[field])).to_vec()
    };
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    output::table(&["JOB", "TENANT", "TOPIC", "WORKER", "REASON"], &rows);
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &Server) -> Result<ExitCode> {
    let held: Value = connect(server)?.get(&format!("/api/v1/quarantine/{id}"), &[])?;
    if server.json {
        output::json(&held);
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!("{}: {}", output::text(&held["job_id"]), output::text(&held["reason"])));
    let findings = held["output_safety"]["findings"].as_array().cloned().unwrap_or_default();
    let row = |finding: &Value| {
        ["severity", "scanner", "name", "at", "preview"].map(|field| output::text(&finding[field])).to_vec()
    };
    let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
    output::table(&["SEVERITY", "SCANNER", "FOUND", "WHERE", "PREVIEW"], &rows);
    Ok(ExitCode::SUCCESS)
}

fn resolve(decide: &Decide, how: &str) -> Result<ExitCode> {
    let path = format!("/api/v1/quarantine/{}/{how}", decide.id);
    let reply: Value = connect(&decide.server)?
        .post(&path, &json!({ "note": decide.reason.as_deref().unwrap_or_default() }))?;
    if decide.server.json {
        output::json(&reply);
    } else {
        output::line(&format!("{}: {}", output::text(&reply["job_id"]), output::text(&reply["resolution"])));
    }
    Ok(ExitCode::SUCCESS)
}
