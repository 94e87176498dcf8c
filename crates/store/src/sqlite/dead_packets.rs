//! Packets that could not be processed, as rows. They are few; storing one removes any excess.

use super::file::SqliteFile;
use super::listing::before;
use crate::dead_packets::{DEAD_PACKET_KEEP_MS, DEAD_PACKETS_MAX, DeadPacket};
use crate::query::page_len;
use crate::{Page, StoreError};
use reveille_core::time::Millis;
use rusqlite::params;

pub(super) async fn bury(file: &SqliteFile, packet: DeadPacket) -> Result<(), StoreError> {
    let written = packet.written()?;
    let buried = file.write(move |connection| {
        connection.prepare_cached("DELETE FROM dead_packets WHERE key = ?1")?.execute([&packet.key])?;
        let insert = "INSERT INTO dead_packets (key, buried_at, packet) VALUES (?1, ?2, ?3)";
        let values = params![packet.key, packet.about.buried_at.0, written];
        connection.prepare_cached(insert)?.execute(values)?;
        let over = "DELETE FROM dead_packets
                    WHERE seq <= (SELECT seq FROM dead_packets ORDER BY seq DESC LIMIT 1 OFFSET ?1)";
        Ok(connection.prepare_cached(over)?.execute([DEAD_PACKETS_MAX as i64])? as u64)
    });
    buried.await.map(drop)
}

pub(super) async fn list(
    file: &SqliteFile,
    cursor: Option<u64>,
    limit: usize,
    now: Millis,
) -> Result<Page<DeadPacket>, StoreError> {
    let len = page_len(limit);
    file.read(move |connection| {
        let sql = "SELECT seq, key, packet FROM dead_packets WHERE seq < ?1 AND buried_at > ?2
                   ORDER BY seq DESC LIMIT ?3";
        let mut statement = connection.prepare_cached(sql)?;
        let values = params![before(cursor), now.0 - DEAD_PACKET_KEEP_MS, len as i64 + 1];
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let key: String = row.get(1)?;
            found.push((row.get::<_, i64>(0)? as u64, DeadPacket::read(&key, &row.get::<_, Vec<u8>>(2)?)?));
        }
        Ok(Page::take(len, found.into_iter()))
    })
    .await
}
