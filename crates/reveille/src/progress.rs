//! What a command that takes long shows meanwhile: a line on standard error that is gone when it is done. Where standard
//! error is no terminal, nothing is shown.

use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::time::Duration;

/// How often the line moves.
const TICK: Duration = Duration::from_millis(120);

/// Shown until it is dropped.
pub struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Of something that takes as long as it takes.
    pub fn waiting(words: impl Into<Cow<'static, str>>) -> Self {
        let shown = Self(ProgressBar::new_spinner().with_style(style("{spinner} {elapsed} {msg}")));
        shown.say(words);
        shown.0.enable_steady_tick(TICK);
        shown
    }

    /// Of something that takes so many steps.
    pub fn of(steps: u64) -> Self {
        Self(ProgressBar::new(steps).with_style(style("{bar:30} {elapsed} {msg}")))
    }

    pub fn say(&self, words: impl Into<Cow<'static, str>>) {
        self.0.set_message(words);
    }

    pub fn step(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows that something is under way, for as long as it is.
pub fn during<T>(words: &'static str, work: impl FnOnce() -> T) -> T {
    let _shown = ProgressLine::waiting(words);
    work()
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
