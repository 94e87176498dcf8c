//! A reader of server-sent events.

use axum::body::Body;
use axum::http::HeaderMap;
use http_body_util::BodyExt;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::timeout;

/// A client that reads when it is asked to, and not before.
pub struct Sse {
    pub headers: HeaderMap,
    body: Body,
    frames: VecDeque<String>,
    read: Vec<u8>,
}

impl Sse {
    pub(crate) fn new(headers: HeaderMap, body: Body) -> Self {
        Self { headers, body, frames: VecDeque::new(), read: Vec::new() }
    }

    /// The next frame as it came, if one comes within this time.
    pub async fn raw_within(&mut self, patience: Duration) -> Option<String> {
        while self.frames.is_empty() {
            let frame = timeout(patience, self.body.frame()).await.ok()??;
            self.read.extend_from_slice(frame.unwrap().data_ref().unwrap());
            while let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.read.split_off(end + 2);
                let frame = std::mem::replace(&mut self.read, rest);
                self.frames.push_back(String::from_utf8(frame).unwrap().trim_end().to_owned());
            }
        }
        self.frames.pop_front()
    }

    /// Reads until the server ends the stream.
    pub async fn end(&mut self) {
        while let Some(frame) = self.body.frame().await {
            frame.unwrap();
        }
    }

    pub async fn raw(&mut self) -> String {
        self.raw_within(Duration::from_mins(1)).await.unwrap()
    }

    /// The next frame of the console's stream: one line of data and nothing else.
    pub async fn data(&mut self) -> Value {
        let raw = self.raw().await;
        let json = raw.strip_prefix("data: ").unwrap_or_else(|| panic!("{raw}"));
        assert!(!json.contains('\n'), "{raw}");
        serde_json::from_str(json).unwrap()
    }

    /// The next frame of this type; others may come before it.
    pub async fn until(&mut self, kind: &str) -> Value {
        for _ in 0..50 {
            let frame = self.data().await;
            if frame["type"] == kind {
                return frame;
            }
        }
        panic!("no {kind}");
    }

    /// The next event of our own stream: its id, its name, its data.
    pub async fn event(&mut self) -> (String, String, Value) {
        loop {
            let raw = self.raw().await;
            let line = |name: &str| {
                let found = raw.lines().find_map(|line| line.strip_prefix(name));
                found.unwrap_or_default().to_owned()
            };
            if !raw.starts_with(':') {
                return (line("id: "), line("event: "), serde_json::from_str(&line("data: ")).unwrap());
            }
        }
    }

    pub async fn has_ended(&mut self) -> bool {
        timeout(Duration::from_secs(5), self.body.frame()).await.is_ok_and(|frame| frame.is_none())
    }
}
