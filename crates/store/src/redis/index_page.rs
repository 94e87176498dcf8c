//! Pages of an index, filtered: jobs and runs are listed the same way.

use super::RedisStore;
use super::errors::unreadable;
use super::script::{ScriptCall, call};
use super::scripts::ReadIndex;
use crate::query::page_len;
use crate::{Page, StoreError};
use reveille_core::time::Millis;

/// Entries of an index that one script examines; other commands wait for it.
const LOOKED_AT: usize = 2_000;
/// What comes after the last entry.
const END: &str = "";

/// The direction in which an index is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrder {
    OldestFirst,
    NewestFirst,
}

/// What to read of an index, and which entries count.
#[derive(Debug)]
pub struct IndexQuery {
    /// One index, or several that are read as one.
    pub indexes: Vec<String>,
    pub order: IndexOrder,
    pub cursor: Option<u64>,
    pub limit: usize,
    /// How many entries are examined at most, whether they count or not.
    pub look_through: Option<usize>,
    /// Both ends are inclusive.
    pub updated_after: Option<Millis>,
    pub updated_before: Option<Millis>,
    /// The prefix before an id in the name of the hash that describes the entry.
    pub hash: String,
    /// The same for the record; without one it is the field `head` of the hash.
    pub record: Option<String>,
    /// The values that the hash must have.
    pub fields: Vec<(&'static str, String)>,
}

impl RedisStore {
    /// One page of it, each record parsed by `read`.
    pub async fn read_index<T>(
        &self,
        query: &IndexQuery,
        read: impl Fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let len = page_len(query.limit);
        let (direction, start) = match query.order {
            IndexOrder::OldestFirst => ("up", "-inf"),
            IndexOrder::NewestFirst => ("down", "+inf"),
        };
        let mut last = query.cursor.map_or(start.to_owned(), |cursor| cursor.to_string());
        let mut found = Vec::new();
        let mut left = query.look_through.unwrap_or(usize::MAX).max(1);
        while found.len() <= len && left > 0 {
            let budget = left.min(LOOKED_AT);
            left -= budget;
            let page = call!(ReadIndex {
                direction: direction,
                last: &last,
                want: len + 1 - found.len(),
                budget: budget,
                updated_min: query.updated_after.map_or(i64::MIN, Millis::micros),
                updated_max: query.updated_before.map_or(i64::MAX, Millis::micros),
                hash: &query.hash,
                record: query.record.as_deref(),
            });
            let mut page = page.of_more(&self.scripts, query.indexes.iter().map(String::as_str));
            for (field, wanted) in &query.fields {
                page.more(*field).more(wanted);
            }
            let reply: Vec<Option<Vec<u8>>> = self.link.run_surely(&page).await?;
            let mut parts = reply.into_iter();
            last = text(parts.next().flatten())?;
            while let (Some(sequence), Some(record)) = (parts.next(), parts.next()) {
                let sequence = text(sequence)?;
                let sequence = sequence.parse().map_err(|error| unreadable("a place in a list", &error))?;
                // It was removed between two reads.
                let Some(record) = record else { continue };
                found.push((sequence, read(&record)?));
            }
            if last == END {
                break;
            }
        }
        let page = Page::take(len, found.into_iter());
        // Where the scan stopped, if that was not because the page was full.
        let next = page.next.or_else(|| last.parse().ok().filter(|_| left == 0));
        Ok(Page { next, ..page })
    }
}

fn text(bytes: Option<Vec<u8>>) -> Result<String, StoreError> {
    String::from_utf8(bytes.unwrap_or_default()).map_err(|error| unreadable("a list", &error))
}
