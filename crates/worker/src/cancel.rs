//! Cancellations: everybody hears all of them and stops what it runs.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;

use crate::station::Station;

pub async fn listen(station: Arc<Station>, mut cancellations: Subscriber) {
    let over = station.phase.over.clone();
    while let Some(Some(message)) = over.run_until_cancelled(cancellations.next()).await {
        match packet::decode(&message.payload) {
            Ok(packet) => {
                if let Some(Payload::JobCancel(cancel)) = packet.payload {
                    station.ledger.cancel(&cancel);
                }
            }
            Err(problem) => tracing::warn!(subject = %message.subject, %problem, "packet dropped"),
        }
    }
}
