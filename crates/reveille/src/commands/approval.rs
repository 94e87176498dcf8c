//! `reveille approval …`

use crate::args::{Approval, Resolve, Server};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_client::Resolution;
use reveille_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: Approval) -> Result<ExitCode> {
    match command {
        Approval::List { all, limit, server } => list(all, limit, &server),
        Approval::Show { id, server } => show(&id, &server),
        Approval::Approve(resolve) => decide("approve", "approved", &resolve),
        Approval::Reject(resolve) => decide("reject", "rejected", &resolve),
    }
}

fn list(all: bool, limit: usize, server: &Server) -> Result<ExitCode> {
    let include = if all { "true" } else { "false" };
    let items: Vec<Value> = connect(server)?
        .list("/api/v1/approvals", &[("include_resolved", include)], limit)
        .collect::<Result<_, _>>()?;
    if server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemClock::start().now().0;
    let row = |item: &Value| {
        let (text, job) = (|field: &str| output::text(&item[field]), &item["job"]);
        let status = match item["approval_actionability"].as_str() {
            Some("own_job") => "pending (yours)".to_owned(),
            _ => text("approval_status"),
        };
        vec![
            output::text(&job["id"]),
            output::text(&job["topic"]),
            output::text(&job["tenant"]),
            output::text(&job["principal"]),
            text("policy_rule_id"),
            status,
            text("resolved_by"),
            output::ago(&item["requested_at"], now),
        ]
    };
    output::table(
        &["JOB", "TOPIC", "TENANT", "ASKED BY", "RULE", "STATUS", "DECIDED BY", "ASKED"],
        &items.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &Server) -> Result<ExitCode> {
    let context: Value = connect(server)?.get(&format!("/api/v1/approvals/{id}/context"), &[])?;
    if server.json {
        output::json(&context);
        return Ok(ExitCode::SUCCESS);
    }
    let (approval, reach) = (&context["approval"], &context["blast_radius"]);
    let list = |value: &Value| {
        value.as_array().into_iter().flatten().map(output::text).collect::<Vec<_>>().join(", ")
    };
    let left = context["time_remaining_ms"]
        .as_i64()
        .map_or("as long as it takes".to_owned(), |ms| format!("{} s", ms / 1000));
    let lines = [
        ("job", output::text(&approval["job"]["id"])),
        ("topic", output::text(&reach["topic"])),
        ("asked by", output::text(&approval["job"]["principal"])),
        ("status", output::text(&approval["approval_status"])),
        ("rule", output::text(&approval["policy_rule_id"])),
        ("reason", output::text(&approval["policy_reason"])),
        ("risk tags", list(&reach["risk_tags"])),
        ("pools", list(&reach["pools"])),
        ("workers", format!("{} {}", output::text(&reach["workers_total"]), list(&reach["workers"]))),
        ("rollback", output::text(&context["rollback_hint"]["hint"])),
        ("time left", left),
        ("decided by", output::text(&approval["resolved_by"])),
        ("comment", output::text(&approval["resolved_comment"])),
        ("job hash", output::text(&approval["job_hash"])),
        ("policy", output::text(&approval["policy_snapshot"])),
        ("input", output::text(&context["input"]["value"])),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(&format!("{name:12} {}", value.trim_end()));
    }
    for prior in context["prior_approvals"].as_array().into_iter().flatten() {
        let text = |field: &str| output::text(&prior[field]);
        output::line(&format!(
            "{:12} {} {} {}",
            "before",
            text("job_id"),
            text("decision"),
            text("resolved_by")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(verb: &str, done: &str, resolve: &Resolve) -> Result<ExitCode> {
    let body = Resolution {
        reason: resolve.reason.clone(),
        note: None,
        job_hash: resolve.job_hash.clone(),
        policy_snapshot: resolve.policy_snapshot.clone(),
    };
    let path = format!("/api/v1/approvals/{}/{verb}", resolve.id);
    let reply: Value = connect(&resolve.server)?.post(&path, &body)?;
    if resolve.server.json {
        output::json(&reply);
    } else if reply["status"].is_null() {
        output::line(&format!("{} is {done}", resolve.id));
    } else {
        let by = output::text(&reply[format!("{done}_by")]);
        output::line(&format!("{} was {done} already, by {by}", resolve.id));
    }
    Ok(ExitCode::SUCCESS)
}
