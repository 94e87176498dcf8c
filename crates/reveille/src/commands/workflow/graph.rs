//! `reveille workflow graph`: a workflow as a picture, from a file or from a server.

use super::checked;
use crate::args::ServerArgs;
use crate::client::connect;
use crate::output;
use anyhow::{Context, Result};
use reveille_api::convert;
use reveille_api_types::workflow::WorkflowDetail;
use reveille_client::Client;
use reveille_core::flow::{Flow, WorkflowDocument};
use reveille_diagram::{Layout, draw_svg, draw_text};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// What every terminal has.
const COLUMNS: usize = 80;

pub fn run(of: &str, version: Option<u32>, to: Option<&Path>, server: &ServerArgs) -> Result<ExitCode> {
    let flow = flow(of, version, server)?;
    let layout = Layout::of(&flow);
    match to {
        Some(path) if path == Path::new("-") => {
            std::io::stdout()
                .write_all(draw_svg(&flow, &layout).as_bytes())
                .context("writing the picture")?;
        }
        Some(path) => {
            let what = || format!("writing {}", path.display());
            std::fs::write(path, draw_svg(&flow, &layout)).with_context(what)?;
        }
        None if server.json => output::json(&json!(convert::graph_detail(&flow, &layout))),
        None => output::line(draw_text(&flow, &layout, COLUMNS).trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// A file, if there is one of that name; else what the server has.
fn flow(of: &str, version: Option<u32>, server: &ServerArgs) -> Result<Flow> {
    let file = Path::new(of);
    if version.is_none() && file.is_file() {
        return Ok(Flow::read(&checked(file)?, 1)?);
    }
    saved(&connect(server)?, of, version)
}

/// The workflow as the server has it.
fn saved(client: &Client, id: &str, version: Option<u32>) -> Result<Flow> {
    let version = version.map(|version| version.to_string());
    let query: Vec<(&str, &str)> = version.iter().map(|version| ("version", version.as_str())).collect();
    let found: WorkflowDetail = client.get(&format!("/api/v1/workflows/{id}"), &query)?;
    let version = found.document["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    let document: WorkflowDocument =
        serde_json::from_value(found.document).context("reading the workflow")?;
    Ok(Flow::read(&document, version.unwrap_or(1))?)
}
