//! What this worker says on the bus without waiting for an answer.

use async_nats::Client;
use bytes::Bytes;
use reveille_core::id::WorkerId;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;

use crate::clock;
use crate::connect::Link;

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

    pub fn packet(&self, trace_id: &str, payload: Payload) -> Bytes {
        packet::encode(&packet::envelope(self.worker.as_str(), trace_id, clock::now(), payload))
    }

    /// Publishes what nobody has to hear. While the connection is away it is dropped rather than
    /// queued: an old heartbeat or progress says nothing.
    pub async fn say(&self, subject: &'static str, trace_id: &str, payload: Payload) {
        if !*self.link.borrow() {
            return;
        }
        if let Err(error) = self.nats.publish(subject, self.packet(trace_id, payload)).await {
            tracing::warn!(worker_id = %self.worker, subject, %error, "cannot publish");
        }
    }
}
