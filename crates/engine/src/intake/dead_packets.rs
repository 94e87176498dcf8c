//! Packets that can never be dealt with: kept where an operator finds them, and only then ended.

use super::Intake;
use crate::observe::Trouble;
use reveille_bus::{Ack, Message, MessageKey};
use reveille_store::{AboutPacket, DeadPacket};
use reveille_wire::subject;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How often a bus hands a packet out. One that comes for the last time has been the end of whoever had it, or
/// of their patience, and is not tried again.
pub(super) const DELIVERIES_MAX: u64 = 100;
/// From here on a packet is not given back to the bus any more, which would count it once more; it waits here.
pub(super) const GIVEN_BACK_MAX: u64 = 50;
/// How long a packet waits that could not even be kept.
const PAUSE: Duration = Duration::from_secs(5);

impl Intake {
    /// Ends a packet. If it cannot be kept it is not ended either, and comes again.
    pub(super) async fn bury(&self, message: &Message, from: Option<&MessageKey>, ack: Ack, reason: &str) {
        // Beats and the like are worth nothing a moment later.
        if ![subject::JOB_SUBMIT, subject::JOB_RESULT].contains(&message.subject.as_str()) {
            return ack.end();
        }
        let about = AboutPacket {
            subject: message.subject.clone(),
            reason: reason.to_owned(),
            deliveries: from.map_or(1, |key| key.delivered),
            len: message.payload.len(),
            buried_at: self.runtime.now(),
        };
        let packet = DeadPacket::new(&name(message, from), about, &message.payload);
        while let Err(error) = self.store.bury(packet.clone()).await {
            self.observe.log(Trouble::Store, "dead packet not stored", &packet.key, &error);
            match from {
                None => return,
                Some(key) if key.delivered < GIVEN_BACK_MAX => return ack.later(PAUSE),
                Some(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        ack.end();
    }
}

/// Where a bus keeps no packets, the same content is the same packet: whoever sends it again and again has one
/// place among the dead, not all of them.
fn name(message: &Message, from: Option<&MessageKey>) -> String {
    if let Some(key) = from {
        return format!("{}:{}", key.stream, key.seq);
    }
    let hash = Sha256::digest(&message.payload);
    let number = hash.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{}:{number:016x}", message.subject)
}
