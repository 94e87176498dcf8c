//! What can be scraped of sagas. There are none yet: the names stand on the page with zeros, so that dashboards
//! of the reference find them. Whoever runs sagas takes these into hand.

use super::Page;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

const ROLLBACK_SECONDS: [f64; 7] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

pub(super) fn list(page: &mut Page) {
    for (name, help) in [
        ("saga_recorded", "Compensations that were put down for later"),
        ("saga_rollback_triggered", "Rollbacks that began"),
        ("saga_compensation_dispatched", "Compensations that were submitted as jobs"),
        ("saga_compensation_failed", "Compensations that could not be submitted"),
        ("saga_unmarshal_error", "Compensations that could not be read"),
    ] {
        page.list::<Counter>(name, help);
    }
    page.list::<Gauge>("saga_active", "Rollbacks under way");
    let duration = Histogram::new(ROLLBACK_SECONDS);
    page.list_as("saga_rollback_duration_seconds", "How long a rollback took", duration);
}
