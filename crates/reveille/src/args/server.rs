//! What every command that asks a server has in common.

use clap::Args as ClapArgs;
use std::path::PathBuf;

/// Where the server is, and who asks.
#[derive(ClapArgs, Clone)]
pub struct ServerArgs {
    /// The server
    #[arg(long, env = "REVEILLE_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub url: String,
    /// The key; without one, the operator key in the data folder is used
    #[arg(long, env = "REVEILLE_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: Option<String>,
    /// Believe a server over https:// if this authority has signed its certificate (PEM)
    #[arg(long, env = "REVEILLE_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Show this certificate to a server that asks for one (PEM)
    #[arg(long, env = "REVEILLE_CERT", value_name = "FILE", requires = "cert_key")]
    pub cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, env = "REVEILLE_CERT_KEY", value_name = "FILE", requires = "cert")]
    pub cert_key: Option<PathBuf>,
    /// The data folder of a server on this machine
    #[arg(long, env = "REVEILLE_DATA_FOLDER", default_value = "./reveille-data", value_name = "FOLDER")]
    pub data: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
