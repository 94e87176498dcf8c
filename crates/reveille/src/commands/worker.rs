//! `reveille worker …`

use crate::args::Worker;
use crate::client::Client;
use crate::output;
use anyhow::Result;
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: Worker) -> Result<ExitCode> {
    let Worker::List { server } = command;
    let reply = Client::new(&server)?.get("/api/v1/workers", &[])?;
    if server.json {
        output::json(&reply);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |worker: &Value| {
        let text = |field: &str| output::text(&worker[field]);
        let topics: Vec<String> =
            worker["topics"].as_array().into_iter().flatten().map(output::text).collect();
        vec![
            text("worker_id"),
            text("pool"),
            if worker["online"] == true { "online" } else { "silent" }.to_owned(),
            format!("{}/{}", text("active_jobs"), text("max_parallel_jobs")),
            format!("{:.0}%", worker["cpu_load"].as_f64().unwrap_or_default()),
            topics.join(","),
            text("last_heartbeat"),
        ]
    };
    let rows: Vec<Vec<String>> = reply["items"].as_array().into_iter().flatten().map(row).collect();
    output::table(&["WORKER", "POOL", "STATUS", "JOBS", "CPU", "TOPICS", "LAST HEARD"], &rows);
    Ok(ExitCode::SUCCESS)
}
