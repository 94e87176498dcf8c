//! `reveille workflow dry-run`: what would become of each step, and nothing done.

use super::checked;
use crate::args::Server;
use crate::client::connect;
use crate::{exit, output};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// The exit code says whether some step would be denied or fail.
pub fn run(of: &str, input: Option<&str>, server: &Server) -> Result<ExitCode> {
    let mut body = json!({ "input": crate::commands::run::input(input)? });
    let mut id = of.to_owned();
    if Path::new(of).is_file() {
        let document = checked(Path::new(of))?;
        id.clone_from(&document.id);
        body["workflow"] = json!(document);
    }
    let reply: Value = connect(server)?.post(&format!("/api/v1/workflows/{id}/dry-run"), &body)?;
    if server.json {
        output::json(&reply);
    } else {
        print(&reply);
    }
    Ok(if has_bad_end(&reply) { ExitCode::from(exit::JOB_FAILED) } else { ExitCode::SUCCESS })
}

/// Whether some step would be denied or fail, here or in a run within the run.
fn has_bad_end(reply: &Value) -> bool {
    steps(reply)
        .any(|step| step["status"] == "denied" || step["status"] == "failed" || has_bad_end(&step["run"]))
}

fn steps(reply: &Value) -> impl Iterator<Item = &Value> {
    reply["steps"].as_array().into_iter().flatten()
}

/// A row for each step; those of a run within the run stand below it, as `step/inner`.
fn rows(reply: &Value, within: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for step in steps(reply) {
        let text = |field: &str| output::text(&step[field]);
        let policy = |field: &str| output::text(&step["policy"][field]);
        let name = format!("{within}{}", text("step_id"));
        let inner = self::rows(&step["run"], &format!("{name}/"));
        rows.push(vec![name, text("status"), policy("decision"), policy("rule_id"), why(step)]);
        rows.extend(inner);
    }
    rows
}

fn print(reply: &Value) {
    let rows = rows(reply, "");
    output::table(&["STEP", "WOULD BE", "POLICY", "RULE", "WHY"], &rows);
    for warning in reply["warnings"].as_array().into_iter().flatten() {
        eprintln!("warning: {}", output::text(warning));
    }
}

/// What is not known beforehand, or what stands in the way.
fn why(step: &Value) -> String {
    let list = |field: &str| {
        let list = step[field].as_array().into_iter().flatten().map(output::text);
        list.collect::<Vec<_>>().join(", ")
    };
    let mut words = vec![output::text(&step["error"])];
    if step["policy"]["decision"] != "ALLOW" {
        words.push(output::text(&step["policy"]["reason"]));
    }
    if !step["rounds"].is_null() {
        words.push(format!("{} rounds", step["rounds"]));
    }
    for (field, what) in [("begins_on", "begins"), ("input_on", "input")] {
        let on = list(field);
        if !on.is_empty() {
            words.push(format!("{what} rests on {on}"));
        }
    }
    words.retain(|words| !words.is_empty());
    words.join("; ")
}
