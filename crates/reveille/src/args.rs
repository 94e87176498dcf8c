//! The command line: one file for each noun.

mod approval;
mod audit;
mod dlq;
mod drill;
mod engines;
mod job;
mod key;
mod policy;
mod pool;
mod run;
mod serve;
mod server;
mod worker;
mod workflow;

pub use approval::{Approval, Resolve};
pub use audit::{Audit, AuditList};
pub use dlq::{Dlq, LetterFilter};
pub use drill::{Drill, WarmStart};
pub use engines::{Doctor, EngineUrls};
pub use job::{Job, List, Submit};
pub use key::Key;
pub use policy::Policy;
pub use pool::Pool;
pub use run::Run;
pub use serve::Serve;
pub use server::Server;
pub use worker::Worker;
pub use workflow::Workflow;

use clap::{Parser, Subcommand};

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
}
