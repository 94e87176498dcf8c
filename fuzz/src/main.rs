//! Runs targets, each for some seconds, or one input once.
//!
//! What it prints is enough to have a failure again: the seed, and the file with the input.

use reveille_fuzz::{FuzzFailure, FuzzSignal, FuzzTarget, TARGETS, corpus, fuzz};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const SECONDS: u64 = 4;
const USAGE: &str = "reveille-fuzz [TARGET] [--seconds N] [--seed N] [--input FILE]";

struct Options {
    target: Option<&'static FuzzTarget>,
    seconds: u64,
    seed: Option<u64>,
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match wanted(std::env::args().skip(1)) {
        Ok(Options { target: Some(target), input: Some(path), .. }) => run_input(target, &path),
        Ok(Options { input: Some(_), .. }) => Err("an input is for one target: name it".to_owned()),
        Ok(options) => run_targets(&options),
        Err(problem) => Err(format!("{problem}\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn wanted(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { target: None, seconds: SECONDS, seed: None, input: None };
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            let known = TARGETS.iter().find(|target| target.name == word);
            options.target = Some(known.ok_or_else(|| format!("no target {word}; there are {}", names()))?);
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value:?}"));
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = Some(number()?),
            "--input" => options.input = Some(PathBuf::from(value)),
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok(options)
}

fn names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

fn run_input(target: &FuzzTarget, path: &std::path::Path) -> Result<(), String> {
    let input = corpus::input(path).map_err(|error| format!("{}: {error}", path.display()))?;
    (target.run)(&input, &mut FuzzSignal::default());
    println!("{}: {} holds", target.name, path.display());
    Ok(())
}

fn run_targets(options: &Options) -> Result<(), String> {
    let seed = options.seed.map_or_else(|| getrandom::u64().map_err(|error| error.to_string()), Ok)?;
    println!("seed {seed}, {} s a target", options.seconds);
    for target in TARGETS.iter().filter(|target| options.target.is_none_or(|only| only.name == target.name)) {
        match fuzz(target, seed, Duration::from_secs(options.seconds)) {
            Ok(tally) => {
                println!(
                    "{:<16}{:>9} inputs, {:>6} signals, the slowest {:>5} ms",
                    target.name,
                    tally.inputs,
                    tally.signals,
                    tally.slowest.as_millis()
                );
            }
            Err(FuzzFailure::Input { path }) => {
                let (name, path) = (target.name, path.display());
                return Err(format!(
                    "{name}: failed; seed {seed}; the input is in {path}\n\
                     again: cargo run -p reveille-fuzz -- {name} --input {path}"
                ));
            }
            Err(FuzzFailure::Files(error)) => return Err(format!("{}: {error}", target.name)),
        }
    }
    Ok(())
}
