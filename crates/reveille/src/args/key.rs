//! `reveille key`.

use super::ServerArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Make a key; its secret is shown once
    Create {
        name: String,
        /// Of ingest, read, submit, approve, release, operate, write, worker, admin; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Whose key it is
        #[arg(long)]
        tenant: Option<String>,
        /// Until when it is good, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        grant: GrantArgs,
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

/// What a worker may serve.
#[derive(Args)]
pub struct GrantArgs {
    /// A worker's: a topic it serves, or a pattern such as 'job.mail.*'; may be repeated, all unless told
    #[arg(long = "topic", value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// A worker's: a pool it may join; may be repeated, any unless told
    #[arg(long = "pool", value_name = "POOL")]
    pub pools: Vec<String>,
    /// A worker's: a tenant whose jobs it is given, or '*' for everyone; may be repeated, its own tenant unless told
    #[arg(long = "serves", value_name = "TENANT")]
    pub serves: Vec<String>,
}
