//! `reveille pool …`

use crate::args::{PoolCommand, ServerArgs};
use crate::client::connect;
use crate::commands::worker;
use crate::output;
use anyhow::Result;
use reveille_api_types::worker::{self as shape, PoolList};
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: PoolCommand) -> Result<ExitCode> {
    match command {
        PoolCommand::List { server } => list(&server),
        PoolCommand::Drain { name, timeout, server } => worker::drain("pools", &name, timeout, &server),
        PoolCommand::Undrain { name, server } => worker::undrain("pools", &name, &server),
    }
}

fn list(server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get("/api/v1/pools", &[])?;
    output::answer(server, &answer, |PoolList { items }| {
        let rows: Vec<Vec<String>> = items.into_iter().map(row).collect();
        output::table(&["POOL", "WORKERS", "JOBS", "CAPACITY", "USED", "STATUS"], &rows);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(pool: shape::Pool) -> Vec<String> {
    vec![
        if pool.name.is_empty() { "(none)".to_owned() } else { pool.name },
        pool.workers.to_string(),
        pool.active_jobs.to_string(),
        pool.capacity.to_string(),
        format!("{:.0}%", pool.utilization * 100.0),
        pool.status,
    ]
}
