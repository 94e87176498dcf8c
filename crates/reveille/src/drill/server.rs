//! The throw-away server: this very binary as a child process, on ports of its own.

use super::measure::SnapshotCost;
use crate::client::ask;
use anyhow::{Context, Result, bail};
use reveille_client::models::Worker;
use reveille_client::{Client, Error};
use serde_json::Value;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(30);
const KNOWN_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartKind {
    /// The snapshot is not read.
    Cold,
    Warm,
}

pub struct DrillServer {
    folder: PathBuf,
    http: SocketAddr,
    nats: SocketAddr,
    key: String,
    client: Client,
    child: Option<Child>,
    pub pools: usize,
    /// When it said that it listens.
    pub up_at: Instant,
}

impl DrillServer {
    /// A folder, free ports, and a pools file in which each pool has a topic of its own.
    pub fn prepare(pools: usize) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("reveille-drill-{:016x}", getrandom::u64()?));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let (mut topics, mut names) = (String::from("topics:\n"), String::from("pools:\n"));
        for pool in 0..pools {
            let _ = writeln!(topics, "  job.drill.p{pool}: drill-{pool}");
            let _ = writeln!(names, "  drill-{pool}: {{}}");
        }
        std::fs::write(folder.join("pools.yaml"), topics + &names)?;
        let key = format!("vk_{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?);
        let (first, second) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let (http, nats) = (first.local_addr()?, second.local_addr()?);
        Ok(Self {
            http,
            nats,
            client: Client::new(&format!("http://{http}"), key.as_str())?.timeout(ANSWER_WITHIN),
            key,
            child: None,
            pools,
            up_at: Instant::now(),
            folder,
        })
    }

    pub fn nats_address(&self) -> SocketAddr {
        self.nats
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&mut self, start: StartKind) -> Result<()> {
        let log = std::fs::File::create(self.folder.join("server.log"))?;
        let child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .args(["--http", &self.http.to_string(), "--nats-door", &self.nats.to_string()])
            .args(["--resp-door", "off"])
            .arg("--data")
            .arg(self.folder.join("data"))
            .arg("--pools")
            .arg(self.folder.join("pools.yaml"))
            .env("REVEILLE_OPERATOR_KEY", &self.key)
            .env("REVEILLE_FLEET_WARM_START", if start == StartKind::Warm { "true" } else { "false" })
            .env("REVEILLE_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("starting the throw-away server")?;
        self.child = Some(child);
        let began = Instant::now();
        while self.ask(|client| client.get::<Value>("/readyz", &[])).await.is_err() {
            let exited = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if exited.is_some() || began.elapsed() > READY_WITHIN {
                let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
                bail!("the throw-away server did not become ready:\n{log}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.up_at = Instant::now();
        Ok(())
    }

    /// kill -9.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        ask(&self.client, question).await
    }

    /// The names of the workers that are listed.
    pub async fn workers(&self) -> Result<Vec<String>> {
        let name = |worker: Result<Worker, Error>| worker.map(|worker| worker.worker_id);
        self.ask(move |client| client.workers().list(None).map(name).collect()).await
    }

    pub async fn wait_for_workers(&self, count: usize) -> Result<()> {
        let began = Instant::now();
        loop {
            let known = self.metric("cordum_scheduler_workers").await?.unwrap_or_default() as usize;
            let beats = self.metric("cordum_scheduler_heartbeats_total").await?.unwrap_or_default() as usize;
            if known >= count && beats >= count {
                return Ok(());
            }
            if began.elapsed() > KNOWN_WITHIN {
                bail!("{known} of {count} workers are known after {} s", KNOWN_WITHIN.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits for one that was begun after now.
    pub async fn wait_for_snapshot(&self) -> Result<SnapshotCost> {
        let written = "cordum_scheduler_worker_snapshot_write_seconds";
        let count = self.metric(&format!("{written}_count")).await?.unwrap_or_default();
        let began = Instant::now();
        loop {
            let now = self.metric(&format!("{written}_count")).await?.unwrap_or_default();
            if now >= count + 2.0 {
                let sum = self.metric(&format!("{written}_sum")).await?.unwrap_or_default();
                let bytes = self.metric("cordum_scheduler_worker_snapshot_bytes").await?.unwrap_or_default();
                return Ok(SnapshotCost {
                    bytes: bytes as u64,
                    write_ms: sum / now * 1000.0,
                    interval_seconds: SNAPSHOT_EVERY.as_secs_f64(),
                });
            }
            if began.elapsed() > KNOWN_WITHIN {
                bail!("no worker snapshot was written in {} s", KNOWN_WITHIN.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub async fn metric(&self, name: &str) -> Result<Option<f64>> {
        let page = self.ask(|client| client.text("/metrics")).await?;
        let line = page.lines().find(|line| line.split(' ').next() == Some(name));
        Ok(line.and_then(|line| line.rsplit(' ').next()?.parse().ok()))
    }
}

impl Drop for DrillServer {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
