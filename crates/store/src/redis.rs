//! The store that replicas share: Redis 7, one script for each operation that must be atomic.
//!
//! Key names are those that operators of the existing control plane know, or extend them; the scripts are in
//! `redis/lua`. A decision costs one trip to load and one to commit. How durable an answered `commit` is depends on
//! the settings of Redis: with `appendfsync always` it survives a crash of the machine, with `everysec` all but the
//! last second does.
//!
//! On a Redis Cluster all our keys are in one slot, because a script needs all its keys in one. Results are not:
//! workers write them under the names they have always had, and scripts leave those alone.

mod audit_trail;
mod blobs;
mod breakers;
mod checks;
mod commit;
mod dead_letters;
mod dead_packets;
mod errors;
mod event_log;
mod index_page;
mod keys;
mod link;
mod listing;
mod locks;
mod membership;
mod names;
pub(crate) mod script;
mod scripts;
mod workspace_hints;

use crate::ledger::Ledger;
use crate::{BlobKey, ClockFn, Commit, JobQuery, JobStore, Opened, Page, Receipt, Step, StoreError};

pub(crate) use index_page::{IndexOrder, IndexQuery};
pub(crate) use keys::Keys;
pub use keys::part as key_part;
pub use link::RedisLink;

use listing::read_job;
use names::NameSource;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::Job;
use reveille_core::time::Millis;
use script::{ScriptCall, call};
use scripts::{PruneJobs, Scripts, SweepBlobs};
use std::fmt;
use std::sync::Arc;

/// Jobs that one script removes; other commands wait for it.
const PRUNED_AT_ONCE: usize = 200;

/// Which Redis, and our identity.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://` or, with TLS, `rediss://`.
    pub url: String,
    /// Instead of the one in the URL.
    pub password: Option<String>,
    /// Certificates in PEM: the authorities to trust, and our own (certificate, key).
    pub tls_ca: Option<Vec<u8>>,
    pub tls_identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Prefix of all our keys. On a cluster a hash tag precedes it.
    pub prefix: String,
    /// How long a result is kept that its worker stored without a TTL.
    pub keep_results_ms: i64,
    /// The name of this start of this replica; nothing for a store that nobody shares.
    pub replica: String,
    /// Whether locks use the store's clock instead of Redis's. Only a test has one clock for all.
    pub uses_our_clock: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            password: None,
            tls_ca: None,
            tls_identity: None,
            prefix: String::new(),
            keep_results_ms: 24 * 60 * 60 * 1000,
            replica: String::new(),
            uses_our_clock: false,
        }
    }
}

impl fmt::Debug for RedisOptions {
    /// Without secrets: a URL may carry a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions").field("replica", &self.replica).finish_non_exhaustive()
    }
}

/// A handle; clones share their connections.
#[derive(Clone)]
pub struct RedisStore {
    link: RedisLink,
    scripts: Arc<Scripts>,
    keys: Keys,
    options: Arc<RedisOptions>,
    /// Where the audit trail is stored permanently.
    ledger: Arc<dyn Ledger>,
    clock: ClockFn,
    names: Arc<NameSource>,
}

impl RedisStore {
    /// Connects, and loads the scripts. An unavailable Redis is an error here.
    pub async fn open(
        options: RedisOptions,
        ledger: Arc<dyn Ledger>,
        clock: ClockFn,
    ) -> Result<Self, StoreError> {
        let link = RedisLink::open(&options).await?;
        let keys = if link.is_to_a_cluster() {
            Keys::on_a_cluster(&options.prefix)
        } else {
            Keys::on_one(&options.prefix)
        };
        let scripts = Scripts::new(&keys);
        link.load(&scripts.all()).await?;
        let (scripts, options, names) = (Arc::new(scripts), Arc::new(options), Arc::new(NameSource::new()?));
        Ok(Self { link, scripts, keys, options, ledger, clock, names })
    }

    /// The connections, for what is kept beside the jobs.
    pub fn link(&self) -> RedisLink {
        self.link.clone()
    }

    /// The key names, for what is kept beside the jobs.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Distinguishes a change whose answer was lost from another's.
    pub fn token(&self) -> String {
        self.names.token()
    }

    fn now(&self) -> Millis {
        (self.clock)()
    }

    /// The time that a script uses: nothing for that of Redis.
    fn script_now(&self) -> String {
        if self.options.uses_our_clock { self.now().0.to_string() } else { String::new() }
    }
}

#[async_trait::async_trait]
impl JobStore for RedisStore {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        self.commit_step(&step).await
    }

    fn colocated_key(&self, key: BlobKey) -> BlobKey {
        if self.keys.is_on_a_cluster() { key.in_our_slot() } else { key }
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        let record: Option<Vec<u8>> = self.link.command(redis::cmd("GET").arg(self.keys.record(id))).await?;
        Ok(record.map(|record| read_job(&record)).transpose()?.map(Arc::new))
    }

    async fn open(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.open_job(id, message).await
    }

    async fn open_new(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.open_new_job(id, message).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        let key = self.keys.idempotency(tenant, key);
        let id: Option<String> = self.link.command(redis::cmd("GET").arg(&key)).await?;
        let parse = |id: String| {
            JobId::parse(&id).map_err(|error| StoreError::Corrupt(format!("{key} names {id:?}: {error}")))
        };
        id.map(parse).transpose()
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        self.list(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.list_up(self.owners_jobs().await?, cursor, limit).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        let mut left = limit;
        while left > 0 {
            let part = left.min(PRUNED_AT_ONCE);
            let prune = call!(PruneJobs {
                ended: self.keys.of("job:index:ended"),
                prefix: &self.keys.prefix,
                tag: self.keys.tag,
                before: ended_before.0,
                limit: part,
            });
            let (mut went, jobs): (u64, Vec<String>) = self.link.run_surely(&prune.of(&self.scripts)).await?;
            went += self
                .delete_far(jobs.iter().flat_map(|id| [format!("ctx:{id}"), format!("res:{id}")]))
                .await?;
            gone += went;
            left -= part;
            if went == 0 {
                break;
            }
        }
        // Locks expire by themselves.
        let sweep = call!(SweepBlobs { ends: self.keys.of("blob:ends"), now: now.0, limit: limit });
        Ok(gone + self.link.run_surely::<u64>(&sweep.of(&self.scripts)).await?)
    }
}
