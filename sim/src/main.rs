//! Runs seeds. `--seeds N` runs many and says what they met; `--seed N` runs one, aloud.

use reveille_sim::{Breakage, Coverage, SeedOutcome, Verbosity, run};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const THREADS: usize = 2;
const SEEDS: u64 = 1_000;

const USAGE: &str = "reveille-sim [--seeds N] [--from SEED] [--seed SEED] [--break RULE]";

#[derive(Default)]
struct Options {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    breakage: Option<Breakage>,
}

fn main() -> ExitCode {
    match wanted(std::env::args().skip(1)) {
        Ok(Options { seed: Some(seed), breakage, .. }) => run_one(seed, breakage),
        Ok(wanted) => run_many(&wanted),
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn wanted(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut wanted = Options::default();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value:?}"));
        match word.as_str() {
            "--seeds" => wanted.seeds = Some(number()?),
            "--from" => wanted.from = number()?,
            "--seed" => wanted.seed = Some(number()?),
            "--break" => wanted.breakage = Some(Breakage::parse(&value).ok_or_else(|| rules(&value))?),
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok(wanted)
}

fn rules(word: &str) -> String {
    let known = Breakage::ALL.iter().chain(&Breakage::SURVIVED);
    let known = known.map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    format!("--break {word:?} is none of {known}")
}

fn run_one(seed: u64, breakage: Option<Breakage>) -> ExitCode {
    let outcome = run(seed, breakage, Verbosity::Aloud);
    println!("trace {:016x}", outcome.trace_hash);
    print!("{}", outcome.coverage.table());
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("seed {seed} broke a promise: {}", failure.words);
            ExitCode::FAILURE
        }
    }
}

fn run_many(wanted: &Options) -> ExitCode {
    let started = Instant::now();
    let end = wanted.from + wanted.seeds.unwrap_or(SEEDS);
    let (next, broken) = (AtomicU64::new(wanted.from), AtomicBool::new(false));
    let (coverage, failed) = (Mutex::new(Coverage::default()), Mutex::new(None::<SeedOutcome>));
    let work = || {
        while !broken.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let outcome = run(seed, wanted.breakage, Verbosity::Silent);
            coverage.lock().unwrap_or_else(PoisonError::into_inner).merge(&outcome.coverage);
            if outcome.failure.is_some() {
                broken.store(true, Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let coverage = coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{}", coverage.table());
    println!("wall time {:.1} s", started.elapsed().as_secs_f64());
    if let Some(outcome) = failed {
        return tell(&outcome);
    }
    let missing = coverage.missing();
    for words in &missing {
        println!("these runs prove too little: {words}");
    }
    if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(outcome: &SeedOutcome) -> ExitCode {
    if let Some(failure) = &outcome.failure {
        for line in &failure.last_lines {
            println!("{line}");
        }
        println!("seed {} broke a promise: {}", outcome.seed, failure.words);
        println!("replay: cargo xtask sim --seed {}", outcome.seed);
    }
    ExitCode::FAILURE
}
