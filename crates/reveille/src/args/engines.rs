//! What several servers share, on the command line.

use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub engines: EngineUrls,
    /// Settings [default: ./reveille.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What several servers share.
#[derive(ClapArgs)]
pub struct EngineUrls {
    /// Redis, for several servers: `redis://host:port`
    #[arg(long, value_name = "URL")]
    pub redis: Option<String>,
    /// NATS with JetStream, for several servers: `nats://host:port`
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// PostgreSQL, for several servers: `postgres://user@host/database`
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,
}
