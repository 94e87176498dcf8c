//! The server under test: a process of its own, on free ports, in a folder of its own.

use crate::engines::Engines;
use crate::raw::RawHttp;
use anyhow::{Context, Result, bail};
use reveille_worker::Connect;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

pub const KEY: &str = "vk_0123456789abcdef0123456789abcdef01234567";

pub struct BenchServer {
    child: Child,
    folder: PathBuf,
    pub http: String,
    pub connect: Connect,
    said: Vec<String>,
}

impl BenchServer {
    /// One that needs nothing else.
    pub async fn start(binary: &Path) -> Result<Self> {
        let free = "127.0.0.1:0";
        let doors = ["--nats-door", free, "--resp-door", free].map(str::to_owned);
        let mut server = Self::start_with(binary, 0, &doors, "resp door on ").await?;
        server.connect =
            Connect { nats_url: server.said("nats door on "), redis_url: server.said("resp door on ") };
        Ok(server)
    }

    /// So many of them on the same engines.
    pub async fn start_shared(binary: &Path, count: usize, engines: &Engines) -> Result<Vec<Self>> {
        let mut servers = Vec::new();
        for number in 0..count {
            let mut server = Self::start_with(binary, number, &engines.flags(), "shared: ").await?;
            server.connect = engines.connect();
            servers.push(server);
        }
        Ok(servers)
    }

    /// Reads what it says until it says `last`.
    async fn start_with(binary: &Path, number: usize, flags: &[String], last: &str) -> Result<Self> {
        let folder = PathBuf::from(format!("target/bench-data-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut child = Command::new(binary)
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(flags)
            .arg("--data")
            .arg(&folder)
            .env("REVEILLE_OPERATOR_KEY", KEY)
            .env("RUST_LOG", "warn")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}; is it built?", binary.display()))?;
        let mut lines = BufReader::new(child.stderr.take().context("the server's stderr")?).lines();
        let mut said: Vec<String> = Vec::new();
        while !said.iter().any(|line| line.starts_with(last)) {
            let Some(line) = lines.next_line().await? else {
                bail!("the server ended before it was ready: {}", said.join("; "))
            };
            said.push(line);
        }
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("server: {line}");
            }
        });
        let connect = Connect { nats_url: String::new(), redis_url: String::new() };
        let mut server = Self { child, folder, http: String::new(), connect, said };
        server.http = server.said("listening on http://");
        Ok(server)
    }

    /// What it said after these words.
    fn said(&self, words: &str) -> String {
        self.said.iter().find_map(|line| line.strip_prefix(words)).unwrap_or_default().to_owned()
    }

    /// CPU seconds that the server has used.
    pub fn cpu_seconds(&self) -> f64 {
        self.child.id().map_or(0.0, cpu_seconds_of)
    }

    /// Bytes that the server has had written to the disk.
    pub fn written_bytes(&self) -> u64 {
        let io = self.child.id().and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/io")).ok());
        let io = io.unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
    }

    /// A number from the metrics page.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: bench\r\nx-api-key: {KEY}\r\n\r\n");
        let answered = RawHttp::connect(&self.http).await?.exchange(request.as_bytes()).await?;
        let page = String::from_utf8_lossy(&answered.body).into_owned();
        let line = page.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .with_context(|| format!("no metric {name}"))
    }

    /// Resident memory in MiB.
    pub fn memory_mib(&self) -> f64 {
        let status = self
            .child
            .id()
            .and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok())
            .unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or_default() / 1024.0
    }

    pub async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        std::fs::remove_dir_all(&self.folder).context("removing the server's data")
    }
}

/// CPU seconds that a process has used.
pub fn cpu_seconds_of(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}
