//! `reveille workflow`.

use super::ServerArgs;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum WorkflowCommand {
    /// Save a workflow from a file, YAML or JSON
    Apply {
        file: PathBuf,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Say what is wrong with a file, without a server
    Lint { file: PathBuf },
    /// Show a workflow
    Get {
        id: String,
        /// The last one unless told
        #[arg(long)]
        version: Option<u32>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Draw a workflow: in the terminal, or as an SVG
    Graph {
        /// A file, or else the id of a workflow at the server
        #[arg(value_name = "FILE|ID")]
        of: String,
        /// The last one unless told
        #[arg(long)]
        version: Option<u32>,
        /// Write an SVG there; - for standard output
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Say what would become of each step of a run, and do nothing
    DryRun {
        /// A file, or else the id of a workflow at the server
        #[arg(value_name = "FILE|ID")]
        of: String,
        /// JSON, or - for standard input
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List workflows
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Delete a workflow; runs that began with it go on
    Delete {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}
