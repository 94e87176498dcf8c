//! The event log: a stream in Redis, written by the steps of jobs and by `append_events.lua`. A place in it is the
//! time in microseconds, so that a lost place is never reused.

use super::RedisStore;
use super::errors::unreadable;
use super::link::WAITS_MAX;
use super::script::{ScriptCall, call};
use super::scripts::AppendEvents;
use crate::{EVENT_LOG_BYTES_MAX, EVENT_LOG_KEPT_MAX, EVENT_LOG_LEN_MAX, EventLog, EventPage, StoreError};
use bytes::Bytes;
use redis::Pipeline;
use std::time::Duration;

/// One entry: its place, and its fields by name.
type StreamEntry = (String, Vec<(String, Bytes)>);
/// What was read from each requested stream; nothing if nothing arrived.
type StreamReply = Option<Vec<(String, Vec<StreamEntry>)>>;

#[async_trait::async_trait]
impl EventLog for RedisStore {
    async fn read_events(&self, after: u64, wait: Duration) -> Result<EventPage, StoreError> {
        let events = self.keys.of("reveille:events");
        let mut pipeline = Pipeline::new();
        pipeline.cmd("XREAD").arg("COUNT").arg(EVENT_LOG_LEN_MAX);
        // Redis takes a wait of zero as waiting for ever.
        pipeline.arg("BLOCK").arg(wait.min(WAITS_MAX).as_millis().max(1) as u64);
        pipeline.arg("STREAMS").arg(&events).arg(format!("{after}-0"));
        pipeline.cmd("XRANGE").arg(&events).arg("-").arg("+").arg("COUNT").arg(1);
        pipeline.cmd("XREVRANGE").arg(&events).arg("+").arg("-").arg("COUNT").arg(1);
        let (read, first, last): (StreamReply, Vec<StreamEntry>, Vec<StreamEntry>) =
            self.link.wait(&pipeline).await?;
        let kept = match (first.first(), last.first()) {
            (Some(first), Some(last)) => Some((place(first)?, place(last)?)),
            _ => None,
        };
        let entries = read.into_iter().flatten().flat_map(|(_, entries)| entries);
        let items = entries.map(|entry| {
            let place = place(&entry)?;
            let item = entry.1.into_iter().find(|(name, _)| name == "e").map(|(_, item)| item);
            Ok((place, item.unwrap_or_default()))
        });
        Ok(EventPage { items: items.collect::<Result<_, StoreError>>()?, kept })
    }

    async fn append_events(&self, batch: u64, items: &[Bytes]) -> Result<(), StoreError> {
        let append = call!(AppendEvents {
            events: self.keys.of("reveille:events"),
            last_batch: self.keys.of(&format!("reveille:told:{}", self.options.replica)),
            now: self.script_now(),
            batch: batch,
            kept_max: EVENT_LOG_KEPT_MAX,
            bytes_max: EVENT_LOG_BYTES_MAX,
        });
        let mut append = append.of(&self.scripts);
        for item in items {
            append.more(&item[..]);
        }
        let _: u8 = self.link.run_surely(&append).await?;
        Ok(())
    }
}

fn place((id, _): &StreamEntry) -> Result<u64, StoreError> {
    let number = id.split_once('-').map_or(id.as_str(), |(number, _)| number);
    number.parse().map_err(|error| unreadable(&format!("place {id:?} among the events"), &error))
}
