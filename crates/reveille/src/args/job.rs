//! `reveille job`.

use super::ServerArgs;
use super::label::label;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum JobCommand {
    /// Submit a job
    Submit(Box<SubmitArgs>),
    /// Show a job
    Get {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List jobs, newest first
    List(JobListArgs),
    /// Follow a job until it ends
    Watch {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Cancel a job
    Cancel {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Say why a job is where it is
    Explain {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(ClapArgs)]
pub struct SubmitArgs {
    /// The input, as JSON; `-` reads it from standard input
    #[arg(value_name = "JSON")]
    pub context: Option<String>,
    /// What kind of job: job.something
    #[arg(long)]
    pub topic: String,
    /// A prompt, beside or instead of the input
    #[arg(long)]
    pub prompt: Option<String>,
    /// batch, interactive or critical
    #[arg(long)]
    pub priority: Option<String>,
    /// A label, as key=value; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// A capability that the worker must have; may be repeated
    #[arg(long = "requires", value_name = "CAPABILITY")]
    pub requires: Vec<String>,
    /// A risk tag for policy; may be repeated
    #[arg(long = "risk-tag", value_name = "TAG")]
    pub risk_tags: Vec<String>,
    /// What the job does, for policy
    #[arg(long)]
    pub capability: Option<String>,
    /// The same key gives the same job
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Milliseconds until the job must be over
    #[arg(long, value_name = "MS")]
    pub deadline_ms: Option<i64>,
    /// Wait for the end and print the result
    #[arg(long)]
    pub wait: bool,
    /// How long to wait, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub timeout: u64,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(ClapArgs)]
pub struct JobListArgs {
    #[arg(long)]
    pub state: Option<String>,
    #[arg(long)]
    pub topic: Option<String>,
    #[arg(long)]
    pub tenant: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub server: ServerArgs,
}
