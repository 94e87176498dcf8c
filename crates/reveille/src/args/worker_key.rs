//! `reveille worker-key …`

use super::{GrantArgs, ServerArgs};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum WorkerKeyCommand {
    /// Make a key pair for a worker; the public half goes beside it, with .pub
    Pair {
        /// Where the private half goes, which only the worker needs
        file: PathBuf,
    },
    /// Register the public half of a worker's key pair; `key list` lists it, `key revoke` revokes it
    Register {
        /// The worker's id
        worker: String,
        /// The public half, as PEM
        #[arg(long, value_name = "FILE")]
        public_key: PathBuf,
        /// Whose worker it is
        #[arg(long)]
        tenant: Option<String>,
        /// The worker's `expected_agent_id` in the trust handshake; its id unless told
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// The worker's `proof_key_id` in the trust handshake; the key's id unless told
        #[arg(long, value_name = "ID")]
        proof_key_id: Option<String>,
        /// Until when it is good, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        grant: GrantArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Register the key that takes the place of another, which goes on for a while
    Rotate {
        /// The key that is replaced
        id: String,
        /// The public half of the next pair, as PEM
        #[arg(long, value_name = "FILE")]
        public_key: PathBuf,
        /// For how long the old key goes on, such as 30m or 7d, at most 7d; 0 revokes it at once
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = crate::config::duration)]
        overlap: std::time::Duration,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show the key that packets to workers are signed with, as PEM
    Server {
        #[command(flatten)]
        server: ServerArgs,
    },
}
