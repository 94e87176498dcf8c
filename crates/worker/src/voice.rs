//! What this worker says on the bus without waiting for an answer.

use async_nats::Client;
use reveille_core::id::WorkerId;
use reveille_core::trace::TraceContext;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;

use crate::clock;
use crate::connect::Link;
use crate::parcel::Parcel;

pub struct Voice {
    nats: Client,
    link: Link,
    worker: WorkerId,
}

impl Voice {
    pub fn new(nats: Client, link: Link, worker: WorkerId) -> Self {
        Self { nats, link, worker }
    }

    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    pub fn parcel(&self, trace_id: &str, payload: Payload, context: Option<&TraceContext>) -> Parcel {
        let envelope = packet::envelope(self.worker.as_str(), trace_id, clock::now(), payload);
        Parcel::new(packet::encode(&envelope), context)
    }

    /// Publishes what nobody has to hear. While the connection is away it is dropped rather than
    /// queued: an old heartbeat or progress says nothing.
    pub async fn say(&self, subject: &'static str, parcel: Parcel) {
        if !*self.link.borrow() {
            return;
        }
        if let Err(error) = parcel.publish(&self.nats, subject).await {
            tracing::warn!(worker_id = %self.worker, subject, %error, "cannot publish");
        }
    }
}
