//! `reveille pool`.

use super::ServerArgs;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum PoolCommand {
    /// List pools
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Give no worker of a pool new jobs; what they still have after the timeout goes elsewhere
    Drain {
        name: String,
        /// Seconds that their jobs may stay
        #[arg(long, default_value_t = 300, value_name = "SECONDS")]
        timeout: u32,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Put a pool back into service
    Undrain {
        name: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}
