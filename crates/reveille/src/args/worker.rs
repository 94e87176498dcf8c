//! `reveille worker`.

use super::ServerArgs;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum WorkerCommand {
    /// List workers, agents and workspaces
    List {
        /// Only this contract: cap, voicegateway or molecule
        #[arg(long)]
        contract: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show a worker
    Get {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Give a worker no new jobs; what it still has after the timeout goes elsewhere
    Drain {
        id: String,
        /// Seconds that its jobs may stay
        #[arg(long, default_value_t = 300, value_name = "SECONDS")]
        timeout: u32,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Put a worker back into service
    Undrain {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}
