//! What can be scraped of the fleet: beats, the snapshot, who is restored, and mass silence.

use super::{CurrentCounts, MetricsPage};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use reveille_core::time::Millis;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const WRITE_SECONDS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];
/// Around the three TTLs.
const STALE_SECONDS: [f64; 11] = [1.0, 5.0, 10.0, 20.0, 30.0, 31.0, 45.0, 46.0, 60.0, 61.0, 120.0];

pub struct FleetMetrics {
    heartbeats: Counter,
    snapshot_age: Gauge<f64, AtomicU64>,
    snapshot_bytes: Gauge,
    snapshot_write: Histogram,
    hydrated: Gauge,
    unconfirmed: Gauge,
    stale_restored: Histogram,
    mass_expiry: Gauge,
    /// When the snapshot was last written, and when we started.
    snapshot_at: AtomicI64,
    started_at: AtomicI64,
}

impl FleetMetrics {
    pub(super) fn list(page: &mut MetricsPage) -> Self {
        let age = "Since the worker snapshot was last written here; -1 before the first";
        let stale = "How long restored members that were dead passed for alive";
        Self {
            heartbeats: page.list("heartbeats", "Beats of all contracts"),
            snapshot_age: page.list("worker_snapshot_age_seconds", age),
            snapshot_bytes: page.list("worker_snapshot_bytes", "Size of the last snapshot"),
            snapshot_write: page.list_as(
                "worker_snapshot_write_seconds",
                "Time to write a snapshot",
                Histogram::new(WRITE_SECONDS),
            ),
            hydrated: page.list("workers_hydrated", "Workers taken over from the snapshot at the start"),
            unconfirmed: page.list("workers_unconfirmed", "Restored members that were not heard yet"),
            stale_restored: page.list_as("stale_restored_seconds", stale, Histogram::new(STALE_SECONDS)),
            mass_expiry: page
                .list("mass_expiry", "1 while most of the fleet is silent and deaths are held back"),
            snapshot_at: AtomicI64::new(0),
            started_at: AtomicI64::new(0),
        }
    }

    /// What is counted only when somebody asks.
    pub(super) fn look(&self, moment: &CurrentCounts) {
        self.unconfirmed.set(moment.unconfirmed as i64);
        let age_ms = self.snapshot_age_ms(moment.now);
        self.snapshot_age.set(age_ms.map_or(-1.0, |age_ms| age_ms as f64 / 1000.0));
    }

    /// Since the snapshot was last written here, if ever.
    pub fn snapshot_age_ms(&self, now: Millis) -> Option<i64> {
        let written_at = self.snapshot_at.load(Ordering::Relaxed);
        (written_at != 0).then(|| now.since(Millis(written_at)))
    }

    pub fn beats(&self, count: u64) {
        self.heartbeats.inc_by(count);
    }

    pub fn started(&self, now: Millis) {
        self.started_at.store(now.0, Ordering::Relaxed);
    }

    pub fn hydrated(&self, workers: u64) {
        self.hydrated.set(workers as i64);
    }

    pub fn snapshot_written(&self, now: Millis, bytes: usize, seconds: f64) {
        self.snapshot_at.store(now.0, Ordering::Relaxed);
        self.snapshot_bytes.set(bytes as i64);
        self.snapshot_write.observe(seconds);
    }

    /// A restored member that was dead all along has been found out.
    pub fn stale_restored(&self, now: Millis) {
        let since_start = now.since(Millis(self.started_at.load(Ordering::Relaxed)));
        self.stale_restored.observe(since_start as f64 / 1000.0);
    }

    /// Says whether this is news.
    pub fn mass_expiry(&self, is_on: bool) -> bool {
        self.mass_expiry.set(i64::from(is_on)) != i64::from(is_on)
    }
}
