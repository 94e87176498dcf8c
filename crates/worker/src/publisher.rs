//! Publishes what needs no answer: heartbeats, progress.

use async_nats::Client;
use reveille_core::id::WorkerId;
use reveille_core::trace::TraceContext;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;

use crate::clock;
use crate::connect::ConnectionWatch;
use crate::signatures::Signatures;
use crate::traced_packet::TracedPacket;

pub struct Publisher {
    nats: Client,
    link: ConnectionWatch,
    worker: WorkerId,
    signatures: Signatures,
}

impl Publisher {
    pub fn new(nats: Client, link: ConnectionWatch, worker: WorkerId, signatures: Signatures) -> Self {
        Self { nats, link, worker, signatures }
    }

    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    pub fn traced_packet(
        &self,
        trace_id: &str,
        payload: Payload,
        context: Option<&TraceContext>,
    ) -> TracedPacket {
        let envelope = packet::envelope(self.worker.as_str(), trace_id, clock::now(), payload);
        TracedPacket::new(self.signatures.encode(&envelope), context)
    }

    /// Publishes what nobody has to hear. While the connection is away it is dropped rather than
    /// queued: an old heartbeat or progress says nothing.
    pub async fn publish(&self, subject: &'static str, traced_packet: TracedPacket) {
        if !*self.link.borrow() {
            return;
        }
        if let Err(error) = traced_packet.publish(&self.nats, subject).await {
            tracing::warn!(worker_id = %self.worker, subject, %error, "cannot publish");
        }
    }
}
