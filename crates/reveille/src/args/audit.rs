//! `reveille audit`.

use super::ServerArgs;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first
    List(AuditListArgs),
    /// Check every hash of a tenant's chain; exit code 1 if it does not hold
    Verify(AuditVerifyArgs),
    /// Take a signed checkpoint of a chain, to be kept elsewhere
    Checkpoint(CheckpointArgs),
    /// Show the key that checkpoints are verified with, as PEM
    PublicKey {
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(ClapArgs)]
pub struct AuditVerifyArgs {
    /// Whose chain; that of the key unless told, or all of which the file has checkpoints
    #[arg(long)]
    pub tenant: Option<String>,
    /// Compare with the checkpoints in this file too; exit code 1 if history was rewritten, 5 if it was pruned since
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Which key must have signed them (PEM, maybe several); the one that the file names unless told
    #[arg(long, value_name = "FILE", requires = "against")]
    pub public_key: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(ClapArgs)]
pub struct CheckpointArgs {
    /// Whose chain; that of the key unless told
    #[arg(long, conflicts_with = "all")]
    pub tenant: Option<String>,
    /// Every tenant's chain; for operators
    #[arg(long)]
    pub all: bool,
    /// Add them to this file; they are printed unless told
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(ClapArgs)]
pub struct AuditListArgs {
    /// Only entries of this job
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only this kind, such as safety.decision, safety.approval or system.auth
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// How far back, such as 30m, 24h or 7d, or since which time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only this tenant; an operator sees all unless told
    #[arg(long)]
    pub tenant: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub server: ServerArgs,
}
