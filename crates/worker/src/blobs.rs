//! Inputs and outputs in Redis, over one shared connection whose commands are pipelined.
//!
//! A Redis that is away is waited for: a command is tried again until it answers, within a limit. One that says that
//! another node has the key is one of a cluster, and from then on keys are looked for there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;

/// The longest input or output.
pub const BLOB_LEN_MAX: usize = 2 * 1024 * 1024;

/// How long an output is kept.
const OUTPUT_SECONDS: u64 = 86_400;
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long a Redis that is away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Commands on their way to the connection before callers wait.
const PIPELINE_MAX: usize = 1024;

/// Redis did not answer for too long; the last thing that went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(String);

pub struct BlobClient {
    redis: ConnectionManager,
    url: String,
    cluster: OnceCell<ClusterConnection>,
    is_away: AtomicBool,
}

impl BlobClient {
    /// Connects on first use.
    pub fn open(redis_url: &str) -> Result<Self, Error> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(ANSWER_WAIT_MAX))
            .set_connection_timeout(Some(CONNECT_WAIT_MAX))
            .set_min_delay(PAUSE_MIN)
            .set_max_delay(PAUSE_MAX)
            .set_number_of_retries(1)
            .set_pipeline_buffer_size(PIPELINE_MAX);
        let client = redis::Client::open(redis_url).map_err(Error::RedisUrl)?;
        let redis = ConnectionManager::new_lazy_with_config(client, config).map_err(Error::RedisUrl)?;
        let (url, cluster) = (redis_url.to_owned(), OnceCell::new());
        Ok(Self { redis, url, cluster, is_away: AtomicBool::new(false) })
    }

    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, Unreachable> {
        self.ask(redis::cmd("GET").arg(key)).await
    }

    pub async fn put(&self, key: &str, blob: &[u8]) -> Result<(), Unreachable> {
        self.ask(redis::cmd("SET").arg(key).arg(blob).arg("EX").arg(OUTPUT_SECONDS)).await
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Unreachable> {
        let give_up_at = Instant::now() + AWAY_MAX;
        let mut pause = PAUSE_MIN;
        loop {
            let problem = match timeout(ANSWER_WAIT_MAX, self.send(command)).await {
                Ok(Ok(answer)) => {
                    self.note_answer();
                    return Ok(answer);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            self.note_problem(&problem);
            if Instant::now() + pause >= give_up_at {
                return Err(Unreachable(problem));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn send<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        if self.cluster.get().is_none() {
            let answer = command.query_async(&mut self.redis.clone()).await;
            let moved = ErrorKind::Server(ServerErrorKind::Moved);
            if !answer.as_ref().is_err_and(|error: &redis::RedisError| error.kind() == moved) {
                return answer;
            }
        }
        let cluster = self.cluster.get_or_try_init(|| self.connect_to_cluster()).await?;
        command.query_async(&mut cluster.clone()).await
    }

    async fn connect_to_cluster(&self) -> RedisResult<ClusterConnection> {
        let client = ClusterClient::builder([self.url.as_str()])
            .connection_timeout(CONNECT_WAIT_MAX)
            .response_timeout(ANSWER_WAIT_MAX)
            .build()?;
        client.get_async_connection().await
    }

    fn note_problem(&self, problem: &str) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(problem, "Redis is unreachable; retrying");
        }
    }

    fn note_answer(&self) {
        // Reading first keeps the shared cache line clean on the way that is always taken.
        if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("Redis is reachable again");
        }
    }
}
