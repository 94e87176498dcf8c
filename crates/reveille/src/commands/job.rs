//! `reveille job …`

use crate::args::{JobCommand, JobListArgs, ServerArgs, SubmitArgs};
use crate::client::connect;
use crate::progress::ProgressLine;
use crate::{exit, output};
use anyhow::{Context, Result};
use reveille_api_types::job::{Cancelled, Explained, JobDetail, JobRecord, TimelineEntry};
use reveille_api_types::submit::SubmitReply;
use reveille_client::{Error, NewJob};
use reveille_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(command: JobCommand) -> Result<ExitCode> {
    match command {
        JobCommand::Submit(submit) => run_submit(&submit),
        JobCommand::Get { id, server } => get(&id, &server),
        JobCommand::List(list) => run_list(&list),
        JobCommand::Watch { id, server } => watch(&id, &server),
        JobCommand::Cancel { id, server } => cancel(&id, &server),
        JobCommand::Explain { id, server } => explain(&id, &server),
    }
}

fn run_submit(submit: &SubmitArgs) -> Result<ExitCode> {
    let client = connect(&submit.server)?;
    let reply: Value = client.post("/api/v1/jobs", &wanted(submit)?)?;
    if !submit.wait {
        output::answer(&submit.server, &reply, |reply: SubmitReply| output::line(&reply.job_id))?;
        return Ok(ExitCode::SUCCESS);
    }
    let SubmitReply { job_id: id, reason, .. } = output::read(&reply)?;
    if let Some(reason) = reason {
        eprintln!("job {id} waits for approval: {reason}");
    }
    let patience = Duration::from_secs(submit.timeout);
    let shown = ProgressLine::waiting(format!("job {id}"));
    let waited = client.wait(&format!("/api/v1/jobs/{id}"), patience, |job: &Value| {
        // One that cannot be read is not waited for: why, is said when it is read below.
        output::read(job).map_or(true, |job: JobRecord| {
            shown.say(format!("job {id} is {}", job.state));
            job.has_ended()
        })
    });
    drop(shown);
    let answer = match waited {
        Err(Error::WaitTimeout(_)) => {
            eprintln!(
                "job {id} has not ended after {} s; `reveille job explain {id}` says why",
                submit.timeout
            );
            return Ok(ExitCode::from(exit::NOT_YET));
        }
        waited => waited?,
    };
    let job: JobDetail = output::read(&answer)?;
    if submit.server.json {
        output::json(&answer);
    } else if job.state == "SUCCEEDED" {
        output::json(&job.result);
    }
    Ok(told_end(&job))
}

fn wanted(submit: &SubmitArgs) -> Result<NewJob> {
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

/// The exit code says how it ended; anything but success is also said in words.
fn told_end(job: &JobDetail) -> ExitCode {
    if job.state == "SUCCEEDED" {
        return ExitCode::SUCCESS;
    }
    let words = if job.error_message.is_empty() { &job.failure_reason } else { &job.error_message };
    eprintln!("job {} ended as {}: {words}", job.id, job.state);
    ExitCode::from(exit::JOB_FAILED)
}

fn get(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/jobs/{id}"), &[])?;
    output::answer(server, &answer, |job: JobDetail| {
        let text = |value: &Value| if value.is_null() { String::new() } else { value.to_string() };
        output::facts(
            16,
            &[
                ("id", &job.id),
                ("state", &job.state),
                ("topic", &job.topic),
                ("tenant", &job.tenant),
                ("priority", &job.priority),
                ("worker_id", &job.worker_id),
                ("attempts", &job.attempts.to_string()),
                ("safety_decision", &job.safety_decision),
                ("safety_rule_id", &job.safety_rule_id),
                ("error_message", &job.error_message),
                ("context", &text(&job.context)),
                ("result", &text(&job.result)),
            ],
        );
        output::line("");
        for entry in &job.timeline {
            output::line(&timeline_line(entry, job.created_at));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn timeline_line(entry: &TimelineEntry, start: i64) -> String {
    let TimelineEntry { at, event, state, worker_id, note } = entry;
    let after_ms = (at - start) / 1000;
    format!("{after_ms:>9} ms  {state:<18} {event:<16} {worker_id}  {note}").trim_end().to_owned()
}

fn run_list(list: &JobListArgs) -> Result<ExitCode> {
    let filters = [("state", &list.state), ("topic", &list.topic), ("tenant", &list.tenant)];
    let filters: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let now = SystemClock::start().now().0;
    output::list(
        &list.server,
        connect(&list.server)?.list("/api/v1/jobs", &filters, list.limit),
        &["JOB", "STATE", "TOPIC", "TENANT", "PRIORITY", "WORKER", "UPDATED"],
        |job: JobRecord| {
            let updated = output::ago(job.updated_at, now);
            vec![job.id, job.state, job.topic, job.tenant, job.priority, job.worker_id, updated]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn watch(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let client = connect(server)?;
    let mut shown = 0;
    loop {
        let job: JobDetail = client.get(&format!("/api/v1/jobs/{id}"), &[("wait", "500ms")])?;
        for entry in job.timeline.iter().skip(shown) {
            if server.json {
                output::json(&json!(entry));
            } else {
                output::line(&timeline_line(entry, job.created_at));
            }
        }
        shown = job.timeline.len();
        if job.has_ended() {
            return Ok(told_end(&job));
        }
    }
}

fn cancel(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.post(&format!("/api/v1/jobs/{id}/cancel"), &json!({}))?;
    output::answer(server, &answer, |Cancelled { id, state, reason }| {
        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        output::line(&format!("{id} is {state}{reason}"));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn explain(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/jobs/{id}/explain"), &[])?;
    output::answer(server, &answer, |why: Explained| {
        output::line(&format!("{} since {}: {}", why.state, why.since, why.explanation));
        if let Some(unblock) = why.unblock {
            output::line(&format!("What helps: {unblock}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
