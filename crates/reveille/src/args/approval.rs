//! `reveille approval`.

use super::ServerArgs;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum ApprovalCommand {
    /// List what waits for a person, newest first
    List {
        /// Also what has been decided, or went away
        #[arg(long)]
        all: bool,
        /// At most this many
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show what a job would do and who could get it
    Show {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let a job go on; whoever submitted it cannot
    Approve(ResolveArgs),
    /// Do not let a job go on
    Reject(ResolveArgs),
}

#[derive(ClapArgs)]
pub struct ResolveArgs {
    pub id: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    /// Decide only if this is still the request, as `approval show` names it
    #[arg(long, value_name = "HASH")]
    pub job_hash: Option<String>,
    /// Decide only if this is still the policy that asks
    #[arg(long, value_name = "SNAPSHOT")]
    pub policy_snapshot: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}
