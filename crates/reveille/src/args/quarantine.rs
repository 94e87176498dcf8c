//! `reveille quarantine`.

use super::Server;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum Quarantine {
    /// List results that are held back, newest first
    List {
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        server: Server,
    },
    /// Show what was found in a result
    Show {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// Let a result out; whoever submitted the job cannot
    Release(Decide),
    /// Throw a result away for good
    Discard(Decide),
}

#[derive(ClapArgs)]
pub struct Decide {
    pub id: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub server: Server,
}
