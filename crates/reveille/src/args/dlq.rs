//! `reveille dlq`.

use super::ServerArgs;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Subcommand)]
pub enum DlqCommand {
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
        server: ServerArgs,
    },
    /// List packets that nobody could deal with, newest first
    Packets {
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show a dead letter
    Show {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
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
        server: ServerArgs,
    },
    /// Take a job off the dead letters
    Delete {
        id: String,
        #[command(flatten)]
        server: ServerArgs,
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

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use clap::Parser;

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
