//! `reveille dlq …`

use crate::args::{DlqCommand, LetterFilter, ServerArgs};
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::Result;
use reveille_api_types::dead_letter::{DeadLetter, DeadLetterStats, RetriedJob, RetriedMany, RetryFilter};
use reveille_api_types::dead_packet::DeadPacket;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: DlqCommand) -> Result<ExitCode> {
    match command {
        DlqCommand::List { count: true, server, .. } => count(&server),
        DlqCommand::List { filter, limit, server, .. } => list(&filter, limit, &server),
        DlqCommand::Packets { limit, server } => packets(limit, &server),
        DlqCommand::Show { id, server } => show(&id, &server),
        DlqCommand::Retry { id: Some(id), server, .. } => retry(&id, &server),
        DlqCommand::Retry { id: None, filter, before, limit, server, .. } => {
            let LetterFilter { reason_code, topic } = filter;
            retry_many(&RetryFilter { reason_code, topic, before, limit: Some(limit) }, &server)
        }
        DlqCommand::Delete { id, server } => delete(&id, &server),
    }
}

fn list(filter: &LetterFilter, limit: usize, server: &ServerArgs) -> Result<ExitCode> {
    let filters = [("reason_code", &filter.reason_code), ("topic", &filter.topic)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    output::list(
        server,
        connect(server)?.list("/api/v1/dlq/page", &filters, limit),
        &["JOB", "TOPIC", "TENANT", "STATUS", "CODE", "ATTEMPTS", "DIED", "REASON"],
        |letter: DeadLetter| {
            vec![
                letter.job_id,
                letter.topic,
                letter.tenant,
                letter.status,
                letter.reason_code,
                letter.attempts.to_string(),
                letter.created_at,
                letter.reason,
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn count(server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get("/api/v1/dlq/stats", &[])?;
    output::answer(server, &answer, |DeadLetterStats { by_reason, .. }| {
        let counts = by_reason.into_iter();
        let rows: Vec<_> = counts.map(|(reason, count)| vec![reason, count.to_string()]).collect();
        output::table(&["REASON", "DEAD LETTERS"], &rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

/// With `--json` each has its content, too.
fn packets(limit: usize, server: &ServerArgs) -> Result<ExitCode> {
    output::list(
        server,
        connect(server)?.list("/api/v1/dlq/packets", &[], limit),
        &["PACKET", "SUBJECT", "BYTES", "DELIVERIES", "BURIED", "REASON"],
        |packet: DeadPacket| {
            vec![
                packet.id,
                packet.subject,
                packet.bytes.to_string(),
                packet.deliveries.to_string(),
                packet.buried_at,
                packet.reason,
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/dlq/{id}"), &[])?;
    output::answer(server, &answer, |letter: DeadLetter| {
        for (name, value) in [
            ("job_id", letter.job_id),
            ("topic", letter.topic),
            ("tenant", letter.tenant),
            ("status", letter.status),
            ("reason_code", letter.reason_code),
            ("reason", letter.reason),
            ("last_state", letter.last_state),
            ("attempts", letter.attempts.to_string()),
            ("created_at", letter.created_at),
        ] {
            output::line(&format!("{name:12} {value}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn retry(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.post(&format!("/api/v1/dlq/{id}/retry"), &json!({}))?;
    output::answer(server, &answer, |job: RetriedJob| output::line(&job.job_id))?;
    Ok(ExitCode::SUCCESS)
}

/// The new jobs go to standard output; what could not be retried is said beside, and by the exit code.
fn retry_many(filter: &RetryFilter, server: &ServerArgs) -> Result<ExitCode> {
    let client = connect(server)?;
    let answer: Value =
        progress::during("trying dead letters again", || client.post("/api/v1/dlq/retry", filter))?;
    let RetriedMany { retried, failed } = output::read(&answer)?;
    if server.json {
        output::json(&answer);
    } else {
        for job in &retried {
            output::line(&job.job_id);
        }
        for job in &failed {
            eprintln!("{} was not retried: {}", job.job_id, job.error);
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn delete(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    connect(server)?.delete::<Value>(&format!("/api/v1/dlq/{id}"))?;
    if server.json {
        output::json(&json!({ "job_id": id, "deleted": true }));
    } else {
        output::line(&format!("{id} is off the list"));
    }
    Ok(ExitCode::SUCCESS)
}
