//! `reveille job …`

use crate::args::{Job, List, Server, Submit};
use crate::client::connect;
use crate::progress::Progress;
use crate::{exit, output};
use anyhow::{Context, Result};
use reveille_client::{Error, JOB_ENDS, NewJob};
use reveille_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(command: Job) -> Result<ExitCode> {
    match command {
        Job::Submit(submit) => run_submit(&submit),
        Job::Get { id, server } => get(&id, &server),
        Job::List(list) => run_list(&list),
        Job::Watch { id, server } => watch(&id, &server),
        Job::Cancel { id, server } => cancel(&id, &server),
        Job::Explain { id, server } => explain(&id, &server),
    }
}

fn run_submit(submit: &Submit) -> Result<ExitCode> {
    let client = connect(&submit.server)?;
    let reply: Value = client.post("/api/v1/jobs", &wanted(submit)?)?;
    let id = output::text(&reply["job_id"]);
    if !submit.wait {
        if submit.server.json {
            output::json(&reply);
        } else {
            output::line(&id);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(reason) = reply["reason"].as_str() {
        eprintln!("job {id} waits for approval: {reason}");
    }
    let patience = Duration::from_secs(submit.timeout);
    let shown = Progress::waiting(format!("job {id}"));
    let waited = client.wait(&format!("/api/v1/jobs/{id}"), patience, |job: &Value| {
        shown.say(format!("job {id} is {}", output::text(&job["state"])));
        has_ended(job)
    });
    drop(shown);
    let job = match waited {
        Err(Error::WaitTimeout(_)) => {
            eprintln!(
                "job {id} has not ended after {} s; `reveille job explain {id}` says why",
                submit.timeout
            );
            return Ok(ExitCode::from(exit::NOT_YET));
        }
        waited => waited?,
    };
    if submit.server.json {
        output::json(&job);
    } else if job["state"] == "SUCCEEDED" {
        output::json(&job["result"]);
    }
    Ok(told_end(&job))
}

fn wanted(submit: &Submit) -> Result<NewJob> {
    let context = match submit.context.as_deref() {
        None => Value::Null,
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
            serde_json::from_str(&text).context("standard input is not JSON")?
        }
        Some(text) => serde_json::from_str(text).with_context(|| format!("{text:?} is not JSON"))?,
    };
    let labels: BTreeMap<String, String> = submit.labels.iter().cloned().collect();
    Ok(NewJob {
        context,
        prompt: submit.prompt.clone(),
        priority: submit.priority.clone(),
        labels,
        requires: submit.requires.clone(),
        risk_tags: submit.risk_tags.clone(),
        capability: submit.capability.clone(),
        idempotency_key: submit.idempotency_key.clone(),
        deadline_ms: submit.deadline_ms,
        ..NewJob::new(&submit.topic)
    })
}

/// The job is as the server tells it, because it is printed so.
fn has_ended(job: &Value) -> bool {
    JOB_ENDS.iter().any(|end| job["state"] == *end)
}

/// The exit code says how it ended; anything but success is also said in words.
fn told_end(job: &Value) -> ExitCode {
    if job["state"] == "SUCCEEDED" {
        return ExitCode::SUCCESS;
    }
    let words = [&job["error_message"], &job["failure_reason"]]
        .into_iter()
        .map(output::text)
        .find(|words| !words.is_empty());
    eprintln!(
        "job {} ended as {}: {}",
        output::text(&job["id"]),
        output::text(&job["state"]),
        words.unwrap_or_default()
    );
    ExitCode::from(exit::JOB_FAILED)
}

fn get(id: &str, server: &Server) -> Result<ExitCode> {
    let job: Value = connect(server)?.get(&format!("/api/v1/jobs/{id}"), &[])?;
    if server.json {
        output::json(&job);
        return Ok(ExitCode::SUCCESS);
    }
    for field in [
        "id",
        "state",
        "topic",
        "tenant",
        "priority",
        "worker_id",
        "attempts",
        "safety_decision",
        "safety_rule_id",
        "error_message",
    ] {
        let value = output::text(&job[field]);
        if !value.is_empty() {
            output::line(&format!("{field:16} {value}"));
        }
    }
    for field in ["context", "result"] {
        if !job[field].is_null() {
            output::line(&format!("{field:16} {}", job[field]));
        }
    }
    output::line("");
    for entry in job["timeline"].as_array().into_iter().flatten() {
        output::line(&timeline_line(entry, job["created_at"].as_i64().unwrap_or_default()));
    }
    Ok(ExitCode::SUCCESS)
}

fn timeline_line(entry: &Value, start: i64) -> String {
    let after_ms = (entry["at"].as_i64().unwrap_or_default() - start) / 1000;
    let (state, event) = (output::text(&entry["state"]), output::text(&entry["event"]));
    let (worker, note) = (output::text(&entry["worker_id"]), output::text(&entry["note"]));
    format!("{after_ms:>9} ms  {state:<18} {event:<16} {worker}  {note}").trim_end().to_owned()
}

fn run_list(list: &List) -> Result<ExitCode> {
    let filters = [("state", &list.state), ("topic", &list.topic), ("tenant", &list.tenant)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let jobs: Vec<Value> =
        connect(&list.server)?.list("/api/v1/jobs", &filters, list.limit).collect::<Result<_, _>>()?;
    if list.server.json {
        output::json(&json!({ "items": jobs }));
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemClock::start().now().0;
    let row = |job: &Value| {
        let text = |field: &str| output::text(&job[field]);
        vec![
            text("id"),
            text("state"),
            text("topic"),
            text("tenant"),
            text("priority"),
            text("worker_id"),
            output::ago(&job["updated_at"], now),
        ]
    };
    output::table(
        &["JOB", "STATE", "TOPIC", "TENANT", "PRIORITY", "WORKER", "UPDATED"],
        &jobs.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

fn watch(id: &str, server: &Server) -> Result<ExitCode> {
    let client = connect(server)?;
    let mut shown = 0;
    loop {
        let job: Value = client.get(&format!("/api/v1/jobs/{id}"), &[("wait", "500ms")])?;
        let entries = job["timeline"].as_array().cloned().unwrap_or_default();
        for entry in entries.iter().skip(shown) {
            if server.json {
                output::json(entry);
            } else {
                output::line(&timeline_line(entry, job["created_at"].as_i64().unwrap_or_default()));
            }
        }
        shown = entries.len();
        if has_ended(&job) {
            return Ok(told_end(&job));
        }
    }
}

fn cancel(id: &str, server: &Server) -> Result<ExitCode> {
    let reply: Value = connect(server)?.post(&format!("/api/v1/jobs/{id}/cancel"), &json!({}))?;
    if server.json {
        output::json(&reply);
    } else {
        let reason = reply["reason"].as_str().map_or(String::new(), |reason| format!(" ({reason})"));
        output::line(&format!("{} is {}{reason}", output::text(&reply["id"]), output::text(&reply["state"])));
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(id: &str, server: &Server) -> Result<ExitCode> {
    let reply: Value = connect(server)?.get(&format!("/api/v1/jobs/{id}/explain"), &[])?;
    if server.json {
        output::json(&reply);
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!(
        "{} since {}: {}",
        output::text(&reply["state"]),
        output::text(&reply["since"]),
        output::text(&reply["explanation"])
    ));
    if let Some(unblock) = reply["unblock"].as_str() {
        output::line(&format!("What helps: {unblock}"));
    }
    Ok(ExitCode::SUCCESS)
}
