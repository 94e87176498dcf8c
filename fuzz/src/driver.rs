//! Runs one target: its corpus first, then inputs made of it, until the time is over.
//!
//! Only the end depends on the clock. The inputs follow from the seed and the corpus, so the same seed finds the same
//! failure again. The input that is being run is in a file while it runs: what ends the process without a word (a stack
//! that overflows, a machine out of memory) leaves it there.

use crate::corpus;
use crate::mutator::mutate;
use crate::rng::FuzzRng;
use crate::signal::FuzzSignal;
use crate::targets::FuzzTarget;
use crate::watchdog::Watchdog;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Inputs that are kept because they did something new.
const KEPT_MAX: usize = 4096;
/// The longest input that is made.
const INPUT_LEN_MAX: usize = 4 * 1024;

/// What a run without failure did.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTally {
    pub inputs: u64,
    /// Different signals: how much the target was made to do.
    pub signals: usize,
    /// What the slowest input took. It is kept beside the failing ones: it may be the beginning of an attack.
    pub slowest: Duration,
}

#[derive(Debug)]
pub enum FuzzFailure {
    /// An assertion did not hold. The input is in the file.
    Input {
        path: PathBuf,
    },
    Files(io::Error),
}

impl From<io::Error> for FuzzFailure {
    fn from(error: io::Error) -> Self {
        Self::Files(error)
    }
}

pub fn fuzz(target: &FuzzTarget, seed: u64, duration: Duration) -> Result<FuzzTally, FuzzFailure> {
    let mut run = FuzzRun::new(target)?;
    for input in corpus::read(target.name)? {
        run.one(input)?;
    }
    let mut rng = FuzzRng::new(seed);
    let end = Instant::now() + duration;
    while Instant::now() < end {
        let from = &run.kept[rng.below(run.kept.len())];
        let other = &run.kept[rng.below(run.kept.len())];
        let input = mutate(&mut rng, from, other, target.dictionary, INPUT_LEN_MAX);
        run.one(input)?;
    }
    fs::remove_file(&run.running_path)?;
    fs::write(run.running_path.with_extension("slowest"), &run.slowest.1)?;
    Ok(FuzzTally { inputs: run.inputs, signals: run.signals.len(), slowest: run.slowest.0 })
}

struct FuzzRun<'t> {
    target: &'t FuzzTarget,
    watchdog: Watchdog,
    running: File,
    running_path: PathBuf,
    inputs: u64,
    signals: HashSet<u64>,
    kept: Vec<Vec<u8>>,
    slowest: (Duration, Vec<u8>),
}

impl<'t> FuzzRun<'t> {
    fn new(target: &'t FuzzTarget) -> io::Result<Self> {
        let running_path = corpus::found()?.join(format!("{}.running", target.name));
        Ok(Self {
            target,
            watchdog: Watchdog::start(target.name),
            running: File::create(&running_path)?,
            running_path,
            inputs: 0,
            signals: HashSet::new(),
            // There is always one to begin with.
            kept: vec![Vec::new()],
            slowest: (Duration::ZERO, Vec::new()),
        })
    }

    fn one(&mut self, input: Vec<u8>) -> Result<(), FuzzFailure> {
        self.running.write_all_at(&input, 0)?;
        self.running.set_len(input.len() as u64)?;
        self.inputs += 1;
        let begun = Instant::now();
        self.watchdog.input_begins();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut signal = FuzzSignal::default();
            (self.target.run)(&input, &mut signal);
            signal.finish()
        }));
        self.watchdog.input_ends();
        let Ok(signal) = outcome else { return Err(self.keep_failing(&input)) };
        if begun.elapsed() > self.slowest.0 {
            self.slowest = (begun.elapsed(), input.clone());
        }
        if self.signals.insert(signal) && self.kept.len() < KEPT_MAX {
            self.kept.push(input);
        }
        Ok(())
    }

    fn keep_failing(&self, input: &[u8]) -> FuzzFailure {
        let path = self.running_path.with_extension("failed");
        match fs::write(&path, input) {
            Ok(()) => FuzzFailure::Input { path },
            Err(error) => FuzzFailure::Files(error),
        }
    }
}
