//! Every metric of the reference is on the page, under its name, and the page is in the docs.

use super::page::{read, scraped};
use std::fmt::Write;

/// What the reference lists: its name, ours (a duration says its unit), what it is, and its labels.
const REFERENCE: [(&str, &str, &str, &[&str]); 21] = [
    ("jobs_received", "jobs_received", "counter", &["topic"]),
    ("jobs_dispatched", "jobs_dispatched", "counter", &["topic"]),
    ("jobs_completed", "jobs_completed", "counter", &["topic", "status"]),
    ("safety_denied", "safety_denied", "counter", &["topic"]),
    ("safety_unavailable", "safety_unavailable", "counter", &["topic"]),
    ("dispatch_latency", "dispatch_latency_seconds", "histogram", &["topic"]),
    ("job_lock_wait", "job_lock_wait_seconds", "histogram", &[]),
    ("active_goroutines", "active_goroutines", "gauge", &[]),
    ("stale_jobs", "stale_jobs", "gauge", &["state"]),
    ("orphan_replayed", "orphan_replayed", "counter", &["topic"]),
    ("output_policy_checked", "output_policy_checked", "counter", &["topic"]),
    ("output_policy_quarantined", "output_policy_quarantined", "counter", &["topic"]),
    ("output_policy_skipped", "output_policy_skipped", "counter", &["topic"]),
    ("output_check_latency", "output_check_latency_seconds", "histogram", &["topic", "phase"]),
    ("saga_recorded", "saga_recorded", "counter", &[]),
    ("saga_rollback_triggered", "saga_rollback_triggered", "counter", &[]),
    ("saga_compensation_dispatched", "saga_compensation_dispatched", "counter", &[]),
    ("saga_compensation_failed", "saga_compensation_failed", "counter", &[]),
    ("saga_rollback_duration", "saga_rollback_duration_seconds", "histogram", &[]),
    ("saga_active", "saga_active", "gauge", &[]),
    ("saga_unmarshal_error", "saga_unmarshal_error", "counter", &[]),
];

#[tokio::test(start_paused = true)]
async fn every_metric_of_the_reference_is_on_the_page() {
    let page = scraped().await;
    let metrics = read(&page);
    for (reference, name, kind, labels) in REFERENCE {
        let told = metrics.get(name).unwrap_or_else(|| panic!("{reference} is missing in\n{page}"));
        assert_eq!(told.kind, kind, "{reference}");
        assert_eq!(told.labels, labels.iter().map(ToString::to_string).collect(), "{reference}");
        let series = match kind {
            "counter" => format!("cordum_scheduler_{name}_total"),
            "histogram" => format!("cordum_scheduler_{name}_bucket"),
            _ => format!("cordum_scheduler_{name}"),
        };
        assert!(told.series.contains(&series), "{reference} has only {:?}", told.series);
    }
}

/// The values, not only the names.
#[tokio::test(start_paused = true)]
async fn the_page_tells_what_has_happened() {
    let page = scraped().await;
    for line in [
        "jobs_received_total{topic=\"job.echo\"} 1",
        "jobs_dispatched_total{topic=\"job.echo\"} 1",
        "jobs_completed_total{topic=\"job.plain\",status=\"SUCCEEDED\"} 1",
        "jobs_completed_total{topic=\"job.no\",status=\"DENIED\"} 1",
        "safety_denied_total{topic=\"job.no\"} 1",
        "orphan_replayed_total{topic=\"job.no\"} 0",
        "output_policy_checked_total{topic=\"job.plain\"} 1",
        "output_policy_quarantined_total{topic=\"job.echo\"} 1",
        "output_policy_skipped_total{topic=\"job.echo\"} 0",
        "output_check_latency_seconds_count{topic=\"job.plain\",phase=\"sync\"} 1",
        "output_check_latency_seconds_count{topic=\"job.echo\",phase=\"async\"} 1",
        "stale_jobs{state=\"RUNNING\"} 0",
        "safety_net_acted_total{net=\"reconciler\"} 0",
        "saga_active 0",
    ] {
        let line = format!("cordum_scheduler_{line}");
        assert!(page.lines().any(|told| told == line), "{line} is missing in\n{page}");
    }
}

/// The table is checked in; a change of the page shows up as a change of the table.
#[tokio::test(start_paused = true)]
async fn the_docs_list_what_is_on_the_page() {
    let mut table = String::from(
        "# Metrics\n\n\
         `GET /metrics` in the OpenMetrics text format. Every name begins with `cordum_scheduler_`; the series of a counter end in \
         `_total`, those of a histogram in\n`_bucket`, `_sum` and `_count`. Printed from the page of a running engine by a test. \
         Dashboards over these names are in\n[`deploy/grafana`](../deploy/grafana), alerts in \
         [`deploy/prometheus`](../deploy/prometheus).\n\n\
         A topic has its series from its first job on. The first thousand topics have their own; later ones share `other`.\n\n\
         | name | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for (name, told) in read(&scraped().await) {
        let labels = told.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        writeln!(table, "| `{name}` | {} | {labels} | {} |", told.kind, told.help).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(checked_in == table, "docs/metrics.md is out of date; run the tests with REVEILLE_BLESS=1");
}
