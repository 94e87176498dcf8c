//! How many of the last minute's requests went wrong because the workspace is broken.
//!
//! Only what is the workspace's own fault counts as an error: 5xx, timeouts, connections that failed.
//! A 4xx is a request that was answered well. Counted per second, so that a minute of any traffic takes
//! the same room.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::workspace::payload::shortened;

const WINDOW_S: u64 = 60;
const SAMPLE_LEN_MAX: usize = 500;

/// Where an agent records how its requests end. Clones record into the same window.
#[derive(Clone)]
pub struct ErrorTracker {
    started: Instant,
    window: Arc<Mutex<ErrorWindow>>,
}

/// What went wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFault {
    /// It was answered with this HTTP status.
    Status(u16),
    /// It was not answered: a timeout, a connection error.
    Text(String),
}

impl From<u16> for RequestFault {
    fn from(status: u16) -> Self {
        Self::Status(status)
    }
}

impl From<&str> for RequestFault {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RequestFault {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl ErrorTracker {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, window: Arc::default() }
    }

    /// A request went well.
    pub fn ok(&self) {
        self.window().ok(self.second());
    }

    /// A request went wrong: with an HTTP status, or with words if there was none.
    pub fn error(&self, fault: impl Into<RequestFault>) {
        self.window().error(self.second(), &fault.into());
    }

    /// The share of errors from 0 to 1, the latest of them, and for how many seconds this has run.
    pub(super) fn report(&self) -> ErrorReport {
        let second = self.second();
        let window = self.window();
        ErrorReport {
            error_rate: window.rate(second),
            sample_error: window.sample(second).unwrap_or_default().to_owned(),
            uptime_seconds: second,
        }
    }

    fn second(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    fn window(&self) -> MutexGuard<'_, ErrorWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ErrorReport {
    pub error_rate: f64,
    pub sample_error: String,
    pub uptime_seconds: u64,
}

/// Pure: seconds since the start are handed in.
#[derive(Debug)]
struct ErrorWindow {
    seconds: [ErrorCount; WINDOW_S as usize],
    latest: Option<(u64, String)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ErrorCount {
    second: u64,
    requests: u64,
    errors: u64,
}

impl Default for ErrorWindow {
    fn default() -> Self {
        Self { seconds: [ErrorCount::default(); WINDOW_S as usize], latest: None }
    }
}

impl ErrorWindow {
    fn ok(&mut self, second: u64) {
        self.count(second).requests += 1;
    }

    fn error(&mut self, second: u64, fault: &RequestFault) {
        let text = match fault {
            RequestFault::Status(status) if *status < 500 => return self.ok(second),
            RequestFault::Status(status) => format!("HTTP {status}"),
            RequestFault::Text(text) => shortened(text, SAMPLE_LEN_MAX),
        };
        let count = self.count(second);
        count.requests += 1;
        count.errors += 1;
        self.latest = Some((second, text));
    }

    fn rate(&self, now: u64) -> f64 {
        let within = self.seconds.iter().filter(|count| is_within(count.second, now));
        let (requests, errors) = within
            .fold((0, 0), |(requests, errors), count| (requests + count.requests, errors + count.errors));
        if requests == 0 { 0.0 } else { errors as f64 / requests as f64 }
    }

    fn sample(&self, now: u64) -> Option<&str> {
        self.latest.as_ref().filter(|(second, _)| is_within(*second, now)).map(|(_, text)| text.as_str())
    }

    /// The count of this second, which takes over the place of the one a minute ago.
    fn count(&mut self, second: u64) -> &mut ErrorCount {
        let count = &mut self.seconds[(second % WINDOW_S) as usize];
        if count.second != second {
            *count = ErrorCount { second, ..ErrorCount::default() };
        }
        count
    }
}

fn is_within(second: u64, now: u64) -> bool {
    now.saturating_sub(second) < WINDOW_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(window: &ErrorWindow, now: u64, rate: f64, sample: Option<&str>) {
        assert!((window.rate(now) - rate).abs() < 1e-9, "rate {}", window.rate(now));
        assert_eq!(window.sample(now), sample);
    }

    #[test]
    fn nothing_happened_is_no_error() {
        check(&ErrorWindow::default(), 0, 0.0, None);
        check(&ErrorWindow::default(), 1_000_000, 0.0, None);
    }

    #[test]
    fn only_what_is_the_workspaces_fault_is_an_error() {
        let mut window = ErrorWindow::default();
        for status in [200, 400, 403, 404, 429, 499] {
            window.error(5, &RequestFault::Status(status));
        }
        check(&window, 5, 0.0, None);
        window.error(6, &RequestFault::Status(503));
        check(&window, 6, 1.0 / 7.0, Some("HTTP 503"));
        window.error(7, &"read timeout".into());
        check(&window, 7, 2.0 / 8.0, Some("read timeout"));
    }

    #[test]
    fn an_error_and_its_sample_leave_the_window_together() {
        let mut window = ErrorWindow::default();
        window.error(10, &"connection refused".into());
        window.ok(30);
        check(&window, 69, 0.5, Some("connection refused"));
        check(&window, 70, 0.0, None);
        window.ok(70);
        check(&window, 70, 0.0, None);
    }

    #[test]
    fn the_latest_error_is_the_sample() {
        let mut window = ErrorWindow::default();
        window.error(1, &"first".into());
        window.error(1, &"x".repeat(2000).into());
        assert_eq!(window.sample(1).unwrap().chars().count(), SAMPLE_LEN_MAX);
        window.error(2, &500.into());
        window.ok(3);
        check(&window, 3, 3.0 / 4.0, Some("HTTP 500"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tracker_reports_on_the_last_minute() {
        let tracker = ErrorTracker::new(Instant::now());
        tracker.ok();
        tracker.clone().error("boom");
        let report = tracker.report();
        assert_eq!((report.error_rate, report.sample_error.as_str()), (0.5, "boom"));
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        let report = tracker.report();
        assert_eq!(report, ErrorReport { error_rate: 0.0, sample_error: String::new(), uptime_seconds: 61 });
    }
}
