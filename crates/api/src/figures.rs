//! The server's own figures, read off its metrics page, so that whoever shows them and whoever scrapes them see the same.

use std::collections::BTreeMap;

/// What the counters say at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub received: f64,
    pub succeeded: f64,
    /// Jobs that ended in any other way.
    pub failed: f64,
    pub live: f64,
    /// Seconds; below zero before this server has written one.
    pub snapshot_age: f64,
    /// Dispatches that took at most so many milliseconds.
    latency: BTreeMap<u64, f64>,
}

impl Figures {
    pub fn read(page: &str) -> Self {
        let mut figures = Self { snapshot_age: -1.0, ..Self::default() };
        for line in page.lines().filter_map(|line| line.strip_prefix("cordum_scheduler_")) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            match name {
                "jobs_received_total" => figures.received += value,
                "jobs_completed_total" if label(labels, "status") == Some("SUCCEEDED") => {
                    figures.succeeded += value;
                }
                "jobs_completed_total" => figures.failed += value,
                "live_jobs" => figures.live = value,
                "worker_snapshot_age_seconds" => figures.snapshot_age = value,
                "dispatch_latency_seconds_bucket" => {
                    if let Some(le) = label(labels, "le").and_then(|le| le.parse::<f64>().ok()) {
                        let ms = if le.is_finite() { (le * 1000.0) as u64 } else { u64::MAX };
                        *figures.latency.entry(ms).or_default() += value;
                    }
                }
                _ => {}
            }
        }
        figures
    }

    /// Within how many milliseconds all but one of a hundred dispatches since `before` were made; nothing if there was
    /// none.
    pub fn p99_since(&self, before: &Self) -> Option<u64> {
        let since = |ms: &u64, count: &f64| count - before.latency.get(ms).copied().unwrap_or(0.0);
        let all =
            self.latency.last_key_value().map(|(ms, count)| since(ms, count)).filter(|all| *all > 0.0)?;
        self.latency.iter().find(|(ms, count)| since(ms, count) >= 0.99 * all).map(|(ms, _)| *ms)
    }
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let from = labels.find(&format!("{name}=\""))? + name.len() + 2;
    labels[from..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_off_the_metrics_page() {
        let page = |done: u32| {
            let bucket = "cordum_scheduler_dispatch_latency_seconds_bucket";
            format!(
                "# HELP x\ncordum_scheduler_jobs_received_total{{topic=\"a\"}} 7\n\
                 cordum_scheduler_jobs_received_total{{topic=\"b\"}} 3\ncordum_scheduler_live_jobs 4\n\
                 cordum_scheduler_jobs_completed_total{{status=\"SUCCEEDED\",topic=\"a\"}} {done}\n\
                 cordum_scheduler_jobs_completed_total{{status=\"FAILED\",topic=\"SUCCEEDED\"}} 2\n\
                 {bucket}{{le=\"0.005\",topic=\"a\"}} {}\n{bucket}{{le=\"+Inf\",topic=\"a\"}} {done}\n",
                done - 1
            )
        };
        let (before, after) = (Figures::read(&page(1)), Figures::read(&page(201)));
        assert_eq!((after.received, after.succeeded, after.failed, after.live), (10.0, 201.0, 2.0, 4.0));
        assert_eq!(after.p99_since(&before), Some(5));
        assert_eq!(after.p99_since(&after), None);
    }
}
