//! `reveille audit`.

use super::ServerArgs;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first
    List(AuditListArgs),
    /// Check every hash of a tenant's chain; exit code 1 if it does not hold
    Verify {
        /// Whose chain; that of the key unless told
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
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
