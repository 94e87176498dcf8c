//! One kept-alive HTTP connection, as a submitter uses it.

use crate::server::KEY;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    pub async fn open(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, host: address.to_owned() })
    }

    pub async fn submit(&mut self, body: Bytes) -> Result<String> {
        let answer = self.call("POST", "/api/v1/jobs", body).await?;
        let reply: serde_json::Value = serde_json::from_slice(&answer)?;
        reply["job_id"].as_str().map(str::to_owned).context("the answer has no job_id")
    }

    pub async fn get(&mut self, path: &str) -> Result<Bytes> {
        self.call("GET", path, Bytes::new()).await
    }

    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<Bytes> {
        self.call("POST", path, body).await
    }

    async fn call(&mut self, method: &str, path: &str, body: Bytes) -> Result<Bytes> {
        let request =
            Request::builder().method(method).uri(path).header("host", &self.host).header("x-api-key", KEY);
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}
