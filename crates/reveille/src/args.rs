//! The command line: one file for each noun.

mod approval;
mod audit;
mod demo;
mod dlq;
mod drill;
mod engines;
mod examples;
mod job;
mod key;
mod label;
mod policy;
mod pool;
mod quarantine;
mod run;
mod serve;
mod server;
mod tools;
mod worker;
mod worker_key;
mod workflow;

pub use approval::{ApprovalCommand, ResolveArgs};
pub use audit::{AuditCommand, AuditListArgs, AuditVerifyArgs, CheckpointArgs};
pub use demo::DemoArgs;
pub use dlq::{DlqCommand, LetterFilter};
pub use drill::{DrillCommand, WarmStartArgs};
pub use engines::{DoctorArgs, EngineUrls};
pub use job::{JobCommand, JobListArgs, SubmitArgs};
pub use key::{GrantArgs, KeyCommand};
pub use policy::{PolicyAskArgs, PolicyCommand};
pub use pool::PoolCommand;
pub use quarantine::{DecideArgs, QuarantineCommand};
pub use run::RunCommand;
pub use serve::ServeArgs;
pub use server::ServerArgs;
pub use tools::{CompletionsArgs, ManArgs, SystemArgs, TopArgs};
pub use worker::WorkerCommand;
pub use worker_key::WorkerKeyCommand;
pub use workflow::WorkflowCommand;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "reveille", version, about = "Keeps a fleet of AI-agent workers awake, known and at work")]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the server
    Serve(Box<ServeArgs>),
    /// Two minutes with a fleet, a killed worker, an approval and a rollback, on this machine
    Demo(DemoArgs),
    /// Watch the fleet, the queues and what waits
    Top(TopArgs),
    /// What the server is at: who holds which lock, and what it waits for
    System(SystemArgs),
    /// Submit, look at and cancel jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Save, check and look at workflows
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Start, watch, cancel and repeat runs of workflows
    #[command(subcommand)]
    Run(RunCommand),
    /// Decide about jobs that wait for a person
    #[command(subcommand)]
    Approval(ApprovalCommand),
    /// Look at results that are held back; let them out or throw them away
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// Look at jobs that ended badly, and try them again
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Look at workers
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Look at pools
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Check, test and try out policies
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Read the audit trail, take checkpoints of it, and see whether anybody changed it
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Make, list and revoke keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Register what workers sign their packets with
    #[command(subcommand)]
    WorkerKey(WorkerKeyCommand),
    /// Look at Redis, NATS and PostgreSQL: are they fit for several servers?
    Doctor(DoctorArgs),
    /// Try out on this machine what a bad day does
    #[command(subcommand)]
    Drill(DrillCommand),
    /// Print what makes a shell complete these commands
    Completions(CompletionsArgs),
    /// Write man pages
    Man(ManArgs),
}

/// The command line, with examples and what the exit codes mean.
pub fn command_line() -> clap::Command {
    examples::shown(Args::command()).after_help(crate::exit::help())
}

/// What was typed, or the end of the program with a word about what was wrong.
pub fn typed() -> Args {
    Args::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit())
}
