//! Everything that must hold before a change goes in, cheapest first. CI runs exactly this.
//!
//! A step that cannot run has failed: nothing is skipped because a server or a package is missing. The one exception
//! needs a database that not every machine can fetch; it says so, and is not counted as passed. The counts of
//! passed and failed tests are in the runners' own lines; this task adds only which step took how long.

use crate::process::{built, cargo, cargo_for_all, check, command};
use crate::{deny, install, tidy, wire};
use anyhow::bail;
use std::fmt::{self, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

const SIMULATED_SEEDS: u32 = 1000;
/// For each target.
const FUZZED_SECONDS: u32 = 4;
/// Says how soon things happen, so nothing else runs beside it.
const MEASURED: &str = "tests/stock/test_warm_start.py";
/// Where clients that others wrote connect: they get in however the server is guarded.
const STOCK_CLIENTS: [&str; 11] = [
    "tests/stock/test_agent.py",
    "tests/stock/test_console_bundle.py",
    "tests/stock/test_governance.py",
    "tests/stock/test_kernel.py",
    "tests/stock/test_molecule.py",
    "tests/stock/test_redis_users.py",
    "tests/stock/test_run_worker.py",
    "tests/stock/test_rust_producers.py",
    "tests/stock/test_sagas.py",
    "tests/stock/test_tracing.py",
    "tests/stock/test_voicegateway.py",
];
/// Of `tests/stock/mode.py`, beside the open doors that all of them are run at.
const GUARDED_MODES: [&str; 2] = ["keys", "tls"];

struct TestStep {
    name: &'static str,
    what: &'static str,
    run: fn() -> anyhow::Result<()>,
}

const STEPS: [TestStep; 15] = [
    TestStep { name: "install", what: "system and Python packages that are missing", run: install::run },
    TestStep { name: "fmt", what: "rustfmt has nothing to change", run: format },
    TestStep { name: "tidy", what: "the rules of CONTRIBUTING.md that a machine can check", run: tidy::run },
    TestStep { name: "deny", what: "licences, sources and versions of dependencies", run: deny::run },
    TestStep {
        name: "advisories",
        what: "what is known to be wrong with dependencies",
        run: deny::advisories,
    },
    TestStep { name: "clippy", what: "no warnings", run: clippy },
    TestStep { name: "unit", what: "unit tests and the suites over every adapter", run: unit },
    TestStep { name: "build", what: "the server, the simulation and the examples", run: build },
    TestStep { name: "fuzz", what: "what strangers send, made up for a minute", run: fuzz },
    TestStep { name: "sim", what: "the simulation, many seeds", run: simulate },
    TestStep { name: "wire", what: "packets and signatures against the SDK's own", run: wire::run },
    TestStep { name: "stock", what: "stock SDK workers on the server", run: stock },
    TestStep { name: "client", what: "the Python client, and one that a generator makes", run: client },
    TestStep { name: "hostile", what: "callers who ask for all that a key allows", run: hostile },
    TestStep { name: "chaos", what: "killed servers and workers, full disks, damaged files", run: chaos },
];

/// Why a step says nothing about the change.
#[derive(Debug)]
pub struct NotRun(pub &'static str);

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not run: {}", self.0)
    }
}

impl std::error::Error for NotRun {}

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let steps = select(arguments)?;
    let mut took = Vec::new();
    for step in steps {
        eprintln!("\n=== {}: {}", step.name, step.what);
        let started = Instant::now();
        let outcome = (step.run)();
        // Whoever asks for a step by its name wants it run.
        let is_excused = arguments.is_empty() && outcome.as_ref().is_err_and(anyhow::Error::is::<NotRun>);
        let word = match &outcome {
            Ok(()) => "ok".to_owned(),
            Err(error) if is_excused => error.to_string(),
            Err(_) => "FAILED".to_owned(),
        };
        took.push((step.name, started.elapsed(), word));
        if let Err(error) = outcome
            && !is_excused
        {
            eprint!("{}", summary(&took));
            bail!(
                "step `{0}` failed: {error:#}\n       again, only this: cargo xtask test --only {0}",
                step.name
            );
        }
    }
    eprint!("{}", summary(&took));
    Ok(())
}

