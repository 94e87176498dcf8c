//! The command line.

mod engines;

pub use engines::{Doctor, EngineUrls};

use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;

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

#[derive(Subcommand)]
pub enum Drill {
    /// Kill a throw-away server and start it again, with and without the worker snapshot
    WarmStart(WarmStart),
}

#[derive(ClapArgs)]
pub struct WarmStart {
    /// Simulated workers
    #[arg(long, default_value_t = 1000)]
    pub workers: usize,
    /// Seconds between two beats of a worker
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    pub beat_seconds: u64,
    /// Seconds that are watched after each restart
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub seconds: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs)]
pub struct Serve {
    /// HTTP address [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<String>,
    /// Address of the gRPC services, or `off` [default: off]
    #[arg(long, value_name = "ADDRESS")]
    pub grpc: Option<String>,
    /// Address of the NATS door, or `off` [default: 127.0.0.1:4222]
    #[arg(long, value_name = "ADDRESS")]
    pub nats_door: Option<String>,
    /// Address of the RESP door, or `off` [default: 127.0.0.1:6379]
    #[arg(long, value_name = "ADDRESS")]
    pub resp_door: Option<String>,
    /// Where data is kept [default: ./reveille-data]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub engines: EngineUrls,
    /// Settings [default: ./reveille.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// pools.yaml: which pools serve which topics
    #[arg(long, value_name = "FILE")]
    pub pools: Option<PathBuf>,
    /// safety.yaml: which jobs may run
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// timeouts.yaml: how long jobs may take
    #[arg(long, value_name = "FILE")]
    pub timeouts: Option<PathBuf>,
    /// `output_scanners.yaml`: more scanners for the rules of the policy
    #[arg(long, value_name = "FILE")]
    pub scanners: Option<PathBuf>,
    /// Add built-in workers and a trickle of jobs, to have something to look at
    #[arg(long)]
    pub demo: bool,
}

