//! Beats: how many a second the server takes over HTTP, in batches, and through the NATS door, each
//! beside a bare server of the same stack.

use crate::bare_process::Bare;
use crate::latencies::Latencies;
use crate::raw::{RawHttp, RawResponse};
use crate::report::BenchReport;
use crate::server::{BenchServer, KEY};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_wire::cap::Heartbeat;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::{packet, subject};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const AGENTS: usize = 1_000;
const CONNECTIONS: usize = 64;
const BATCH: usize = 1_000;
/// Beats on a NATS connection between two pings.
const BURST: usize = 256;
const NATS_CONNECTIONS: usize = 8;

pub async fn measure(report: &mut BenchReport, binary: &Path, seconds: u64) -> Result<()> {
    let long = Duration::from_secs(seconds);
    let server = BenchServer::start(binary).await?;
    let key = tenant_key(&server).await?;
    let bare = Bare::start("http").await?;

    let single: Vec<Bytes> =
        (0..AGENTS).map(|agent| http_request("/v1/agents/heartbeat", &key, &agent_beat(agent))).collect();
    http_load(&bare.address, &single, Duration::from_secs(1)).await?;
    let ceiling = http_load(&bare.address, &single, long).await?;
    http_load(&server.http, &single, Duration::from_secs(1)).await?;
    let beats = http_load(&server.http, &single, long).await?;
    report.add("HTTP beats, 1,000 agents, 64 connections", beats.a_second(), "beats/s", "≥ 50,000");
    report.add("  p99", beats.p99_ms(), "ms", "< 10");
    report.add("  a bare handler in the same run", ceiling.a_second(), "requests/s", "");
    report.add("  ratio", beats.a_second() / ceiling.a_second(), "of the bare handler", "");

    let body = format!("{{\"beats\":[{}]}}", (0..BATCH).map(agent_beat).collect::<Vec<_>>().join(","));
    let batches = vec![http_request("/api/v1/presence", &key, &body)];
    let taken = http_load(&server.http, &batches, long).await?;
    let in_all = taken.a_second() * BATCH as f64;
    report.add("HTTP beats in batches of 1,000", in_all, "beats/s", "≥ 500,000");
    report.add("  p99 of a batch", taken.p99_ms(), "ms", "");
    drop(bare);

    let bare = Bare::start("nats").await?;
    let ceiling = nats_load(&bare.address, long).await?;
    drop(bare);
    let nats = server.connect.nats_url.trim_start_matches("nats://").to_owned();
    let before = server.metric("cordum_scheduler_heartbeats_total").await?;
    let began = Instant::now();
    let sent = nats_load(&nats, long).await?;
    // A ping is answered when what came before it was read; the counter says what was taken.
    let taken = server.metric("cordum_scheduler_heartbeats_total").await? - before;
    let took = began.elapsed().as_secs_f64();
    ensure!(taken >= sent.a_second() * 0.9, "the server took {taken} beats only");
    report.add("CAP beats through the NATS door, 1,000 workers", taken / took, "beats/s", "≥ 200,000");
    report.add("  p99 of 256 beats and a ping", sent.p99_ms(), "ms", "< 10");
    report.add("  the bare door in the same run", ceiling.a_second(), "messages/s", "");
    report.add("  ratio", taken / took / ceiling.a_second(), "of the bare door", "");
    report.add("  server memory afterwards", server.memory_mib(), "MiB", "");
    server.stop().await
}

/// What a load came to.
pub struct LoadResult {
    answered: usize,
    seconds: f64,
    latencies: Latencies,
}

impl LoadResult {
    fn a_second(&self) -> f64 {
        self.answered as f64 / self.seconds
    }

    fn p99_ms(&self) -> f64 {
        self.latencies.at(99)
    }

    fn of(parts: Vec<Vec<f64>>, each: usize, seconds: f64) -> Self {
        let latencies = Latencies::of(parts.into_iter().flatten().collect());
        Self { answered: latencies.count() * each, seconds, latencies }
    }
}

