//! `reveille audit …`

mod against;
mod checkpoint_file;

use crate::args::{AuditCommand, AuditListArgs, AuditVerifyArgs, CheckpointArgs, ServerArgs};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::{Context, Result, bail};
use reveille_api_types::audit::{AuditEvent, CheckpointLine, CheckpointPage, SigningKey, Verified};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: AuditCommand) -> Result<ExitCode> {
    match command {
        AuditCommand::List(list) => entries(&list),
        AuditCommand::Verify(AuditVerifyArgs { tenant, against: Some(file), public_key, server }) => {
            against::verify(&file, public_key.as_deref(), tenant.as_deref(), &server)
        }
        AuditCommand::Verify(args) => verify(args.tenant.as_deref(), &args.server),
        AuditCommand::Checkpoint(args) => checkpoint(&args),
        AuditCommand::PublicKey { server } => public_key(&server),
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
        say(&found);
    }
    Ok(if is_sound(&found) { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn say(found: &Verified) {
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

fn is_sound(found: &Verified) -> bool {
    match found.status.as_str() {
        "ok" => true,
        "partial" => found.complete,
        _ => false,
    }
}

fn checkpoint(args: &CheckpointArgs) -> Result<ExitCode> {
    let client = connect(&args.server)?;
    let (mut key, mut taken): (Option<SigningKey>, Vec<CheckpointLine>) = (None, Vec::new());
    let mut cursor = Some(String::new());
    while let Some(after) = cursor.take() {
        let mut query: Vec<(&str, &str)> =
            args.tenant.iter().map(|tenant| ("tenant", tenant.as_str())).collect();
        if args.all {
            query.extend([("all", "true"), ("cursor", &after)]);
        }
        let page: CheckpointPage = client.get("/api/v1/audit/checkpoint", &query)?;
        // Servers that share their engines may sign with keys of their own: a page of one would be taken for another's.
        if key.as_ref().is_some_and(|key| *key != page.signing_key) {
            bail!("the servers sign with different keys; name one for all in audit.signing_key_file");
        }
        key = Some(page.signing_key);
        taken.extend(page.items);
        cursor = page.next_cursor;
    }
    let key = key.context("the server answered no page")?;
    if let Some(path) = &args.out {
        checkpoint_file::append(path, &key, &taken)?;
    }
    if args.server.json {
        output::json(&json!({ "signing_key": key, "items": taken }));
    } else if let Some(path) = &args.out {
        output::line(&format!("{} checkpoints added to {}", taken.len(), path.display()));
    } else {
        output::line(checkpoint_file::lines(Some(&key), &taken)?.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn public_key(server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get("/api/v1/audit/public-key", &[])?;
    output::answer(server, &answer, |key: SigningKey| output::line(key.public_key.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}
