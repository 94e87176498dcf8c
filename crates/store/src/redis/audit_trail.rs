//! The audit trail of a shared store: entries wait in Redis, written by the commit that they record, until they are
//! sealed into the ledger.

use super::RedisStore;
use super::commit::json;
use super::errors::unreadable;
use super::script::{ScriptCall, call};
use super::scripts::RecordUnder;
use crate::{AuditQuery, AuditTrail, ChainPage, Lock, Origin, Page, StoreError};
use redis::Pipeline;
use reveille_core::audit::{Draft, Entry};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;

/// Entries that are sealed at once.
const SEALED_AT_ONCE: usize = 1_000;

/// One entry of the stream: its place, and its fields by name.
type QueuedEntry = (String, Vec<(String, Vec<u8>)>);

impl RedisStore {
    /// Seals what waits. Returns how many entries that were.
    pub async fn seal(&self) -> Result<u64, StoreError> {
        let outbox = self.keys.of("audit:outbox");
        let mut sealed = 0;
        loop {
            let mut read = redis::cmd("XRANGE");
            read.arg(&outbox).arg("-").arg("+").arg("COUNT").arg(SEALED_AT_ONCE);
            let waiting: Vec<QueuedEntry> = self.link.command(&read).await?;
            if waiting.is_empty() {
                return Ok(sealed);
            }
            let places: Vec<String> = waiting.iter().map(|(place, _)| place.clone()).collect();
            let drafts = waiting.into_iter().map(|(place, fields)| read_entry(&place, &fields));
            self.ledger.seal(drafts.collect::<Result<_, _>>()?).await?;
            let mut delete = redis::cmd("XDEL");
            delete.arg(&outbox).arg(&places);
            let () = self.link.command(&delete).await?;
            sealed += places.len() as u64;
            if places.len() < SEALED_AT_ONCE {
                return Ok(sealed);
            }
        }
    }
}

/// A reader of the trail must see everything committed before, so it is sealed first.
#[async_trait::async_trait]
impl AuditTrail for RedisStore {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let outbox = self.keys.of("audit:outbox");
        let mut pipeline = Pipeline::new();
        pipeline.atomic();
        for draft in drafts {
            let written = json(&draft)?;
            pipeline.cmd("XADD").arg(&outbox).arg("*").arg("o").arg(&self.names.origin().0[..]);
            pipeline.arg("d").arg(written).ignore();
        }
        Ok(self.link.pipeline(&pipeline).await?)
    }

    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> Result<bool, StoreError> {
        let record = call!(RecordUnder {
            lock: &lock.name,
            audit_outbox: self.keys.of("audit:outbox"),
            fence: lock.fence,
            now: self.script_now(),
        });
        let mut record = record.of(&self.scripts);
        for draft in drafts {
            record.more(&self.names.origin().0[..]).more(json(&draft)?);
        }
        Ok(self.link.run(&record).await?)
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.seal().await?;
        self.ledger.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        self.seal().await?;
        self.ledger.chain(tenant, after, limit).await
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        self.seal().await?;
        self.ledger.chains(after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.seal().await?;
        self.ledger.prune(before, limit).await
    }
}

fn read_entry(place: &str, fields: &[(String, Vec<u8>)]) -> Result<(Origin, Draft), StoreError> {
    let what = || format!("entry {place} of the outbox");
    let field = |name: &str| fields.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_slice());
    let (Some(origin), Some(draft)) = (field("o"), field("d")) else {
        return Err(unreadable(&what(), &"a field is missing"));
    };
    let origin = origin.try_into().map(Origin).map_err(|error| unreadable(&what(), &error))?;
    let draft = serde_json::from_slice(draft).map_err(|error| unreadable(&what(), &error))?;
    Ok((origin, draft))
}
