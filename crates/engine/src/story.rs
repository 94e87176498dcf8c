//! A job's place in its trace: what goes along with its messages, and the story that is told when it is over.

use crate::Engine;
use reveille_bus::Message;
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_core::trace::{self, JobTrace, TRACEPARENT, TRACESTATE, TraceContext};
use std::sync::Arc;

impl Engine {
    /// Where a job stands in its trace.
    pub fn trace_of<'a>(&self, request: &'a Request) -> JobTrace<'a> {
        JobTrace::of(request, self.settings.trace_ratio)
    }

    /// Hands a job over to be told, once: when the last thing that is told of it was committed.
    pub(crate) fn tell_story(&self, before: Option<&Job>, job: &Arc<Job>) {
        if !self.traces.are_wanted() || !trace::is_told(job) || before.is_some_and(trace::is_told) {
            return;
        }
        if self.trace_of(&job.request).sampled {
            self.traces.export(job);
        }
    }
}

/// The message, with where its sender stands. Listeners that do not understand headers get it without.
pub(crate) fn traced(message: Message, context: &TraceContext) -> Message {
    let headers = context.headers();
    message.with_headers(headers.iter().map(|(name, value)| (*name, value.as_str())))
}

/// Where the sender of a message stands, if it says so.
pub(crate) fn told_by(message: &Message) -> Option<TraceContext> {
    TraceContext::read(message.header(TRACEPARENT), message.header(TRACESTATE))
}
