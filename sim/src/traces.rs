//! The trace collector of the simulation: every ended job is exported once at most, as it was committed, and
//! its spans form one tree.

use crate::world::World;
use reveille_core::job::Job;
use reveille_core::trace::{JobTrace, Ratio, SpanRecord, spans};
use reveille_traces::{TraceCounts, Traces};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub struct SimTraces(pub Arc<World>);

#[async_trait::async_trait]
impl Traces for SimTraces {
    fn export(&self, job: &Arc<Job>) {
        self.0.check(|ledger| ledger.trace_exported(job));
        let exported = spans(job, &JobTrace::of(&job.request, Ratio::ALL));
        if let Some(problem) = problem(job, &exported) {
            self.0.fail(&format!("{}: {problem}", job.id()));
        }
    }

    fn counts(&self) -> TraceCounts {
        TraceCounts::default()
    }

    async fn finish(&self, _patience: Duration) {}
}

fn problem(job: &Job, exported: &[SpanRecord]) -> Option<&'static str> {
    let names: BTreeSet<_> = exported.iter().map(|span| span.span).collect();
    let Some((whole, parts)) = exported.split_first() else { return Some("an ended job has no spans") };
    if names.len() != exported.len() {
        return Some("two spans have one name");
    }
    if parts.iter().any(|part| part.parent != Some(whole.span) || part.trace != whole.trace) {
        return Some("a span hangs nowhere");
    }
    let attempts = parts.iter().filter(|part| part.name == "attempt").count();
    let is_complete = job.marks_made == job.marks.len() as u64;
    (is_complete && attempts != job.attempts.len()).then_some("its spans and its attempts do not agree")
}
