//! `reveille drill`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum DrillCommand {
    /// Kill a throw-away server and start it again, with and without the worker snapshot
    WarmStart(WarmStartArgs),
}

#[derive(ClapArgs)]
pub struct WarmStartArgs {
    /// Simulated workers
    #[arg(long, default_value_t = 1000)]
    pub workers: usize,
    /// Seconds between two beats of a worker
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    pub beat_seconds: u64,
    /// Seconds that are watched after each restart
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub seconds: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