/// Requests one after the other on each of many connections.
async fn http_load(address: &str, requests: &[Bytes], long: Duration) -> Result<LoadResult> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for connection in 0..CONNECTIONS.min(requests.len().max(8)) {
        let (address, requests) = (address.to_owned(), requests.to_vec());
        tasks.push(tokio::spawn(async move {
            let mut http = RawHttp::connect(&address).await?;
            let mut latencies = Vec::new();
            let mut next = connection * 13;
            while began.elapsed() < long {
                let asked = Instant::now();
                let RawResponse { status, .. } = http.exchange(&requests[next % requests.len()]).await?;
                ensure!((200..300).contains(&status), "the server answered {status}");
                latencies.push(asked.elapsed().as_secs_f64() * 1000.0);
                next += 1;
            }
            Ok::<_, anyhow::Error>(latencies)
        }));
    }
    let mut parts = Vec::new();
    for task in tasks {
        parts.push(task.await??);
    }
    Ok(LoadResult::of(parts, 1, began.elapsed().as_secs_f64()))
}

/// Beats in bursts, each followed by a ping that must be answered before the next burst.
async fn nats_load(address: &str, long: Duration) -> Result<LoadResult> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for connection in 0..NATS_CONNECTIONS {
        let address = address.to_owned();
        tasks.push(tokio::spawn(async move {
            let mut socket = TcpStream::connect(&address).await.context("connecting to the NATS door")?;
            socket.set_nodelay(true)?;
            socket.write_all(b"CONNECT {\"verbose\":false}\r\n").await?;
            let bursts: Vec<Bytes> = (0..4).map(|burst| cap_burst(connection * 4 + burst)).collect();
            let (mut latencies, mut buffer, mut next) = (Vec::new(), vec![0; 4096], 0);
            while began.elapsed() < long {
                let asked = Instant::now();
                socket.write_all(&bursts[next % bursts.len()]).await?;
                next += 1;
                // INFO comes once; a PONG ends with its newline.
                loop {
                    let read = socket.read(&mut buffer).await?;
                    ensure!(read > 0, "the door closed the connection");
                    if buffer[..read].windows(4).any(|word| word == b"PONG") {
                        break;
                    }
                }
                latencies.push(asked.elapsed().as_secs_f64() * 1000.0);
            }
            Ok::<_, anyhow::Error>(latencies)
        }));
    }
    let mut parts = Vec::new();
    for task in tasks {
        parts.push(task.await??);
    }
    Ok(LoadResult::of(parts, BURST, began.elapsed().as_secs_f64()))
}

fn cap_burst(number: usize) -> Bytes {
    let mut burst = Vec::new();
    for ix in 0..BURST {
        let id = format!("bench-worker-{:04}", (number * BURST + ix) % AGENTS);
        let heartbeat = Heartbeat {
            worker_id: id.clone(),
            pool: "bench".to_owned(),
            max_parallel_jobs: 4,
            cpu_load: (ix % 50) as f32,
            ..Heartbeat::default()
        };
        let packet = packet::encode(&packet::envelope(&id, &id, Millis(0), Payload::Heartbeat(heartbeat)));
        burst.extend_from_slice(format!("PUB {} {}\r\n", subject::HEARTBEAT, packet.len()).as_bytes());
        burst.extend_from_slice(&packet);
        burst.extend_from_slice(b"\r\n");
    }
    burst.extend_from_slice(b"PING\r\n");
    burst.into()
}

/// What `register_worker` sends.
fn agent_beat(number: usize) -> String {
    format!(
        "{{\"agent_id\":\"bench-agent-{number:04}\",\"agent_name\":\"bench\",\"status\":\"{}\",\
         \"active_sessions\":{},\"version\":\"0.27.0\",\"project\":\"default\",\"tenant_id\":null,\
         \"region\":\"iad\",\"host\":\"host-{number:04}\",\"started_at\":1783200000.0,\"ts\":1783200015.0}}",
        if number.is_multiple_of(3) { "busy" } else { "idle" },
        number % 3
    )
}

fn http_request(path: &str, key: &str, body: &str) -> Bytes {
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// A key of a tenant that may only beat and read.
pub async fn tenant_key(server: &BenchServer) -> Result<String> {
    let body = r#"{"name":"bench","tenant":"bench","scopes":["ingest","read"]}"#;
    let mut http = RawHttp::connect(&server.http).await?;
    let answered = http.exchange(&http_request("/api/v1/auth/keys", KEY, body)).await?;
    let reply: serde_json::Value = serde_json::from_slice(&answered.body)?;
    reply["secret"].as_str().map(str::to_owned).context("a key")
}
