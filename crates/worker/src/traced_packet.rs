//! A packet with the headers that go along: where this worker stands in the job's trace.
//!
//! The worker records no spans of its own. It hands back the context that came with the job, so that whoever
//! reads its messages can tell which attempt they belong to; a handler may begin spans under it.

use async_nats::{Client, HeaderMap, PublishError, Subject};
use bytes::Bytes;
use reveille_core::trace::{TRACEPARENT, TRACESTATE, TraceContext};

#[derive(Clone)]
pub struct TracedPacket {
    pub packet: Bytes,
    headers: Option<HeaderMap>,
}

impl TracedPacket {
    /// Headers are sent only by whoever got some: then the server understands them.
    pub fn new(packet: Bytes, context: Option<&TraceContext>) -> Self {
        let headers = context.map(|context| {
            let mut headers = HeaderMap::new();
            for (name, value) in context.headers() {
                headers.insert(name, value.as_str());
            }
            headers
        });
        Self { packet, headers }
    }

    pub async fn publish(self, nats: &Client, subject: &'static str) -> Result<(), PublishError> {
        let subject = Subject::from_static(subject);
        match self.headers {
            Some(headers) => nats.publish_with_headers(subject, headers, self.packet).await,
            None => nats.publish(subject, self.packet).await,
        }
    }

    pub async fn request(
        self,
        nats: &Client,
        subject: &'static str,
        reply: String,
    ) -> Result<(), PublishError> {
        let subject = Subject::from_static(subject);
        match self.headers {
            Some(headers) => nats.publish_with_reply_and_headers(subject, reply, headers, self.packet).await,
            None => nats.publish_with_reply(subject, reply, self.packet).await,
        }
    }
}

/// Where the sender of a job stands, if it says so. Schedulers spell the headers in more than one way.
pub fn context_of(headers: Option<&HeaderMap>) -> Option<TraceContext> {
    let headers = headers?;
    let values = |name: &'static str| {
        let is_it = move |said: &str| said.eq_ignore_ascii_case(name);
        let said = headers.iter().filter(move |(said, _)| is_it(said.as_ref()));
        said.flat_map(|(_, values)| values).map(|value| value.as_str().as_bytes())
    };
    TraceContext::read(values(TRACEPARENT), values(TRACESTATE))
}
