//! `reveille key …`

use crate::args::{GrantArgs, KeyCommand};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::key::{
    self as shape, CreateKey, CreatedKey, KeyList, RotateKey, RotatedKey, WorkerGrant,
};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: KeyCommand) -> Result<ExitCode> {
    match command {
        KeyCommand::Create { name, scopes, tenant, expires, grant, server } => {
            let body = CreateKey { name, scopes, tenant, expires_at: expires, worker: grant_of(grant) };
            let answer: Value = connect(&server)?.post("/api/v1/auth/keys", &body)?;
            output::answer(&server, &answer, |CreatedKey { key, secret }| {
                eprintln!("key {} for tenant {}; the secret is shown once:", key.id, key.tenant);
                output::line(&secret);
            })?;
        }
        KeyCommand::List { server } => {
            let answer: Value = connect(&server)?.get("/api/v1/auth/keys", &[])?;
            output::answer(&server, &answer, |KeyList { items }| {
                let rows: Vec<Vec<String>> = items.into_iter().map(row).collect();
                let titles =
                    ["KEY", "NAME", "TENANT", "SCOPES", "SERVES", "CREATED", "EXPIRES", "LAST USED", ""];
                output::table(&titles, &rows);
            })?;
        }
        KeyCommand::Rotate { id, overlap, server } => {
            let body = RotateKey { overlap_sec: Some(overlap.as_secs()) };
            let answer: Value = connect(&server)?.post(&format!("/api/v1/auth/keys/{id}/rotate"), &body)?;
            output::answer(&server, &answer, |RotatedKey { key, secret, old_expires_at }| {
                eprintln!(
                    "key {} takes the place of {id}, which ends at {old_expires_at}; the secret is shown once:",
                    key.id
                );
                output::line(&secret);
            })?;
        }
        KeyCommand::Revoke { id, server } => {
            connect(&server)?.delete::<Value>(&format!("/api/v1/auth/keys/{id}"))?;
            if server.json {
                output::json(&json!({ "id": id, "revoked": true }));
            } else {
                output::line(&format!("{id} is revoked"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Nothing if nothing was said of it.
pub fn grant_of(GrantArgs { topics, pools, serves }: GrantArgs) -> Option<WorkerGrant> {
    let is_said = [&topics, &pools, &serves].into_iter().any(|words| !words.is_empty());
    is_said.then_some(WorkerGrant { topics, pools, serves })
}

fn row(key: shape::Key) -> Vec<String> {
    let replaced = key.replaced_by.map(|next| format!("replaced by {next}"));
    let revoked = key.revoked_at.map(|_| "revoked".to_owned());
    let status: Vec<String> = [revoked, replaced].into_iter().flatten().collect();
    vec![
        key.id,
        key.name,
        key.tenant,
        key.scopes.join(","),
        key.worker.map(|grant| grant.serves.join(",")).unwrap_or_default(),
        key.created_at,
        key.expires_at.unwrap_or_default(),
        key.last_used_at.unwrap_or_default(),
        status.join(", "),
    ]
}
