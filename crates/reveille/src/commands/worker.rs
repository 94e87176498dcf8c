//! `reveille worker …`

use crate::args::{ServerArgs, WorkerCommand};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::drain::{DrainRequest, Undrained};
use reveille_api_types::worker as shape;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: WorkerCommand) -> Result<ExitCode> {
    match command {
        WorkerCommand::List { contract, server } => list(contract.as_deref(), &server),
        WorkerCommand::Get { id, server } => get(&id, &server),
        WorkerCommand::Drain { id, timeout, server } => drain("workers", &id, timeout, &server),
        WorkerCommand::Undrain { id, server } => undrain("workers", &id, &server),
    }
}

fn list(contract: Option<&str>, server: &ServerArgs) -> Result<ExitCode> {
    let filter: Vec<(&str, &str)> = contract.map(|contract| ("contract", contract)).into_iter().collect();
    output::list(
        server,
        connect(server)?.list("/api/v1/workers", &filter, usize::MAX),
        &["WORKER", "CONTRACT", "TENANT", "POOL", "STATUS", "JOBS", "CPU", "TOPICS", "LAST HEARD"],
        |worker: shape::Worker| {
            vec![
                worker.worker_id,
                worker.contract,
                worker.tenant,
                worker.pool,
                worker.status,
                format!("{}/{}", worker.active_jobs, worker.max_parallel_jobs),
                format!("{:.0}%", worker.cpu_load),
                worker.topics.join(","),
                worker.last_heartbeat,
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Every field, by its name.
fn get(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let worker: Value = connect(server)?.get(&format!("/api/v1/workers/{id}"), &[])?;
    if server.json {
        output::json(&worker);
        return Ok(ExitCode::SUCCESS);
    }
    for (name, value) in worker.as_object().into_iter().flatten() {
        let text = match value {
            Value::Array(items) => items.iter().map(output::text).collect::<Vec<_>>().join(", "),
            value => output::text(value),
        };
        output::line(&format!("{name:<18} {text}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a worker or a pool out of service.
pub fn drain(kind: &str, name: &str, seconds: u32, server: &ServerArgs) -> Result<ExitCode> {
    let path = format!("/api/v1/{kind}/{name}/drain");
    let reply: Value = connect(server)?.post(&path, &DrainRequest { timeout_seconds: Some(seconds) })?;
    if server.json {
        output::json(&reply);
    } else {
        println!("{name} gets no new jobs; what is still there in {seconds} s goes elsewhere");
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts it back.
pub fn undrain(kind: &str, name: &str, server: &ServerArgs) -> Result<ExitCode> {
    let reply: Value = connect(server)?.post(&format!("/api/v1/{kind}/{name}/undrain"), &json!({}))?;
    output::answer(server, &reply, |Undrained { was_drained, .. }| {
        println!("{name} {}", if was_drained { "is back in service" } else { "was not drained" });
    })?;
    Ok(ExitCode::SUCCESS)
}
