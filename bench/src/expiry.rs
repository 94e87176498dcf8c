//! Deaths among the living: with a large fleet beating, how late after its TTL is a silent worker
//! declared dead, as a subscriber of the event stream sees it?

use crate::latencies::Latencies;
use crate::report::BenchReport;
use crate::server::{BenchServer, KEY};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_wire::cap::Heartbeat;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::{packet, subject};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const WORKERS: usize = 100_000;
/// One in so many falls silent.
const DEATHS_ONE_IN: usize = 50;
const BEAT_EVERY: Duration = Duration::from_secs(5);
const TTL: Duration = Duration::from_secs(30);
const SLICES: usize = 500;

pub async fn measure(report: &mut BenchReport, binary: &Path) -> Result<()> {
    let server = BenchServer::start(binary).await?;
    let nats = server.connect.nats_url.trim_start_matches("nats://").to_owned();
    let mut socket = TcpStream::connect(&nats).await?;
    socket.set_nodelay(true)?;
    socket.write_all(b"CONNECT {\"verbose\":false}\r\n").await?;
    // Everybody comes and beats twice; then some fall silent, each after its last beat.
    let mut last_beat: HashMap<String, Instant> = HashMap::new();
    for round in 0..2 {
        beat_round(
            &mut socket,
            |_| true,
            |id, at| {
                if round == 1 {
                    last_beat.insert(id, at);
                }
            },
        )
        .await?;
    }
    let events = tokio::spawn(deaths(server.http.clone(), WORKERS / DEATHS_ONE_IN));
    let rounds = (TTL.as_secs() / BEAT_EVERY.as_secs()) + 2;
    for _ in 0..rounds {
        beat_round(&mut socket, |number| !number.is_multiple_of(DEATHS_ONE_IN), |_, _| {}).await?;
    }
    let seen = events.await??;
    let late = seen
        .iter()
        .filter_map(|(id, at)| {
            let due = *last_beat.get(id)? + TTL;
            Some((at.saturating_duration_since(due)).as_secs_f64() * 1000.0)
        })
        .collect();
    let (late, deaths) = (Latencies::of(late), WORKERS / DEATHS_ONE_IN);
    ensure!(late.count() == deaths, "{} deaths were seen", late.count());
    let what = format!("{WORKERS} workers beating, {deaths} fall silent: death noticed after the TTL");
    report.add(format!("{what}, p50"), late.at(50), "ms", "");
    report.add(format!("{what}, p99"), late.at(99), "ms", "< 100");
    report.add("  server memory", server.memory_mib(), "MiB", "");
    server.stop().await
}

/// One beat of each worker, spread over the interval.
async fn beat_round(
    socket: &mut TcpStream,
    beats: impl Fn(usize) -> bool,
    mut sent: impl FnMut(String, Instant),
) -> Result<()> {
    let began = Instant::now();
    let mut buffer = [0; 1024];
    for slice in 0..SLICES {
        let (mut burst, mut ids) = (Vec::new(), Vec::new());
        for number in
            (slice * WORKERS / SLICES..(slice + 1) * WORKERS / SLICES).filter(|number| beats(*number))
        {
            let id = format!("w-{number:06}");
            let heartbeat = Heartbeat { worker_id: id.clone(), max_parallel_jobs: 1, ..Heartbeat::default() };
            let packet =
                packet::encode(&packet::envelope(&id, &id, Millis(0), Payload::Heartbeat(heartbeat)));
            burst.extend_from_slice(format!("PUB {} {}\r\n", subject::HEARTBEAT, packet.len()).as_bytes());
            burst.extend_from_slice(&packet);
            burst.extend_from_slice(b"\r\n");
            ids.push(id);
        }
        socket.write_all(&burst).await?;
        let at = Instant::now();
        for id in ids {
            sent(id, at);
        }
        // What the door says in between is of no interest, and must not fill the socket.
        while socket.try_read(&mut buffer).is_ok_and(|read| read > 0) {}
        let due = BEAT_EVERY * (slice as u32 + 1) / SLICES as u32;
        tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
    }
    Ok(())
}

/// Reads the event stream until so many workers have left.
async fn deaths(address: String, count: usize) -> Result<Vec<(String, Instant)>> {
    let mut socket = TcpStream::connect(&address).await?;
    let request =
        format!("GET /api/v1/events?kinds=worker HTTP/1.1\r\nhost: bench\r\nx-api-key: {KEY}\r\n\r\n");
    socket.write_all(&Bytes::from(request)).await?;
    let mut lines = BufReader::new(socket);
    let (mut seen, mut line, mut is_death) = (Vec::new(), String::new(), false);
    while seen.len() < count {
        line.clear();
        let read = tokio::time::timeout(Duration::from_mins(1), lines.read_line(&mut line)).await;
        ensure!(read.context("no more deaths came")?? > 0, "the stream ended");
        if let Some(kind) = line.strip_prefix("event:") {
            is_death = kind.trim() == "worker.left";
        } else if let Some(data) = line.strip_prefix("data:").filter(|_| is_death) {
            let event: serde_json::Value = serde_json::from_str(data)?;
            seen.extend(event["worker_id"].as_str().map(|id| (id.to_owned(), Instant::now())));
        }
    }
    Ok(seen)
}
