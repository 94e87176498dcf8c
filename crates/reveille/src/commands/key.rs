//! `reveille key …`

use crate::args::Key;
use crate::client::connect;
use crate::output;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(command: Key) -> Result<ExitCode> {
    match command {
        Key::Create { name, scopes, tenant, expires, server } => {
            let body = json!({ "name": name, "scopes": scopes, "tenant": tenant, "expiresAt": expires });
            let reply: Value = connect(&server)?.post("/api/v1/auth/keys", &body)?;
            if server.json {
                output::json(&reply);
            } else {
                eprintln!(
                    "key {} for tenant {}; the secret is shown once:",
                    output::text(&reply["key"]["id"]),
                    output::text(&reply["key"]["tenant"])
                );
                output::line(&output::text(&reply["secret"]));
            }
        }
        Key::List { server } => {
            let reply: Value = connect(&server)?.get("/api/v1/auth/keys", &[])?;
            if server.json {
                output::json(&reply);
                return Ok(ExitCode::SUCCESS);
            }
            let row = |key: &Value| {
                let text = |field: &str| output::text(&key[field]);
                let scopes: Vec<String> =
                    key["scopes"].as_array().into_iter().flatten().map(output::text).collect();
                let status = if key["revokedAt"].is_null() { String::new() } else { "revoked".to_owned() };
                vec![
                    text("id"),
                    text("name"),
                    text("tenant"),
                    scopes.join(","),
                    text("createdAt"),
                    text("expiresAt"),
                    status,
                ]
            };
            let rows: Vec<Vec<String>> = reply["items"].as_array().into_iter().flatten().map(row).collect();
            output::table(&["KEY", "NAME", "TENANT", "SCOPES", "CREATED", "EXPIRES", ""], &rows);
        }
        Key::Revoke { id, server } => {
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
