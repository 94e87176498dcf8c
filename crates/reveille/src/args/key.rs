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
    /// Give a key a new secret, shown once; the old one goes on for a while
    Rotate {
        id: String,
        /// For how long the old secret goes on, such as 30m or 7d, at most 7d; 0 revokes it at once
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = crate::config::duration)]
        overlap: std::time::Duration,
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
