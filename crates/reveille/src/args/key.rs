//! `reveille key`.

use super::ServerArgs;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Make a key; its secret is shown once
    Create {
        name: String,
        /// Of ingest, read, write, admin; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Whose key it is
        #[arg(long)]
        tenant: Option<String>,
        /// Until when it is good, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List keys
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Revoke a key
    Revoke {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}
