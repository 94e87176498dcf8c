//! `reveille audit …`

use crate::args::{Audit, AuditList, Server};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: Audit) -> Result<ExitCode> {
    match command {
        Audit::List(list) => entries(&list),
        Audit::Verify { tenant, server } => verify(tenant.as_deref(), &server),
    }
}

fn entries(list: &AuditList) -> Result<ExitCode> {
    let filters = [
        ("job_id", &list.job),
        ("event_type", &list.event_type),
        ("from", &list.since),
        ("tenant", &list.tenant),
    ];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let items: Vec<Value> = connect(&list.server)?
        .list("/api/v1/audit/events", &filters, list.limit)
        .collect::<Result<_, _>>()?;
    if list.server.json {
        output::json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |item: &Value| {
        ["seq", "timestamp", "event_type", "action", "decision", "matched_rule", "identity", "job_id"]
            .map(|field| output::text(&item[field]))
            .to_vec()
    };
    output::table(
        &["SEQ", "TIME", "TYPE", "ACTION", "DECISION", "RULE", "WHO", "JOB"],
        &items.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

/// A chain whose oldest entries were pruned in time is as good as a whole one.
fn verify(tenant: Option<&str>, server: &Server) -> Result<ExitCode> {
    let query: Vec<(&str, &str)> = tenant.map(|tenant| ("tenant", tenant)).into_iter().collect();
    let client = connect(server)?;
    let checked = "checking every hash of the chain";
    let found: Value = progress::during(checked, || client.get("/api/v1/audit/verify", &query))?;
    if server.json {
        output::json(&found);
    } else {
        let text = |field: &str| output::text(&found[field]);
        output::line(&format!(
            "{}: {}; {} of {} entries are sound",
            text("tenant_id"),
            text("status"),
            text("verified_events"),
            text("total_events"),
        ));
        if found["complete"] == false {
            output::line("  the chain is longer than one check looks at; its newest entries were left out");
        }
        for gap in found["gaps"].as_array().into_iter().flatten() {
            output::line(&format!("  {}: {}", output::text(&gap["at_seq"]), output::text(&gap["type"])));
        }
    }
    let is_sound = match found["status"].as_str() {
        Some("ok") => true,
        Some("partial") => found["complete"] == true,
        _ => false,
    };
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}
