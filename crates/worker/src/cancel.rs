//! Cancellations: everybody hears all of them and stops what it runs.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use reveille_wire::cap::bus_packet::Payload;

use crate::worker_context::WorkerContext;

pub async fn listen(worker_context: Arc<WorkerContext>, mut cancellations: Subscriber) {
    let over = worker_context.phase.over.clone();
    while let Some(Some(message)) = over.run_until_cancelled(cancellations.next()).await {
        match worker_context.publisher.signatures().decode(&message.payload) {
            Ok(packet) => {
                if let Some(Payload::JobCancel(cancel)) = packet.payload {
                    worker_context.ledger.cancel(&cancel);
                }
            }
            Err(problem) => tracing::warn!(subject = %message.subject, %problem, "packet dropped"),
        }
    }
}
