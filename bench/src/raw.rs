//! The cheapest HTTP client that is still right: one request, one answer, no parsing beyond its length.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct RawHttp {
    socket: TcpStream,
    buffer: Vec<u8>,
}

pub struct RawResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

impl RawHttp {
    pub async fn connect(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(4096) })
    }

    pub async fn exchange(&mut self, request: &[u8]) -> Result<RawResponse> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        loop {
            if let Some(head) = self.buffer.windows(4).position(|end| end == b"\r\n\r\n") {
                let (status, len) = understood(&self.buffer[..head])?;
                let end = head + 4 + len;
                while self.buffer.len() < end {
                    self.read().await?;
                }
                return Ok(RawResponse { status, body: self.buffer[head + 4..end].to_vec() });
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<()> {
        if self.socket.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn understood(head: &[u8]) -> Result<(u16, usize)> {
    let head = std::str::from_utf8(head)?;
    let status = head.get(9..12).context("a status")?.parse()?;
    let len = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    Ok((status, len.unwrap_or(0)))
}
