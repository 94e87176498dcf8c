//! A job's place in its trace: what goes along with its messages, and its spans when it is over.

use super::Observe;
use reveille_bus::Message;
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_core::trace::{self, JobTrace, TRACEPARENT, TRACESTATE, TraceContext};
use std::sync::Arc;

impl Observe {
    /// Where a job stands in its trace.
    pub fn trace_of<'a>(&self, request: &'a Request) -> JobTrace<'a> {
        JobTrace::of(request, self.0.runtime.settings().trace_ratio)
    }

    /// Hands a job over to be exported, once: when the last thing that belongs in its trace was committed.
    pub fn export_trace(&self, before: Option<&Job>, job: &Arc<Job>) {
        let traces = &self.0.traces;
        if !traces.are_wanted() || !trace::is_told(job) || before.is_some_and(trace::is_told) {
            return;
        }
        if self.trace_of(&job.request).sampled {
            traces.export(job);
        }
    }
}

/// The message, with where its sender stands. Listeners that do not understand headers get it without.
pub fn with_context(message: Message, context: &TraceContext) -> Message {
    let headers = context.headers();
    message.with_headers(headers.iter().map(|(name, value)| (*name, value.as_str())))
}

/// Where the sender of a message stands, if it says so.
pub fn context_of(message: &Message) -> Option<TraceContext> {
    TraceContext::read(message.header(TRACEPARENT), message.header(TRACESTATE))
}
