//! `reveille system`: what the server is at, for operators.

use crate::args::System;
use crate::client::connect;
use crate::output;
use anyhow::Result;
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: &System) -> Result<ExitCode> {
    let system: Value = connect(&command.server)?.get("/api/v1/system", &[])?;
    if command.server.json {
        output::json(&system);
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&facts(&system));
    let rows: Vec<Vec<String>> = system["locks"].as_array().into_iter().flatten().map(row).collect();
    if system["locks"].is_null() {
        output::line("the store does not say who holds which lock");
    } else if rows.is_empty() {
        output::line("nobody holds a lock");
    } else {
        output::table(&["LOCK", "HELD BY", "UNTIL", "ITS HOLDER"], &rows);
    }
    if system["more_locks"] == true {
        eprintln!("there are more locks; these are the first to lapse");
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(system: &Value) -> String {
    let is = |name: &str| system[name] == true;
    let servers: Vec<String> = system["servers"].as_array().into_iter().flatten().map(output::text).collect();
    let servers = if servers.is_empty() { "one, alone".to_owned() } else { servers.join(", ") };
    let state = if is("cut_off") {
        "cut off from what it shares with others"
    } else if is("recovered") {
        "at work"
    } else {
        "still reading what it had to do"
    };
    let timers = |name: &str| {
        let timers = &system[name];
        let owed = output::text(&timers["owed"]);
        timers["next_at"].as_str().map_or_else(|| owed.clone(), |next| format!("{owed}, the next at {next}"))
    };
    format!(
        "servers      {servers}\nstate        {state}\njob timers   {}\nrun timers   {}\ndecisions    {} under way\n",
        timers("job_timers"),
        timers("run_timers"),
        output::text(&system["decisions"])
    )
}

fn row(lock: &Value) -> Vec<String> {
    let holder = Some(output::text(&lock["holder"])).filter(|holder| !holder.is_empty());
    let holder = holder.unwrap_or_else(|| "this server".to_owned());
    vec![output::text(&lock["name"]), holder, output::text(&lock["until"]), output::text(&lock["purpose"])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timers_that_are_owed_are_told() {
        let none = json!({"owed": 0, "next_at": null});
        let system = json!({
            "servers": ["a", "b"], "cut_off": false, "recovered": true, "decisions": 2,
            "job_timers": {"owed": 3, "next_at": "2026-11-15T12:00:00Z"}, "run_timers": none,
        });
        assert_eq!(
            facts(&system),
            "servers      a, b\n\
             state        at work\n\
             job timers   3, the next at 2026-11-15T12:00:00Z\n\
             run timers   0\n\
             decisions    2 under way\n"
        );
        let lock = json!({"name": "cordum:clerk", "holder": "", "until": "12:00", "purpose": "writes"});
        assert_eq!(row(&lock), ["cordum:clerk", "this server", "12:00", "writes"]);
    }
}