pub fn help() -> String {
    let mut text = "steps of `test`:\n\n".to_owned();
    for step in &STEPS {
        let _ = writeln!(text, "  {:<12}{}", step.name, step.what);
    }
    text
}

fn select(arguments: &[String]) -> anyhow::Result<Vec<&'static TestStep>> {
    let names = match arguments {
        [] => return Ok(STEPS.iter().collect()),
        [flag, names] if flag == "--only" => names.as_str(),
        [argument] if argument.starts_with("--only=") => &argument["--only=".len()..],
        _ => bail!("expected `--only STEP[,STEP]` or nothing\n\n{}", help()),
    };
    let wanted: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = wanted.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        bail!("no step `{unknown}`\n\n{}", help());
    }
    // In their own order, whatever the order of asking.
    Ok(STEPS.iter().filter(|step| wanted.contains(&step.name)).collect())
}

fn summary(took: &[(&str, Duration, String)]) -> String {
    let mut text = "\n".to_owned();
    for (name, duration, outcome) in took {
        let _ = writeln!(text, "  {name:<12}{:>8.1} s  {outcome}", duration.as_secs_f64());
    }
    text
}

fn format() -> anyhow::Result<()> {
    check(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> anyhow::Result<()> {
    check(cargo_for_all("clippy").args(["--all-targets", "--", "-D", "warnings"]))
}

fn unit() -> anyhow::Result<()> {
    check(&mut cargo_for_all("test"))
}

/// All that there is, as the unit tests have it: of fewer packages, or without what only tests need, nearly
/// everything would be built again, with features of its own.
fn build() -> anyhow::Result<()> {
    check(cargo_for_all("build").arg("--all-targets"))
}

// Building is nothing to do after the build step; alone, it keeps these from testing old binaries.

fn simulate() -> anyhow::Result<()> {
    build()?;
    check(command(&built("reveille-sim").to_string_lossy()).args(["--seeds", &SIMULATED_SEEDS.to_string()]))
}

fn fuzz() -> anyhow::Result<()> {
    build()?;
    check(command(&built("reveille-fuzz").to_string_lossy()).args(["--seconds", &FUZZED_SECONDS.to_string()]))
}

fn stock() -> anyhow::Result<()> {
    build()?;
    let parallel = ["-q", "-n", "3", "--dist", "loadfile"];
    check(pytest(&["tests/stock", "--ignore", MEASURED])?.args(parallel))?;
    for mode in GUARDED_MODES {
        eprintln!("stock clients where the server asks for {mode}");
        check(pytest(&STOCK_CLIENTS)?.args(parallel).env("REVEILLE_STOCK", mode))?;
    }
    check(&mut pytest(&[MEASURED, "-q"])?)
}

fn client() -> anyhow::Result<()> {
    build()?;
    check(pytest(&["clients/python/tests", "-q"])?.args(["-n", "3", "--dist", "loadfile"]))
}

fn pytest(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut python = install::venv_python()?;
    python.args(["-m", "pytest"]).args(arguments).env("REVEILLE_BIN", built("reveille"));
    Ok(python)
}

/// One at a time: each looks at how others fare beside it.
fn hostile() -> anyhow::Result<()> {
    build()?;
    check(&mut pytest(&["tests/hostile", "-q", "-rP"])?)
}

fn chaos() -> anyhow::Result<()> {
    build()?;
    // Most of its time is waiting for what was killed or stopped.
    let parallel = ["-n", "3", "--dist", "worksteal"];
    check(pytest(&["tests/chaos", "-q"])?.args(parallel).env("REVEILLE_ECHO_BIN", built("examples/echo")))
}
