//! `reveille system`: what the server is at, for operators.

use crate::args::SystemArgs;
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::system::{self as shape, LockHeld, Timers};
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: &SystemArgs) -> Result<ExitCode> {
    let answer: Value = connect(&command.server)?.get("/api/v1/system", &[])?;
    output::answer(&command.server, &answer, |system: shape::System| {
        output::line(&facts(&system));
        match system.locks {
            None => output::line("the store does not say who holds which lock"),
            Some(locks) if locks.is_empty() => output::line("nobody holds a lock"),
            Some(locks) => {
                let rows: Vec<Vec<String>> = locks.into_iter().map(row).collect();
                output::table(&["LOCK", "HELD BY", "UNTIL", "ITS HOLDER"], &rows);
            }
        }
        if system.more_locks {
            eprintln!("there are more locks; these are the first to lapse");
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn facts(system: &shape::System) -> String {
    let servers = if system.servers.is_empty() { "one, alone".to_owned() } else { system.servers.join(", ") };
    let state = if system.cut_off {
        "cut off from what it shares with others"
    } else if system.recovered {
        "at work"
    } else {
        "still reading what it had to do"
    };
    let timers = |Timers { owed, next_at }: &Timers| {
        next_at.as_ref().map_or(owed.to_string(), |next| format!("{owed}, the next at {next}"))
    };
    format!(
        "servers      {servers}\nstate        {state}\njob timers   {}\nrun timers   {}\ndecisions    {} under way\n",
        timers(&system.job_timers),
        timers(&system.run_timers),
        system.decisions
    )
}

fn row(lock: LockHeld) -> Vec<String> {
    let holder = if lock.holder.is_empty() { "this server".to_owned() } else { lock.holder };
    vec![lock.name, holder, lock.until, lock.purpose]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timers_that_are_owed_are_told() {
        let none = json!({"owed": 0, "next_at": null});
        let system = json!({
            "at": "", "server": "a", "servers": ["a", "b"], "cut_off": false, "recovered": true, "policy": "",
            "circuits": [], "more_locks": false, "decisions": 2,
            "job_timers": {"owed": 3, "next_at": "2026-11-15T12:00:00Z"}, "run_timers": none,
        });
        let system: shape::System = output::read(&system).unwrap();
        assert_eq!(
            facts(&system),
            "servers      a, b\n\
             state        at work\n\
             job timers   3, the next at 2026-11-15T12:00:00Z\n\
             run timers   0\n\
             decisions    2 under way\n"
        );
        let lock =
            json!({"name": "cordum:audit:writer", "holder": "", "until": "12:00", "purpose": "writes"});
        assert_eq!(
            row(output::read(&lock).unwrap()),
            ["cordum:audit:writer", "this server", "12:00", "writes"]
        );
    }
}
