//! The connections: commands share one, and large values use another, so that a snapshot of a million workers does
//! not delay a commit. A third is for blocking reads.

mod connection;

use super::RedisOptions;
use super::errors::{is_unknown_outcome, was_not_done};
use super::script::Invocation;
use crate::StoreError;
use connection::{Address, RedisConnection};
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisResult, Script, ServerErrorKind};
use std::time::Duration;

/// How long Redis may take to answer, and to accept a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const LARGE_ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// The longest blocking read.
pub(super) const WAITS_MAX: Duration = Duration::from_secs(5);
/// How many times a redirected command is retried on a cluster, and after which pause.
const REDIRECTS: u32 = 3;
const REDIRECT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct RedisLink {
    small: RedisConnection,
    large: RedisConnection,
    waiting: RedisConnection,
}

impl RedisLink {
    /// Detects what kind of Redis it is, and connects.
    pub async fn open(options: &RedisOptions) -> Result<Self, StoreError> {
        let address = Address::of(options).map_err(|error| {
            StoreError::Refused(format!("the address of Redis is not one: {}", error.category()))
        })?;
        let small = address.connect(ANSWERS_WITHIN)?;
        let about: String = redis::cmd("INFO").arg("cluster").query_async(&mut small.clone()).await?;
        if !about.contains("cluster_enabled:1") {
            let (large, waiting) = (LARGE_ANSWERS_WITHIN, ANSWERS_WITHIN + WAITS_MAX);
            return Ok(Self { small, large: address.connect(large)?, waiting: address.connect(waiting)? });
        }
        // The client by itself would resend what may have been done. For blobs that is harmless.
        Ok(Self {
            small: address.connect_cluster(ANSWERS_WITHIN, 0).await?,
            large: address.connect_cluster(LARGE_ANSWERS_WITHIN, REDIRECTS).await?,
            waiting: address.connect_cluster(ANSWERS_WITHIN + WAITS_MAX, 0).await?,
        })
    }

    pub fn is_to_a_cluster(&self) -> bool {
        matches!(self.small, RedisConnection::Cluster(_))
    }

    /// For idempotent commands: one whose answer was lost is sent again.
    pub async fn command<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        twice(|| self.command_once(command)).await
    }

    /// For a command that is not idempotent.
    pub async fn command_once<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        self.redirected(|| async { command.query_async(&mut self.small.clone()).await }).await
    }

    pub async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        let ask = || async { pipeline.query_async(&mut self.small.clone()).await };
        twice(|| self.redirected(ask)).await
    }

    /// For what carries values of any size.
    pub async fn large_pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        twice(|| async { pipeline.query_async(&mut self.large.clone()).await }).await
    }

    /// The same, for a key that may be on any node.
    pub async fn large_command<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        twice(|| async { command.query_async(&mut self.large.clone()).await }).await
    }

    /// For blocking reads. Nothing else shares this connection, and a command is sent once.
    pub async fn wait<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        self.redirected(|| async { pipeline.query_async(&mut self.waiting.clone()).await }).await
    }

    /// A script that does not recognize a repetition, such as one that takes a lock, is run once.
    pub(crate) async fn run<T: FromRedisValue>(&self, call: &Invocation<'_>) -> RedisResult<T> {
        match self.command_once(&call.command).await {
            // Redis was restarted.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.load(&[call.script]).await?;
                self.command_once(&call.command).await
            }
            answer => answer,
        }
    }

    pub(crate) async fn run_surely<T: FromRedisValue>(&self, call: &Invocation<'_>) -> RedisResult<T> {
        twice(|| self.run(call)).await
    }

    /// Loads the scripts into Redis before anyone waits for them.
    pub async fn load(&self, scripts: &[&Script]) -> RedisResult<()> {
        for script in scripts {
            script.load_async(&mut self.small.clone()).await?;
        }
        Ok(())
    }

    /// A cluster reports when the wrong node was asked, and by then the client looks for the right one.
    async fn redirected<T, F: Future<Output = RedisResult<T>>>(&self, ask: impl Fn() -> F) -> RedisResult<T> {
        let mut answer = ask().await;
        for _ in 0..REDIRECTS {
            match &answer {
                Err(error) if self.is_to_a_cluster() && was_not_done(error) => {}
                _ => break,
            }
            tokio::time::sleep(REDIRECT_PAUSE).await;
            answer = ask().await;
        }
        answer
    }
}

/// Retries if it is unknown whether it was done.
async fn twice<T, F: Future<Output = RedisResult<T>>>(ask: impl Fn() -> F) -> RedisResult<T> {
    match ask().await {
        Err(error) if is_unknown_outcome(&error) => ask().await,
        answer => answer,
    }
}
