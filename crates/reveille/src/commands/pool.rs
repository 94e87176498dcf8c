//! `reveille pool …`

use crate::args::{Pool, Server};
use crate::client::connect;
use crate::commands::worker;
use crate::output;
use anyhow::Result;
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: Pool) -> Result<ExitCode> {
    match command {
        Pool::List { server } => list(&server),
        Pool::Drain { name, timeout, server } => worker::drain("pools", &name, timeout, &server),
        Pool::Undrain { name, server } => worker::undrain("pools", &name, &server),
    }
}

fn list(server: &Server) -> Result<ExitCode> {
    let reply: Value = connect(server)?.get("/api/v1/pools", &[])?;
    if server.json {
        output::json(&reply);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |pool: &Value| {
        let text = |field: &str| output::text(&pool[field]);
        let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| "(none)".to_owned());
        let used = pool["utilization"].as_f64().unwrap_or_default() * 100.0;
        vec![
            name,
            text("workers"),
            text("active_jobs"),
            text("capacity"),
            format!("{used:.0}%"),
            text("status"),
        ]
    };
    let rows: Vec<Vec<String>> = reply["items"].as_array().into_iter().flatten().map(row).collect();
    output::table(&["POOL", "WORKERS", "JOBS", "CAPACITY", "USED", "STATUS"], &rows);
    Ok(ExitCode::SUCCESS)
}
