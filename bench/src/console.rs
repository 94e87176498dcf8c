//! The console's pages with 100,000 jobs and 5,000 workers in the store: how soon a page is there, and how large it is.

use crate::http::Connection;
use crate::report::BenchReport;
use crate::server::{BenchServer, KEY};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use tokio::net::TcpStream;

const JOBS: usize = 100_000;
const WORKERS: usize = 5_000;
const SUBMITTERS: usize = 64;
const LOOKS: usize = 40;
const PAGES: [&str; 16] = [
    "/",
    "/ui/fleet",
    "/ui/fleet?by=tenant",
    "/ui/workers/agent-00001?contract=voicegateway&tenant=default",
    "/ui/jobs",
    "/ui/jobs?state=SCHEDULED",
    "/ui/jobs?topic=job.bench.t7",
    "/ui/jobs?topic=job.nobodys",
    "/ui/approvals",
    "/ui/quarantine",
    "/ui/dlq",
    "/ui/workflows",
    "/ui/runs",
    "/ui/policy",
    "/ui/audit",
    "/ui/system",
];

pub async fn measure(report: &mut BenchReport, binary: &Path) -> Result<()> {
    let server = BenchServer::start(binary).await?;
    fill(&server).await.context("filling the store")?;
    let mut browser = Browser::sign_in(&server.http).await?;
    let (mut slowest, mut largest) = (("", 0.0), ("", 0.0));
    for page in PAGES {
        let (mut took, mut len) = (Vec::with_capacity(LOOKS), 0);
        for _ in 0..LOOKS {
            let began = Instant::now();
            len = browser.get(page).await?.len();
            took.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        took.sort_by(f64::total_cmp);
        let p95 = took[LOOKS * 95 / 100 - 1];
        report.add(format!("console {page}, p95"), p95, "ms", "< 100");
        if p95 > slowest.1 {
            slowest = (page, p95);
        }
        if len as f64 / 1000.0 > largest.1 {
            largest = (page, len as f64 / 1000.0);
        }
    }
    report.add(format!("console, the slowest page ({}), p95", slowest.0), slowest.1, "ms", "< 100");
    report.add(format!("console, the largest page ({})", largest.0), largest.1, "kB", "< 300");
    Ok(())
}

async fn fill(server: &BenchServer) -> Result<()> {
    let mut submitters = Vec::new();
    for number in 0..SUBMITTERS {
        let mut connection = Connection::open(&server.http).await?;
        submitters.push(tokio::spawn(async move {
            for job in (number..JOBS).step_by(SUBMITTERS) {
                let topic = format!("job.bench.t{}", job % 50);
                let body = json!({ "topic": topic, "context": { "n": job } });
                connection.submit(Bytes::from(body.to_string())).await?;
            }
            anyhow::Ok(())
        }));
    }
    for submitter in submitters {
        submitter.await??;
    }
    let mut connection = Connection::open(&server.http).await?;
    for number in 0..WORKERS {
        let name = format!("agent-{number:05}");
        let status = if number % 2 == 0 { "idle" } else { "busy" };
        let beat = json!({ "agent_id": name, "agent_name": name, "status": status, "active_sessions": number % 2, "host": "box" });
        connection.post("/v1/agents/heartbeat", Bytes::from(beat.to_string())).await?;
    }
    Ok(())
}

/// What asks for pages: it has a cookie, and takes them packed.
struct Browser {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    cookie: String,
}

impl Browser {
    async fn sign_in(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (mut sender, connection) = handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let request = Request::post("/ui/sign-in")
            .header("host", address)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(format!("key={KEY}"))))?;
        let response = sender.send_request(request).await?;
        let cookie = response.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no cookie")?.to_owned();
        response.into_body().collect().await?;
        Ok(Self { sender, host: address.to_owned(), cookie })
    }

    async fn get(&mut self, page: &str) -> Result<Bytes> {
        let request = Request::get(page)
            .header("host", &self.host)
            .header("cookie", &self.cookie)
            .header("accept-encoding", "gzip")
            .body(Full::new(Bytes::new()))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        ensure!(response.status().is_success(), "{page}: {}", response.status());
        Ok(response.into_body().collect().await?.to_bytes())
    }
}
