//! The states of runs and of their steps, and how each may follow another. Nothing else changes a state. A test
//! prints them to `docs/workflows.md`.

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
    use std::fmt::Write;

    const FIRST: &str = "<!-- printed by core::flow::table -->\n";
    const LAST: &str = "<!-- up to here -->\n";

    /// A line per state, with what may come after it; ends are bold.
    fn table(states: &[(&str, bool)], follows: impl Fn(usize, usize) -> bool) -> String {
        let mut table = String::from("| |");
        for (state, _) in states {
            write!(table, " {state} |").unwrap();
        }
        table.push_str("\n|---|");
        table.push_str(&"---|".repeat(states.len()));
        table.push('\n');
        for (from, (state, is_end)) in states.iter().enumerate() {
            let mark = if *is_end { "**" } else { "" };
            write!(table, "| {mark}{state}{mark} |").unwrap();
            for to in 0..states.len() {
                table.push_str(if follows(from, to) { " yes |" } else { " |" });
            }
            table.push('\n');
        }
        table
    }

    /// The page is checked in; a change of the tables shows up as a change of the page.
    #[test]
    fn the_page_shows_the_tables() {
        let runs: Vec<_> = RunState::ALL.iter().map(|state| (state.as_str(), state.is_terminal())).collect();
        let steps: Vec<_> = StepState::ALL.iter().map(|state| (state.as_str(), state.is_settled())).collect();
        let tables = format!(
            "A run:\n\n{}\nA step:\n\n{}",
            table(&runs, |from, to| RunState::ALL[from].may_become(RunState::ALL[to])),
            table(&steps, |from, to| StepState::ALL[from].may_become(StepState::ALL[to])),
        );
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workflows.md");
        let page = std::fs::read_to_string(path).unwrap();
        let first = page.find(FIRST).expect("the page has a place for them") + FIRST.len();
        let last = page.find(LAST).expect("the place has an end");
        if std::env::var_os("REVEILLE_BLESS").is_some() {
            std::fs::write(path, format!("{}{tables}{}", &page[..first], &page[last..])).unwrap();
            return;
        }
        let is_same = page[first..last] == tables;
        assert!(is_same, "docs/workflows.md is out of date; run the tests with REVEILLE_BLESS=1");
    }

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
