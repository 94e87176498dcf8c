//! The tasks of this repository, as `cargo xtask <task>`.
//!
//! A task is plain Rust that runs other programs; it needs nothing installed but the toolchain. One file per task.
//! Ctrl-C reaches the running program and the task alike, since they share the terminal's process group.

mod bench;
mod deny;
mod install;
mod packages;
mod process;
mod sbom;
mod sim;
mod test;
mod tidy;
mod wire;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  test [--only STEP[,STEP]]     install what is missing, then run everything that CI runs
  sim [--seed N | --seeds N]    the simulation, in release; --seed replays one run
  bench [--only NAMES] [--seconds N]
                                measure; writes bench-out/bench.md and bench.json
  sbom [--target TRIPLE] [--output FILE]
                                the server's bill of materials, CycloneDX
  tidy                          the rules of CONTRIBUTING.md that a machine can check
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<()> {
    // Every path in every task is relative to the root of the repository.
    std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let Some((task, rest)) = arguments.split_first() else {
        anyhow::bail!("which task?\n\n{HELP}");
    };
    match task.as_str() {
        "test" => test::run(rest),
        "sim" => sim::run(rest),
        "bench" => bench::run(rest),
        "sbom" => sbom::run(rest),
        "tidy" => tidy::run(),
        "help" | "-h" | "--help" => {
            print!("{HELP}\n{}", test::help());
            Ok(())
        }
        unknown => anyhow::bail!("no task `{unknown}`\n\n{HELP}"),
    }
}
