//! `reveille key …`

use crate::args::KeyCommand;
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::key::{self as shape, CreateKey, CreatedKey, KeyList};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: KeyCommand) -> Result<ExitCode> {
    match command {
        KeyCommand::Create { name, scopes, tenant, expires, server } => {
            let body = CreateKey { name, scopes, tenant, expires_at: expires };
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
                output::table(&["KEY", "NAME", "TENANT", "SCOPES", "CREATED", "EXPIRES", ""], &rows);
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

fn row(key: shape::Key) -> Vec<String> {
    let status = if key.revoked_at.is_some() { "revoked" } else { "" };
    vec![
        key.id,
        key.name,
        key.tenant,
        key.scopes.join(","),
        key.created_at,
        key.expires_at.unwrap_or_default(),
        status.to_owned(),
    ]
}