/// Where the server is, and who asks.
#[derive(ClapArgs, Clone)]
pub struct Server {
    /// The server
    #[arg(long, env = "REVEILLE_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub url: String,
    /// The key; without one, the operator key in the data folder is used
    #[arg(long, env = "REVEILLE_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: Option<String>,
    /// The data folder of a server on this machine
    #[arg(long, env = "REVEILLE_DATA_FOLDER", default_value = "./reveille-data", value_name = "FOLDER")]
    pub data: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum Job {
    /// Submit a job
    Submit(Box<Submit>),
    /// Show a job
    Get {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// List jobs, newest first
    List(List),
    /// Follow a job until it ends
    Watch {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// Cancel a job
    Cancel {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// Say why a job is where it is
    Explain {
        id: String,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(ClapArgs)]
pub struct Submit {
    /// The input, as JSON; `-` reads it from standard input
    #[arg(value_name = "JSON")]
    pub context: Option<String>,
    /// What kind of job: job.something
    #[arg(long)]
    pub topic: String,
    /// A prompt, beside or instead of the input
    #[arg(long)]
    pub prompt: Option<String>,
    /// batch, interactive or critical
    #[arg(long)]
    pub priority: Option<String>,
    /// A label, as key=value; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// A capability that the worker must have; may be repeated
    #[arg(long = "requires", value_name = "CAPABILITY")]
    pub requires: Vec<String>,
    /// A risk tag for policy; may be repeated
    #[arg(long = "risk-tag", value_name = "TAG")]
    pub risk_tags: Vec<String>,
    /// What the job does, for policy
    #[arg(long)]
    pub capability: Option<String>,
    /// The same key gives the same job
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Milliseconds until the job must be over
    #[arg(long, value_name = "MS")]
    pub deadline_ms: Option<i64>,
    /// Wait for the end and print the result
    #[arg(long)]
    pub wait: bool,
    /// How long to wait, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub timeout: u64,
    #[command(flatten)]
    pub server: Server,
}

#[derive(ClapArgs)]
pub struct List {
    #[arg(long)]
    pub state: Option<String>,
    #[arg(long)]
    pub topic: Option<String>,
    #[arg(long)]
    pub tenant: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Subcommand)]
pub enum Approval {
    /// List what waits for a person, newest first
    List {
        /// Also what has been decided, or went away
        #[arg(long)]
        all: bool,
        /// At most this many
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        server: Server,
    },
    /// Show what a job would do and who could get it
    Show {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// Let a job go on; whoever submitted it cannot
    Approve(Resolve),
    /// Do not let a job go on
    Reject(Resolve),
}

#[derive(ClapArgs)]
pub struct Resolve {
    pub id: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
    /// Decide only if this is still the request, as `approval show` names it
    #[arg(long, value_name = "HASH")]
    pub job_hash: Option<String>,
    /// Decide only if this is still the policy that asks
    #[arg(long, value_name = "SNAPSHOT")]
    pub policy_snapshot: Option<String>,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Subcommand)]
pub enum Dlq {
    /// List dead letters, newest first, or count them by reason
    List {
        #[command(flatten)]
        filter: LetterFilter,
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Only how many there are of each reason
        #[arg(long)]
        count: bool,
        #[command(flatten)]
        server: Server,
    },
    /// List packets that nobody could deal with, newest first
    Packets {
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        server: Server,
    },
    /// Show a dead letter
    Show {
        id: String,
        #[command(flatten)]
        server: Server,
    },
    /// Try a job again, or with --all those that the filters leave
    Retry {
        #[arg(required_unless_present = "all", conflicts_with_all = ["all", "reason_code", "topic", "limit"])]
        id: Option<String>,
        /// Many at once; results that are held back are left alone
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        filter: LetterFilter,
        /// Only jobs that died before this time, such as 2026-11-15T12:00:00Z
        #[arg(long, value_name = "TIME", requires = "all")]
        before: Option<String>,
        /// At most this many, and never more than 500
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        server: Server,
    },
    /// Take a job off the dead letters
    Delete {
        id: String,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(ClapArgs)]
pub struct LetterFilter {
    /// Only this reason code, such as `no_workers`
    #[arg(long, value_name = "CODE")]
    pub reason_code: Option<String>,
    #[arg(long)]
    pub topic: Option<String>,
}

#[derive(Subcommand)]
pub enum Worker {
    /// List workers, agents and workspaces
    List {
        /// Only this contract: cap, voicegateway or molecule
        #[arg(long)]
        contract: Option<String>,
        #[command(flatten)]
        server: Server,
    },
    /// Give a worker no new jobs; what it still has after the timeout goes elsewhere
    Drain {
        id: String,
        /// Seconds that its jobs may stay
        #[arg(long, default_value_t = 300, value_name = "SECONDS")]
        timeout: u32,
        #[command(flatten)]
        server: Server,
    },
    /// Put a worker back into service
    Undrain {
        id: String,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(Subcommand)]
pub enum Pool {
    /// List pools
    List {
        #[command(flatten)]
        server: Server,
    },
    /// Give no worker of a pool new jobs; what they still have after the timeout goes elsewhere
    Drain {
        name: String,
        /// Seconds that their jobs may stay
        #[arg(long, default_value_t = 300, value_name = "SECONDS")]
        timeout: u32,
        #[command(flatten)]
        server: Server,
    },
    /// Put a pool back into service
    Undrain {
        name: String,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(Subcommand)]
pub enum Policy {
    /// Read a safety.yaml as the server would, and remark on rules that never decide
    Check {
        file: PathBuf,
        /// Remarks count as errors
        #[arg(long)]
        strict: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the cases beside a safety.yaml: safety.test.yaml
    Test {
        file: PathBuf,
        /// The cases, if they are elsewhere
        #[arg(long, value_name = "FILE")]
        cases: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Judge the server's past jobs by another safety.yaml, and show what would change
    Simulate {
        file: PathBuf,
        /// How far back, such as 30m, 24h or 7d, or since which time
        #[arg(long, default_value = "24h", value_name = "WHEN")]
        since: String,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(Subcommand)]
pub enum Audit {
    /// List entries, newest first
    List(AuditList),
    /// Check every hash of a tenant's chain; exit code 1 if it does not hold
    Verify {
        /// Whose chain; that of the key unless told
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(ClapArgs)]
pub struct AuditList {
    /// Only entries of this job
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only this kind, such as safety.decision, safety.approval or system.auth
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// How far back, such as 30m, 24h or 7d, or since which time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only this tenant; an operator sees all unless told
    #[arg(long)]
    pub tenant: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Subcommand)]
pub enum Key {
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
        server: Server,
    },
    /// List keys
    List {
        #[command(flatten)]
        server: Server,
    },
    /// Revoke a key
    Revoke {
        id: String,
        #[command(flatten)]
        server: Server,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_of_one_job_takes_no_filters() {
        let parse = |words: &str| {
            Args::try_parse_from(["reveille", "dlq", "retry"].into_iter().chain(words.split(' ')))
        };
        for words in ["j", "j --json", "--all", "--all --reason-code timeout --topic job.a --limit 5"] {
            assert!(parse(words).is_ok(), "{words}");
        }
        for words in ["j --all", "j --reason-code timeout", "j --topic job.a", "j --limit 5", "--topic job.a"]
        {
            assert!(parse(words).is_err(), "{words} would ignore what it says");
        }
    }
}
