//! Packets that could not be processed, under `dlq:packet:<stream>:<sequence>`.

use super::RedisStore;
use super::script::{ScriptCall, call};
use super::scripts::BuryPacket;
use crate::dead_packets::{DEAD_PACKET_KEEP_MS, DEAD_PACKETS_MAX, DeadPacket, DeadPackets};
use crate::query::page_len;
use crate::{Page, StoreError};

#[async_trait::async_trait]
impl DeadPackets for RedisStore {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        let bury = call!(BuryPacket {
            packet: self.keys.packet(&packet.key),
            packets: self.keys.of("dlq:packets"),
            job_seq: self.keys.of("job:seq"),
            prefix: &self.keys.prefix,
            name: &packet.key,
            content: packet.written()?,
            now: self.script_now(),
            keep_ms: DEAD_PACKET_KEEP_MS,
            packets_max: DEAD_PACKETS_MAX,
        });
        // Storing it twice does no harm.
        Ok(self.link.run_surely(&bury.of(&self.scripts)).await?)
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        let (len, now) = (page_len(limit), self.now());
        let from = cursor.map_or("+inf".to_owned(), |cursor| format!("({cursor}"));
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.of("dlq:packets")).arg(from).arg("-inf").arg("BYSCORE").arg("REV");
        range.arg("LIMIT").arg(0).arg(DEAD_PACKETS_MAX).arg("WITHSCORES");
        let keys: Vec<(String, u64)> = self.link.command(&range).await?;
        let mut found = Vec::new();
        for part in keys.chunks(len + 1) {
            let mut get = redis::cmd("MGET");
            for (key, _) in part {
                get.arg(self.keys.packet(key));
            }
            let packets: Vec<Option<Vec<u8>>> = self.link.command(&get).await?;
            for ((key, place), written) in part.iter().zip(packets) {
                let Some(written) = written else { continue };
                let packet = DeadPacket::read(key, &written)?;
                if packet.is_kept_at(now) {
                    found.push((*place, packet));
                }
            }
            if found.len() > len {
                break;
            }
        }
        Ok(Page::take(len, found.into_iter()))
    }
}
