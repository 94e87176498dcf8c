//! `reveille quarantine`.

use super::ServerArgs;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum QuarantineCommand {
    /// List results that are held back, newest first
    List {
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show what was found in a result
    Show {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let a result out; whoever submitted the job cannot
    Release(DecideArgs),
    /// Throw a result away for good
    Discard(DecideArgs),
}

#[derive(ClapArgs)]
pub struct DecideArgs {
    pub id: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}
