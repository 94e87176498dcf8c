//! What no caller can see of a letter: when exactly it has left, and whom a client with other roots trusts.

mod handover;
mod tls;

use crate::{A2aRequest, Received};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

fn request(url: impl Into<String>) -> A2aRequest {
    A2aRequest {
        url: url.into(),
        body: Bytes::from_static(b"{\"a\":1}"),
        headers: Vec::new(),
        patience: Duration::from_mins(1),
    }
}

/// How often `received` was called.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn received(&self) -> Received {
        let count = Arc::clone(&self.0);
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reads the rest of a request that begins with this text.
async fn read_on(stream: &mut (impl AsyncRead + Unpin), text: &mut String) {
    while !is_whole(text) {
        text.push(char::from(stream.read_u8().await.unwrap()));
    }
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= announced.map_or(0, |digits| digits.parse().unwrap())
}
