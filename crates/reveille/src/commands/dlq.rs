//! `reveille dlq …`

use crate::args::{Dlq, LetterFilter, Server};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: Dlq) -> Result<ExitCode> {
    match command {
        Dlq::List { count: true, server, .. } => count(&server),
        Dlq::List { filter, limit, server, .. } => list(&filter, limit, &server),
        Dlq::Packets { limit, server } => packets(limit, &server),
        Dlq::Show { id, server } => show(&id, &server),
        Dlq::Retry { id: Some(id), server, .. } => retry(&id, &server),
        Dlq::Retry { id: None, filter, before, limit, server, .. } => {
            let filter = json!({
                "reason_code": filter.reason_code, "topic": filter.topic, "before": before, "limit": limit,
            });
            retry_many(&filter, &server)
        }
        Dlq::Delete { id, server } => delete(&id, &server),
    }
}

fn list(filter: &LetterFilter, limit: usize, server: &Server) -> Result<ExitCode> {
    let filters = [("reason_code", &filter.reason_code), ("topic", &filter.topic)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let items: Vec<Value> =
        connect(server)?.list("/api/v1/dlq/page", &filters, limit).collect::<Result<_, _>>()?;
    if server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |item: &Value| {
        ["job_id", "topic", "tenant", "status", "reason_code", "attempts", "created_at", "reason"]
            .map(|field| output::text(&item[field]))
            .to_vec()
    };
    output::table(
        &["JOB", "TOPIC", "TENANT", "STATUS", "CODE", "ATTEMPTS", "DIED", "REASON"],
        &items.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

fn count(server: &Server) -> Result<ExitCode> {
    let reply: Value = connect(server)?.get("/api/v1/dlq/stats", &[])?;
    if server.json {
        output::json(&reply);
        return Ok(ExitCode::SUCCESS);
    }
    let counts = reply["by_reason"].as_object().into_iter().flatten();
    let rows: Vec<Vec<String>> =
        counts.map(|(reason, count)| vec![reason.clone(), output::text(count)]).collect();
    output::table(&["REASON", "DEAD LETTERS"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// With `--json` each has its content, too.
fn packets(limit: usize, server: &Server) -> Result<ExitCode> {
    let items: Vec<Value> =
        connect(server)?.list("/api/v1/dlq/packets", &[], limit).collect::<Result<_, _>>()?;
    if server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |item: &Value| {
        ["id", "subject", "bytes", "deliveries", "buried_at", "reason"]
            .map(|field| output::text(&item[field]))
            .to_vec()
    };
    output::table(
        &["PACKET", "SUBJECT", "BYTES", "DELIVERIES", "BURIED", "REASON"],
        &items.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &Server) -> Result<ExitCode> {
    let letter: Value = connect(server)?.get(&format!("/api/v1/dlq/{id}"), &[])?;
    if server.json {
        output::json(&letter);
        return Ok(ExitCode::SUCCESS);
    }
    for field in [
        "job_id",
        "topic",
        "tenant",
        "status",
        "reason_code",
        "reason",
        "last_state",
        "attempts",
        "created_at",
    ] {
        output::line(&format!("{field:12} {}", output::text(&letter[field])));
    }
    Ok(ExitCode::SUCCESS)
}

fn retry(id: &str, server: &Server) -> Result<ExitCode> {
    let reply: Value = connect(server)?.post(&format!("/api/v1/dlq/{id}/retry"), &json!({}))?;
    if server.json {
        output::json(&reply);
    } else {
        output::line(&output::text(&reply["job_id"]));
    }
    Ok(ExitCode::SUCCESS)
}

/// The new jobs go to standard output; what could not be retried is said beside, and by the exit code.
fn retry_many(filter: &Value, server: &Server) -> Result<ExitCode> {
    let client = connect(server)?;
    let reply: Value =
        progress::during("trying dead letters again", || client.post("/api/v1/dlq/retry", filter))?;
    let failed = reply["failed"].as_array().cloned().unwrap_or_default();
    if server.json {
        output::json(&reply);
    } else {
        for job in reply["retried"].as_array().into_iter().flatten() {
            output::line(&output::text(&job["job_id"]));
        }
        for job in &failed {
            eprintln!("{} was not retried: {}", output::text(&job["job_id"]), output::text(&job["error"]));
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn delete(id: &str, server: &Server) -> Result<ExitCode> {
    connect(server)?.delete::<Value>(&format!("/api/v1/dlq/{id}"))?;
    if server.json {
        output::json(&json!({ "job_id": id, "deleted": true }));
    } else {
        output::line(&format!("{id} is off the list"));
    }
    Ok(ExitCode::SUCCESS)
}
