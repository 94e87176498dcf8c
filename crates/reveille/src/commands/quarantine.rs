//! `reveille quarantine …`

use crate::args::{DecideArgs, QuarantineCommand, ServerArgs};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::quarantine::{Decided, Held, ResolvedReply};
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: QuarantineCommand) -> Result<ExitCode> {
    match command {
        QuarantineCommand::List { limit, server } => list(limit, &server),
        QuarantineCommand::Show { id, server } => show(&id, &server),
        QuarantineCommand::Release(decide) => resolve(&decide, "release"),
        QuarantineCommand::Discard(decide) => resolve(&decide, "discard"),
    }
}

fn list(limit: usize, server: &ServerArgs) -> Result<ExitCode> {
    output::list(
        server,
        connect(server)?.list("/api/v1/quarantine", &[], limit),
        &["JOB", "TENANT", "TOPIC", "WORKER", "REASON"],
        |held: Held| vec![held.job_id, held.tenant, held.topic, held.worker_id, held.reason],
    )?;
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/quarantine/{id}"), &[])?;
    output::answer(server, &answer, |held: Held| {
        output::line(&format!("{}: {}", held.job_id, held.reason));
        let findings = held.output_safety.map(|safety| safety.findings).unwrap_or_default().into_iter();
        let rows: Vec<Vec<String>> = findings
            .map(|found| vec![found.severity, found.scanner, found.name, found.at, found.preview])
            .collect();
        output::table(&["SEVERITY", "SCANNER", "FOUND", "WHERE", "PREVIEW"], &rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn resolve(decide: &DecideArgs, how: &str) -> Result<ExitCode> {
    let path = format!("/api/v1/quarantine/{}/{how}", decide.id);
    let body = Decided { note: decide.reason.clone().unwrap_or_default(), ..Decided::default() };
    let answer: Value = connect(&decide.server)?.post(&path, &body)?;
    output::answer(&decide.server, &answer, |done: ResolvedReply| {
        output::line(&format!("{}: {}", done.job_id, done.resolution));
    })?;
    Ok(ExitCode::SUCCESS)
}
