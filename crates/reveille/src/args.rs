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
mod workflow;

pub use approval::{Approval, Resolve};
pub use audit::{Audit, AuditList};
pub use demo::Demo;
pub use dlq::{Dlq, LetterFilter};
pub use drill::{Drill, WarmStart};
pub use engines::{Doctor, EngineUrls};
pub use job::{Job, List, Submit};
pub use key::Key;
pub use policy::{Ask, Policy};
pub use pool::Pool;
pub use quarantine::{Decide, Quarantine};
pub use run::Run;
pub use serve::Serve;
pub use server::Server;
pub use tools::{Completions, Man, System, Top};
pub use worker::Worker;
pub use workflow::Workflow;

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
    Serve(Box<Serve>),
    /// Two minutes with a fleet, a killed worker, an approval and a rollback, on this machine
    Demo(Demo),
    /// Watch the fleet, the queues and what waits
    Top(Top),
    /// What the server is at: who holds which lock, and what it waits for
    System(System),
    /// Submit, look at and cancel jobs
    #[command(subcommand)]
    Job(Job),
    /// Save, check and look at workflows
    #[command(subcommand)]
    Workflow(Workflow),
    /// Start, watch, cancel and repeat runs of workflows
    #[command(subcommand)]
    Run(Run),
    /// Decide about jobs that wait for a person
    #[command(subcommand)]
    Approval(Approval),
    /// Look at results that are held back; let them out or throw them away
    #[command(subcommand)]
    Quarantine(Quarantine),
    /// Look at jobs that ended badly, and try them again
    #[command(subcommand)]
    Dlq(Dlq),
    /// Look at workers
    #[command(subcommand)]
    Worker(Worker),
    /// Look at pools
    #[command(subcommand)]
    Pool(Pool),
    /// Check, test and try out policies
    #[command(subcommand)]
    Policy(Policy),
    /// Read the audit trail, and see whether anybody changed it
    #[command(subcommand)]
    Audit(Audit),
    /// Make, list and revoke keys
    #[command(subcommand)]
    Key(Key),
    /// Look at Redis, NATS and PostgreSQL: are they fit for several servers?
    Doctor(Doctor),
    /// Try out on this machine what a bad day does
    #[command(subcommand)]
    Drill(Drill),
    /// Print what makes a shell complete these commands
    Completions(Completions),
    /// Write man pages
    Man(Man),
}

/// The command line, with examples and what the exit codes mean.
pub fn command_line() -> clap::Command {
    examples::shown(Args::command()).after_help(crate::exit::help())
}

/// What was typed, or the end of the program with a word about what was wrong.
pub fn typed() -> Args {
    Args::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit())
}
