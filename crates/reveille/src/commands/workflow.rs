//! `reveille workflow …`

mod dry_run;
mod graph;

use crate::args::{ServerArgs, WorkflowCommand};
use crate::client::connect;
use crate::output;
use anyhow::{Context, Result, bail};
use reveille_api_types::workflow::{SavedReply, WorkflowDetail};
use reveille_core::flow::{Flow, WorkflowDocument};
use reveille_core::time::Millis;
use reveille_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Bytes of a file; a server takes no more.
const FILE_LEN_MAX: u64 = 2 * 1024 * 1024;

pub fn run(command: WorkflowCommand) -> Result<ExitCode> {
    match command {
        WorkflowCommand::Apply { file, server } => apply(&file, &server),
        WorkflowCommand::Lint { file } => lint(&file),
        WorkflowCommand::Get { id, version, server } => get(&id, version, &server),
        WorkflowCommand::Graph { of, version, svg, server } => {
            graph::run(&of, version, svg.as_deref(), &server)
        }
        WorkflowCommand::DryRun { of, input, server } => dry_run::run(&of, input.as_deref(), &server),
        WorkflowCommand::List { server } => list(&server),
        WorkflowCommand::Delete { id, server } => delete(&id, &server),
    }
}

fn apply(file: &Path, server: &ServerArgs) -> Result<ExitCode> {
    let document = checked(file)?;
    let answer: Value = connect(server)?.post("/api/v1/workflows", &document)?;
    output::answer(server, &answer, |SavedReply { id, version }| {
        output::line(&format!("{id} version {version}"));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn lint(file: &Path) -> Result<ExitCode> {
    let document = checked(file)?;
    output::line(&format!("{}: {} steps, nothing wrong", document.id, document.steps.len()));
    Ok(ExitCode::SUCCESS)
}

/// The document in a file, if there is nothing wrong with it.
fn checked(file: &Path) -> Result<WorkflowDocument> {
    let name = file.display();
    let len = std::fs::metadata(file).with_context(|| format!("reading {name}"))?.len();
    if len > FILE_LEN_MAX {
        bail!("{name} has {len} bytes; at most {FILE_LEN_MAX} are read");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {name}"))?;
    // Every JSON document is a YAML document.
    let document: WorkflowDocument = serde_saphyr::from_str(&text).with_context(|| name.to_string())?;
    let now: Millis = SystemClock::start().now();
    Flow::check(&document, 1, now).with_context(|| name.to_string())?;
    Ok(document)
}

fn get(id: &str, version: Option<u32>, server: &ServerArgs) -> Result<ExitCode> {
    let version = version.map(|version| version.to_string());
    let query: Vec<(&str, &str)> = version.iter().map(|version| ("version", version.as_str())).collect();
    let workflow: Value = connect(server)?.get(&format!("/api/v1/workflows/{id}"), &query)?;
    output::json(&workflow);
    Ok(ExitCode::SUCCESS)
}

fn list(server: &ServerArgs) -> Result<ExitCode> {
    let client = connect(server)?;
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page: Vec<WorkflowDetail> =
            client.get("/api/v1/workflows", &[("limit", "500"), ("after", &after)])?;
        let Some(last) = page.last() else { break };
        after = output::text(&last.document["id"]);
        all.extend(page);
    }
    if server.json {
        output::json(&json!(all));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |WorkflowDetail { document, saved_at, saved_by }| {
        let document: Value = document;
        let steps = document["steps"].as_object().map_or(0, serde_json::Map::len).to_string();
        let text = |field: &str| output::text(&document[field]);
        vec![text("id"), text("version"), steps, saved_at, saved_by, text("name")]
    };
    let rows: Vec<_> = all.into_iter().map(row).collect();
    output::table(&["WORKFLOW", "VERSION", "STEPS", "SAVED", "BY", "NAME"], &rows);
    Ok(ExitCode::SUCCESS)
}

fn delete(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    connect(server)?.delete::<Value>(&format!("/api/v1/workflows/{id}"))?;
    if server.json {
        output::json(&json!({ "id": id, "deleted": true }));
    } else {
        output::line(&format!("{id} is deleted; its runs go on"));
    }
    Ok(ExitCode::SUCCESS)
}
