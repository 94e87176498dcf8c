//! What an evaluation may cost, in steps and in bytes.
//!
//! Conditions, templates, schemas and patterns are written by somebody else, and a short text can ask for a
//! great deal. So whatever evaluates one is handed a [`Meter`] and charges it as it goes: a step for each
//! thing it looks at, bytes for each thing it makes. When the limit is reached the evaluation ends there,
//! and the meter remembers it. Nothing depends on a clock, so the same text over the same values costs the
//! same on every machine and in the simulation.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much there is to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostLimit {
    /// Looks at one thing: a part of an expression, an element of a list, a part of a schema. About 50 ns.
    pub steps: u64,
    /// Everything that is made on the way, also what is thrown away again.
    pub bytes: u64,
}

impl CostLimit {
    /// One verdict: all conditions of all rules together.
    pub const VERDICT: Self = Self { steps: 50_000, bytes: 4 << 20 };
    /// All that one event makes a run decide.
    pub const RUN_EVENT: Self = Self { steps: 1_000_000, bytes: 64 << 20 };
    /// The same, where whoever waits for the answer keeps a thread that serves everybody.
    pub const RUN_EVENT_INLINE: Self = Self { steps: 20_000, bytes: 4 << 20 };
    /// All that a schema asks in one place.
    pub const SCHEMA: Self = Self { steps: 20_000, bytes: 4 << 20 };
    /// Compiling the patterns of one policy, or of one file of scanners.
    pub const PATTERNS: Self = Self { steps: 100_000, bytes: 32 << 20 };
    /// A replay over the past: all its verdicts together.
    pub const REPLAY: Self = Self { steps: 20_000_000, bytes: 1 << 30 };
}

/// There was more to do than was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooExpensive {
    #[error("too expensive: it takes more than {0} steps")]
    Steps(u64),
    #[error("too expensive: it makes more than {0} bytes")]
    Bytes(u64),
    #[error("given up: nobody waits for it any more")]
    Abandoned,
}

/// How many steps pass between two looks at whether anybody still waits.
const LOOK_EVERY_STEPS: u64 = 1024;

/// Counts what one evaluation costs.
#[derive(Debug)]
pub struct Meter {
    limit: CostLimit,
    steps: Cell<u64>,
    bytes: Cell<u64>,
    exceeded: Cell<Option<TooExpensive>>,
    abandoned: Option<Arc<AtomicBool>>,
}

impl Meter {
    pub fn new(limit: CostLimit) -> Self {
        let (steps, bytes) = (Cell::new(0), Cell::new(0));
        Self { limit, steps, bytes, exceeded: Cell::new(None), abandoned: None }
    }

    /// One that also ends the evaluation once somebody sets `abandoned`.
    pub fn until(limit: CostLimit, abandoned: Arc<AtomicBool>) -> Self {
        Self { abandoned: Some(abandoned), ..Self::new(limit) }
    }

    /// Charges steps. Once anything was refused, everything is.
    #[inline]
    pub fn step(&self, steps: u64) -> Result<(), TooExpensive> {
        let before = self.steps.get();
        let after = before.saturating_add(steps);
        self.steps.set(after);
        if after > self.limit.steps {
            return Err(self.exceed(TooExpensive::Steps(self.limit.steps)));
        }
        if before / LOOK_EVERY_STEPS != after / LOOK_EVERY_STEPS {
            self.look()?;
        }
        Ok(())
    }

    /// Charges bytes, before they are made.
    pub fn hold(&self, bytes: usize) -> Result<(), TooExpensive> {
        let after = self.bytes.get().saturating_add(bytes as u64);
        self.bytes.set(after);
        if after > self.limit.bytes {
            return Err(self.exceed(TooExpensive::Bytes(self.limit.bytes)));
        }
        Ok(())
    }

    /// Charges what another meter has counted.
    pub fn add(&self, other: &Self) -> Result<(), TooExpensive> {
        self.step(other.steps.get())?;
        self.hold(usize::try_from(other.bytes.get()).unwrap_or(usize::MAX))
    }

    /// What was refused first, if anything was.
    pub fn exceeded(&self) -> Option<TooExpensive> {
        self.exceeded.get()
    }

    /// What there still is to spend.
    pub fn left(&self) -> CostLimit {
        let steps = self.limit.steps.saturating_sub(self.steps.get());
        CostLimit { steps, bytes: self.limit.bytes.saturating_sub(self.bytes.get()) }
    }

    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    fn look(&self) -> Result<(), TooExpensive> {
        match &self.abandoned {
            Some(abandoned) if abandoned.load(Ordering::Relaxed) => Err(self.exceed(TooExpensive::Abandoned)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn exceed(&self, what: TooExpensive) -> TooExpensive {
        let first = self.exceeded.get().unwrap_or(what);
        self.exceeded.set(Some(first));
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: CostLimit = CostLimit { steps: 3000, bytes: 10 };

    #[test]
    fn a_meter_refuses_what_is_over_its_limit_and_remembers_what_was_first() {
        let meter = Meter::new(LIMIT);
        assert_eq!(meter.step(3000), Ok(()));
        assert_eq!(meter.hold(10), Ok(()));
        assert_eq!(meter.exceeded(), None);
        assert_eq!(meter.hold(1), Err(TooExpensive::Bytes(10)));
        assert_eq!(meter.step(1), Err(TooExpensive::Bytes(10)), "the first refusal is the reason");
        assert_eq!(meter.exceeded(), Some(TooExpensive::Bytes(10)));
        assert_eq!(Meter::new(LIMIT).step(u64::MAX), Err(TooExpensive::Steps(3000)), "and nothing overflows");
    }

    #[test]
    fn an_evaluation_that_nobody_waits_for_ends_within_a_thousand_steps() {
        let abandoned = Arc::new(AtomicBool::new(false));
        let meter = Meter::until(LIMIT, abandoned.clone());
        assert_eq!(meter.step(1000), Ok(()));
        abandoned.store(true, Ordering::Relaxed);
        let refused = (0..LOOK_EVERY_STEPS).find_map(|_| meter.step(1).err());
        assert_eq!(refused, Some(TooExpensive::Abandoned));
    }
}
