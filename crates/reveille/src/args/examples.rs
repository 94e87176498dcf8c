//! An example for every command, shown under its help. A test reads each as a command line, so that none goes stale.

use clap::Command;

const EXAMPLES: &[(&str, &str)] = &[
    ("serve", "reveille serve --demo"),
    ("demo", "reveille demo"),
    ("top", "reveille top"),
    ("system", "reveille system"),
    ("job submit", "reveille job submit --topic job.echo '{\"hello\": \"you\"}' --wait"),
    ("job get", "reveille job get 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("job list", "reveille job list --state RUNNING"),
    ("job watch", "reveille job watch 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("job cancel", "reveille job cancel 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("job explain", "reveille job explain 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("workflow apply", "reveille workflow apply examples/workflows/deploy.yaml"),
    ("workflow lint", "reveille workflow lint examples/workflows/deploy.yaml"),
    ("workflow get", "reveille workflow get deploy"),
    ("workflow graph", "reveille workflow graph deploy --svg deploy.svg"),
    ("workflow dry-run", "reveille workflow dry-run deploy --input '{\"service\": \"web\"}'"),
    ("workflow list", "reveille workflow list"),
    ("workflow delete", "reveille workflow delete deploy"),
    ("run start", "reveille run start deploy --input '{\"service\": \"web\"}' --wait"),
    ("run get", "reveille run get 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("run list", "reveille run list --status running"),
    ("run watch", "reveille run watch 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("run timeline", "reveille run timeline 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("run cancel", "reveille run cancel 01a1e291-c60e-79fa-b696-386426b44f08 --reason 'wrong branch'"),
    ("run rerun", "reveille run rerun 01a1e291-c60e-79fa-b696-386426b44f08 --from deploy"),
    ("approval list", "reveille approval list"),
    ("approval show", "reveille approval show 01a1e291-c60e-79fa-b696-386426b44f08"),
    (
        "approval approve",
        "reveille approval approve 01a1e291-c60e-79fa-b696-386426b44f08 --reason 'looked at it'",
    ),
    (
        "approval reject",
        "reveille approval reject 01a1e291-c60e-79fa-b696-386426b44f08 --reason 'not on a Friday'",
    ),
    ("quarantine list", "reveille quarantine list"),
    ("quarantine show", "reveille quarantine show 01a1e291-c60e-79fa-b696-386426b44f08"),
    (
        "quarantine release",
        "reveille quarantine release 01a1e291-c60e-79fa-b696-386426b44f08 --reason 'a test key'",
    ),
    ("quarantine discard", "reveille quarantine discard 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("dlq list", "reveille dlq list --count"),
    ("dlq packets", "reveille dlq packets"),
    ("dlq show", "reveille dlq show 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("dlq retry", "reveille dlq retry --all --reason-code no_workers"),
    ("dlq delete", "reveille dlq delete 01a1e291-c60e-79fa-b696-386426b44f08"),
    ("worker list", "reveille worker list --contract cap"),
    ("worker get", "reveille worker get echo-1"),
    ("worker drain", "reveille worker drain echo-1 --timeout 60"),
    ("worker undrain", "reveille worker undrain echo-1"),
    ("pool list", "reveille pool list"),
    ("pool drain", "reveille pool drain gpu"),
    ("pool undrain", "reveille pool undrain gpu"),
    ("policy check", "reveille policy check safety.yaml --strict"),
    ("policy test", "reveille policy test safety.yaml"),
    ("policy simulate", "reveille policy simulate safety.yaml --since 24h"),
    ("policy ask", "reveille policy ask --topic job.deploy --risk-tag prod"),
    ("audit list", "reveille audit list --since 24h --type safety.decision"),
    ("audit verify", "reveille audit verify --against checkpoints.jsonl --public-key audit.pem"),
    ("audit checkpoint", "reveille audit checkpoint --all --out checkpoints.jsonl"),
    ("audit public-key", "reveille audit public-key"),
    ("key create", "reveille key create ci --scope read --scope write --tenant acme"),
    ("key list", "reveille key list"),
    ("worker-key pair", "reveille worker-key pair w1.pem"),
    ("worker-key register", "reveille worker-key register w1 --public-key w1.pem.pub --tenant acme"),
    (
        "worker-key rotate",
        "reveille worker-key rotate key_0a1b2c3d4e5f --public-key w1-next.pem.pub --overlap 24h",
    ),
    ("worker-key server", "reveille worker-key server"),
    ("key rotate", "reveille key rotate key_0a1b2c3d4e5f --overlap 24h"),
    ("key revoke", "reveille key revoke key_0a1b2c3d4e5f"),
    (
        "doctor",
        "reveille doctor --redis redis://db:6379 --nats nats://mq:4222 --postgres postgres://db/reveille",
    ),
    ("drill warm-start", "reveille drill warm-start --workers 1000"),
    ("completions", "reveille completions bash > /etc/bash_completion.d/reveille"),
    ("man", "reveille man /usr/local/share/man/man1"),
];

/// The command line with an example under the help of every command.
pub fn shown(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, example)| {
        let names: Vec<&str> = path.split(' ').collect();
        at(command, &names, example)
    })
}

fn at(command: Command, names: &[&str], example: &str) -> Command {
    match names {
        [] => command.after_help(format!("Example:\n  {example}")),
        [name, rest @ ..] => command.mut_subcommand(*name, |command| at(command, rest, example)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::{CommandFactory, Parser};

    /// As a shell would: quotes hold words together, and what is sent elsewhere is no word.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
        for c in example.split(" > ").next().unwrap_or_default().chars().chain([' ']) {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
                c => word.push(c),
            }
        }
        words
    }

    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let below: Vec<&Command> =
            command.get_subcommands().filter(|below| below.get_name() != "help").collect();
        for command in &below {
            leaves(command, format!("{path} {}", command.get_name()).trim(), found);
        }
        if below.is_empty() {
            found.push(path.to_owned());
        }
    }

    #[test]
    fn every_command_has_help_and_an_example_that_can_be_typed() {
        let mut commands = Vec::new();
        leaves(&Args::command(), "", &mut commands);
        let mut shown: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).collect();
        commands.sort();
        shown.sort_unstable();
        assert_eq!(commands, shown);
        for (path, example) in EXAMPLES {
            assert!(example.starts_with(&format!("reveille {path}")), "{example}");
            if let Err(error) = Args::try_parse_from(words(example)) {
                panic!("{example}: {error}");
            }
        }
        let help =
            super::shown(Args::command()).find_subcommand_mut("top").unwrap().render_help().to_string();
        assert!(help.contains("Example:\n  reveille top"), "{help}");
    }
}
