//! The collector of the simulation: every ended job is told once at most, as it was committed, and its spans
//! hang together.

use crate::world::World;
use reveille_core::job::Job;
use reveille_core::trace::{JobTrace, Ratio, SpanRecord, spans};
use reveille_traces::{Counts, Traces};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub struct SimTraces(pub Arc<World>);

#[async_trait::async_trait]
impl Traces for SimTraces {
    fn export(&self, job: &Arc<Job>) {
        self.0.check(|ledger| ledger.story_told(job));
        let told = spans(job, &JobTrace::of(&job.request, Ratio::ALL));
        if let Some(problem) = problem(job, &told) {
            self.0.fail(&format!("{}: {problem}", job.id()));
        }
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    async fn finish(&self, _patience: Duration) {}
}

fn problem(job: &Job, told: &[SpanRecord]) -> Option<&'static str> {
    let names: BTreeSet<_> = told.iter().map(|span| span.span).collect();
    let Some((whole, parts)) = told.split_first() else { return Some("an ended job has no spans") };
    if names.len() != told.len() {
        return Some("two spans have one name");
    }
    if parts.iter().any(|part| part.parent != Some(whole.span) || part.trace != whole.trace) {
        return Some("a span hangs nowhere");
    }
    let attempts = parts.iter().filter(|part| part.name == "attempt").count();
    let tells_all = job.marks_made == job.marks.len() as u64;
    (tells_all && attempts != job.attempts.len()).then_some("its spans and its attempts do not agree")
}
