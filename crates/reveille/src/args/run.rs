//! `reveille run`.

use super::ServerArgs;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum RunCommand {
    /// Start a run of a workflow
    Start {
        workflow: String,
        /// JSON, or - for standard input
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
        /// The same key again gives the same run
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
        /// Show its steps until it is over; print what it gives
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show a run and its steps
    Get {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List runs, newest first
    List {
        #[arg(long)]
        workflow: Option<String>,
        /// Only those in this state, such as `running`
        #[arg(long)]
        status: Option<String>,
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show what happens to a run until it is over
    Watch {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show what happened to a run
    Timeline {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Cancel a run, and the jobs it has under way
    Cancel {
        id: String,
        #[arg(long, default_value = "")]
        reason: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Run a run again, from one of its steps
    Rerun {
        id: String,
        /// What it depends on is taken over; all of it is done anew unless told
        #[arg(long, value_name = "STEP")]
        from: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}
