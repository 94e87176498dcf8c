//! The states of runs and of their steps, and how each may follow another. Nothing else changes a state.

use crate::words::words;

words! {
    /// Where a run stands.
    RunState {
        Pending = "pending",
        Running = "running",
        /// Nothing of it is at work: it waits for a time, a person or an output check.
        Waiting = "waiting",
        Succeeded = "succeeded",
        Failed = "failed",
        Denied = "denied",
        Cancelled = "cancelled",
        TimedOut = "timed_out",
    }
}

words! {
    /// Where a step of a run stands.
    StepState {
        Pending = "pending",
        Running = "running",
        Waiting = "waiting",
        Succeeded = "succeeded",
        Failed = "failed",
        Denied = "denied",
        Cancelled = "cancelled",
        TimedOut = "timed_out",
        /// It was never to run: its condition was false, or what it depends on did not succeed.
        Skipped = "skipped",
    }
}

impl RunState {
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Running | Self::Waiting)
    }

    /// A run begins, works and waits by turns, and ends once.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => next != Self::Pending,
            Self::Running | Self::Waiting => next != Self::Pending && next != self,
            _ => false,
        }
    }
}

impl StepState {
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Pending | Self::Running | Self::Waiting)
    }

    /// Whether somebody has to act on it: a handler, the parallel step above, or the run, which fails.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Denied | Self::TimedOut)
    }

    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => next != Self::Pending,
            Self::Running | Self::Waiting => !matches!(next, Self::Pending | Self::Skipped) && next != self,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_an_end() {
        for state in RunState::ALL.iter().filter(|state| state.is_terminal()) {
            assert!(RunState::ALL.iter().all(|next| !state.may_become(*next)), "{state}");
        }
        for state in StepState::ALL.iter().filter(|state| state.is_settled()) {
            assert!(StepState::ALL.iter().all(|next| !state.may_become(*next)), "{state}");
        }
    }
}
