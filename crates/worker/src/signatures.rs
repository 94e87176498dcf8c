//! What the worker signs with, and whose packets it believes.

use bytes::Bytes;
use reveille_wire::cap::BusPacket;
use reveille_wire::convert::SENDER;
use reveille_wire::key::{SigningKey, VerifyingKey};
use reveille_wire::{packet, sign};

#[derive(Default)]
pub struct Signatures {
    /// Without one, packets go out unsigned.
    pub own: Option<SigningKey>,
    /// Without one, packets are believed as they come.
    pub scheduler: Option<VerifyingKey>,
}

impl Signatures {
    pub fn encode(&self, packet: &BusPacket) -> Bytes {
        match &self.own {
            Some(key) => sign::sign(packet, key),
            None => packet::encode(packet),
        }
    }

    /// A packet of the scheduler, or why it is none.
    pub fn decode(&self, received: &[u8]) -> Result<BusPacket, String> {
        let packet = packet::decode(received).map_err(|problem| problem.to_string())?;
        if let Some(key) = &self.scheduler {
            if packet.sender_id != SENDER {
                return Err(format!("it is not from {SENDER}"));
            }
            sign::verify(received, key).map_err(|problem| problem.to_string())?;
        }
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::time::Millis;
    use reveille_wire::cap::JobCancel;
    use reveille_wire::cap::bus_packet::Payload;
    use reveille_wire::key::signing_key_of;

    #[test]
    fn only_what_the_scheduler_has_signed_is_believed() {
        let key = |seed| signing_key_of(&[seed; 32]).unwrap();
        let worker = Signatures { own: Some(key(1)), scheduler: Some(*key(2).verifying_key()) };
        let cancel =
            JobCancel { job_id: "j".to_owned(), requested_by: "ops".to_owned(), ..JobCancel::default() };
        let from = |sender| packet::envelope(sender, "t", Millis(1), Payload::JobCancel(cancel.clone()));
        assert!(worker.decode(&sign::sign(&from(SENDER), &key(2))).is_ok());
        assert!(worker.decode(&sign::sign(&from(SENDER), &key(3))).is_err());
        assert!(worker.decode(&sign::sign(&from("w"), &key(2))).is_err());
        assert!(worker.decode(&packet::encode(&from(SENDER))).is_err());
        assert!(Signatures::default().decode(&packet::encode(&from("anybody"))).is_ok());
        assert_eq!(sign::verify(&worker.encode(&from("w")), key(1).verifying_key()), Ok(()));
    }
}
