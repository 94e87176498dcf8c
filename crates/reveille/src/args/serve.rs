//! `reveille serve`.

use super::EngineUrls;
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub struct ServeArgs {
    /// HTTP address [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<String>,
    /// Address of health, readiness and metrics alone, or `off` [default: off]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// Address of the gRPC services, or `off` [default: off]
    #[arg(long, value_name = "ADDRESS")]
    pub grpc: Option<String>,
    /// Address of the NATS door, `unix:PATH`, or `off` [default: 127.0.0.1:4222]
    #[arg(long, value_name = "ADDRESS")]
    pub nats_door: Option<String>,
    /// Address of the RESP door, `unix:PATH`, or `off` [default: 127.0.0.1:6379]
    #[arg(long, value_name = "ADDRESS")]
    pub resp_door: Option<String>,
    /// Where data is kept [default: ./reveille-data]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub engines: EngineUrls,
    /// Settings [default: ./reveille.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// pools.yaml: which pools serve which topics
    #[arg(long, value_name = "FILE")]
    pub pools: Option<PathBuf>,
    /// safety.yaml: which jobs may run
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// timeouts.yaml: how long jobs may take
    #[arg(long, value_name = "FILE")]
    pub timeouts: Option<PathBuf>,
    /// `output_scanners.yaml`: more scanners for the rules of the policy
    #[arg(long, value_name = "FILE")]
    pub scanners: Option<PathBuf>,
    /// Add built-in workers and a trickle of jobs, to have something to look at
    #[arg(long)]
    pub demo: bool,
}
