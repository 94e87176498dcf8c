//! `reveille policy`.

use super::ServerArgs;
use super::label::label;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Read a safety.yaml as the server would, and remark on rules that never decide
    Check {
        file: PathBuf,
        /// Remarks count as errors
        #[arg(long)]
        strict: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the cases beside a safety.yaml: safety.test.yaml
    Test {
        file: PathBuf,
        /// The cases, if they are elsewhere
        #[arg(long, value_name = "FILE")]
        cases: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Judge the server's past jobs by another safety.yaml, and show what would change
    Simulate {
        file: PathBuf,
        /// How far back, such as 30m, 24h or 7d, or since which time
        #[arg(long, default_value = "24h", value_name = "WHEN")]
        since: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Ask what the server's policy would say of a job, and why; nothing is submitted
    Ask(PolicyAskArgs),
}

#[derive(ClapArgs)]
pub struct PolicyAskArgs {
    /// What kind of job: job.something
    #[arg(long)]
    pub topic: String,
    /// What the job does
    #[arg(long)]
    pub capability: Option<String>,
    /// A risk tag; may be repeated
    #[arg(long = "risk-tag", value_name = "TAG")]
    pub risk_tags: Vec<String>,
    /// Who asks for it
    #[arg(long, value_name = "WHO")]
    pub principal: Option<String>,
    /// A label, as key=value; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    #[command(flatten)]
    pub server: ServerArgs,
}
