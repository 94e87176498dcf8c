//! What a server stands on: a folder of its own, or engines that it shares with others.

use crate::config::{Config, EngineOptions};
use anyhow::{Context, Result};
use reveille_bus::{Bus, LocalBus, MessageOrigin, MessageSender, NatsBus, NatsOptions};
use reveille_core::finding::Finding;
use reveille_core::id::TenantId;
use reveille_engine::Clock;
use reveille_roster::{PostgresRoster, Roster, SqliteRoster};
use reveille_store::workflows::{RedisWorkflows, SqliteWorkflows, WorkflowStore};
use reveille_store::{RedisOptions, RedisStore, SqliteStore, Store};
use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the audit trail is sealed.
const SEAL_EVERY: Duration = Duration::from_millis(100);
/// How long to leave engines alone that have just failed.
const PAUSE: Duration = Duration::from_secs(1);

pub struct Backends {
    pub store: Arc<dyn Store>,
    pub roster: Arc<dyn Roster>,
    pub workflows: Arc<dyn WorkflowStore>,
    pub bus: Arc<dyn Bus>,
    /// What our own doors hand messages to; shared engines have doors of their own.
    pub doors: Option<LocalBus>,
    /// What was seen of each engine when the server started, and so what it can lose.
    pub findings: Vec<(String, Vec<Finding>)>,
}

impl Backends {
    pub async fn open(config: &Config, name: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        make_folder(&config.data.folder)?;
        let engines = EngineOptions::of(&config.redis, &config.nats, &config.postgres)?;
        match engines {
            None => Self::own(config, clock).await,
            Some(engines) => Self::shared(engines, config, name, clock).await,
        }
    }

    async fn own(config: &Config, clock: Arc<dyn Clock>) -> Result<Self> {
        let file = config.data.folder.join("reveille.db");
        let words = format!("{}: what was answered is on disk (WAL, synchronous FULL)", file.display());
        let open = move || SqliteStore::open(&file, Arc::new(move || clock.now()));
        let store = tokio::task::spawn_blocking(open).await??;
        let roster = SqliteRoster::open(store.file()).await.context("opening the roster")?;
        let workflows = SqliteWorkflows::open(store.file()).await.context("opening the workflows")?;
        let bus = LocalBus::default();
        Ok(Self {
            store: Arc::new(store),
            roster: Arc::new(roster),
            workflows: Arc::new(workflows),
            bus: Arc::new(bus.clone()),
            doors: Some(bus),
            findings: vec![("SQLite".to_owned(), vec![Finding::Good(words)])],
        })
    }

    async fn shared(
        engines: EngineOptions,
        config: &Config,
        name: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let now = clock.now();
        let roster = PostgresRoster::open(&engines.postgres).await.context("PostgreSQL")?;
        let keep_results_ms = i64::from(config.jobs.blob_hours) * 3600 * 1000;
        let options = RedisOptions { replica: name.to_owned(), keep_results_ms, ..engines.redis };
        let ledger = Arc::new(roster.ledger());
        let store =
            RedisStore::open(options, ledger, Arc::new(move || clock.now())).await.context("Redis")?;
        let of_redis = store.check().await.context("Redis")?;
        for finding in &of_redis {
            match finding {
                Finding::Bad(words) => anyhow::bail!("Redis: {words}"),
                Finding::Risky(words) => tracing::warn!("Redis: {words}"),
                Finding::Good(_) => {}
            }
        }
        let workflows = RedisWorkflows::open(&store).await.context("Redis")?;
        // NATS does not tell who speaks: whoever may publish there is a worker of this tenant.
        let tenant = TenantId::parse(&config.doors.tenant).context("doors.tenant")?;
        let origin = MessageOrigin::Worker(MessageSender { tenant, key: None });
        let options = NatsOptions { replica: name.to_owned(), origin, ..engines.nats };
        let of_nats = reveille_bus::examine(&options).await.context("NATS")?;
        let bus = NatsBus::open(options).await.context("NATS")?;
        let of_postgres = reveille_roster::examine(&engines.postgres, now).await.context("PostgreSQL")?;
        tokio::spawn(seal(store.clone()));
        let findings = [("Redis", of_redis), ("NATS", of_nats), ("PostgreSQL", of_postgres)];
        Ok(Self {
            store: Arc::new(store),
            roster: Arc::new(roster),
            workflows: Arc::new(workflows),
            bus: Arc::new(bus),
            doors: None,
            findings: findings.map(|(name, found)| (name.to_owned(), found)).into(),
        })
    }
}

/// What jobs carry is nobody else's business on this machine.
fn make_folder(folder: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("making the data folder {}", folder.display()))?;
    close_to_others(folder);
    Ok(())
}

/// The bits of a mode that are about the group and everybody else.
const OTHERS_BITS: u32 = 6;

/// A folder that was there before may be open to everybody on the machine. One that is not ours to change is said.
fn close_to_others(folder: &Path) {
    let Ok(found) = std::fs::metadata(folder) else { return };
    if found.permissions().mode().trailing_zeros() >= OTHERS_BITS {
        return;
    }
    match std::fs::set_permissions(folder, Permissions::from_mode(0o700)) {
        Ok(()) => tracing::info!(folder = %folder.display(), "data folder closed to other users"),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "data folder open to other users; close it with chmod 700");
        }
    }
}

/// Takes the audit trail from Redis, where it waits, to PostgreSQL, where it stays.
async fn seal(store: RedisStore) {
    let mut was_down = false;
    loop {
        let pause = match store.seal().await {
            Ok(_) => {
                was_down = false;
                SEAL_EVERY
            }
            Err(error) => {
                if !was_down {
                    tracing::warn!(%error, "the audit trail waits in Redis to be sealed");
                }
                was_down = true;
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}
