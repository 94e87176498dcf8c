//! Reveille keeps a fleet of AI-agent workers awake, known and at work.
//!
//! This is only the binary: it parses, builds, runs and drains. Everything it does is in the crates.

mod args;
mod client;
mod commands;
mod config;
mod demo;
mod drill;
mod exit;
mod output;
mod progress;
mod serve;
mod story;

use args::Command;
use std::process::ExitCode;

/// Many small allocations on two threads: measurably better here than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match args::typed().command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Demo(demo) => story::run(&demo),
        Command::Top(top) => commands::top::run(&top),
        Command::System(system) => commands::system::run(&system),
        Command::Job(job) => commands::job::run(job),
        Command::Approval(approval) => commands::approval::run(approval),
        Command::Workflow(workflow) => commands::workflow::run(workflow),
        Command::Run(run) => commands::run::run(run),
        Command::Quarantine(quarantine) => commands::quarantine::run(quarantine),
        Command::Dlq(dlq) => commands::dlq::run(dlq),
        Command::Worker(worker) => commands::worker::run(worker),
        Command::Pool(pool) => commands::pool::run(pool),
        Command::Policy(policy) => commands::policy::run(policy),
        Command::Audit(audit) => commands::audit::run(audit),
        Command::Key(key) => commands::key::run(key),
        Command::WorkerKey(key) => commands::worker_key::run(key),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Drill(drill) => drill::run(&drill),
        Command::Completions(shell) => Ok(commands::tools::completions(&shell)),
        Command::Man(man) => commands::tools::man(&man),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(exit::FAILED)
        }
    }
}
