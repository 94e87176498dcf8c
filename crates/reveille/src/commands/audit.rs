//! `reveille audit …`

use crate::args::{AuditCommand, AuditListArgs, ServerArgs};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::Result;
use reveille_api_types::audit::{AuditEvent, Verified};
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: AuditCommand) -> Result<ExitCode> {
    match command {
        AuditCommand::List(list) => entries(&list),
        AuditCommand::Verify { tenant, server } => verify(tenant.as_deref(), &server),
    }
}

fn entries(list: &AuditListArgs) -> Result<ExitCode> {
    let filters = [
        ("job_id", &list.job),
        ("event_type", &list.event_type),
        ("from", &list.since),
        ("tenant", &list.tenant),
    ];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    output::list(
        &list.server,
        connect(&list.server)?.list("/api/v1/audit/events", &filters, list.limit),
        &["SEQ", "TIME", "TYPE", "ACTION", "DECISION", "RULE", "WHO", "JOB"],
        |entry: AuditEvent| {
            vec![
                entry.seq.to_string(),
                entry.timestamp,
                entry.event_type,
                entry.action,
                entry.decision.unwrap_or_default(),
                entry.matched_rule,
                entry.identity,
                entry.job_id.unwrap_or_default(),
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

/// A chain whose oldest entries were pruned in time is as good as a whole one.
fn verify(tenant: Option<&str>, server: &ServerArgs) -> Result<ExitCode> {
    let query: Vec<(&str, &str)> = tenant.map(|tenant| ("tenant", tenant)).into_iter().collect();
    let client = connect(server)?;
    let checked = "checking every hash of the chain";
    let answer: Value = progress::during(checked, || client.get("/api/v1/audit/verify", &query))?;
    let found: Verified = output::read(&answer)?;
    if server.json {
        output::json(&answer);
    } else {
        output::line(&format!(
            "{}: {}; {} of {} entries are sound",
            found.tenant_id, found.status, found.verified_events, found.total_events,
        ));
        if !found.complete {
            output::line("  the chain is longer than one check looks at; its newest entries were left out");
        }
        for gap in &found.gaps {
            output::line(&format!("  {}: {}", gap.at_seq, gap.fault));
        }
    }
    let is_sound = match found.status.as_str() {
        "ok" => true,
        "partial" => found.complete,
        _ => false,
    };
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}
