//! The connections: commands travel together over one, and large values over another, so that a snapshot of a
//! million workers does not stand before a commit. A third is for whoever waits until there is something to read.

use super::RedisOptions;
use super::errors::is_unknown_outcome;
use crate::StoreError;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{
    Client, ClientTlsConfig, ConnectionInfo, FromRedisValue, IntoConnectionInfo, Pipeline, RedisResult,
    Script, ScriptInvocation, TlsCertificates,
};
use std::time::Duration;

/// How long Redis may take to answer, and to take a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const LARGE_ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long Redis may be asked to wait for something to come.
pub(super) const WAITS_MAX: Duration = Duration::from_secs(5);
/// Between tries to connect; whoever asks meanwhile is told that Redis is away.
const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_LAST: Duration = Duration::from_millis(500);
const RECONNECTS: usize = 2;
/// Commands that wait to be written before callers wait.
const QUEUE: usize = 1024;

#[derive(Clone)]
pub struct Link {
    small: ConnectionManager,
    large: ConnectionManager,
    waiting: ConnectionManager,
}

impl Link {
    /// Connects in the background: a Redis that is away now may be there in a moment.
    pub fn open(options: &RedisOptions) -> Result<Self, StoreError> {
        let client = client(options).map_err(|error| {
            StoreError::Refused(format!("the address of Redis is not one: {}", error.category()))
        })?;
        let manager = |patience| {
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(ANSWERS_WITHIN))
                .set_response_timeout(Some(patience))
                .set_min_delay(RECONNECT_FIRST)
                .set_max_delay(RECONNECT_LAST)
                .set_number_of_retries(RECONNECTS)
                .set_pipeline_buffer_size(QUEUE);
            ConnectionManager::new_lazy_with_config(client.clone(), config)
        };
        Ok(Self {
            small: manager(ANSWERS_WITHIN)?,
            large: manager(LARGE_ANSWERS_WITHIN)?,
            waiting: manager(ANSWERS_WITHIN + WAITS_MAX)?,
        })
    }

    /// Commands are such that twice is as good as once: one whose answer was lost is asked again.
    pub async fn command<T: FromRedisValue>(&self, command: &redis::Cmd) -> RedisResult<T> {
        twice(|| async { command.query_async(&mut self.small.clone()).await }).await
    }

    pub async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        twice(|| async { pipeline.query_async(&mut self.small.clone()).await }).await
    }

    /// For what carries values of any size.
    pub async fn large_pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        twice(|| async { pipeline.query_async(&mut self.large.clone()).await }).await
    }

    /// For one who waits for something to come. Nothing else travels with it, and it is asked once.
    pub async fn wait<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        pipeline.query_async(&mut self.waiting.clone()).await
    }

    /// A script that does not know itself again, such as one that takes a lock, is run once.
    pub async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> RedisResult<T> {
        script.invoke_async(&mut self.small.clone()).await
    }

    pub async fn run_surely<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> RedisResult<T> {
        twice(|| self.run(script)).await
    }

    /// Hands the scripts to Redis before anybody waits for them.
    pub async fn load(&self, scripts: &[&Script]) -> RedisResult<()> {
        for script in scripts {
            script.load_async(&mut self.small.clone()).await?;
        }
        Ok(())
    }
}

fn client(options: &RedisOptions) -> RedisResult<Client> {
    let mut info: ConnectionInfo = options.url.as_str().into_connection_info()?;
    if let Some(password) = &options.password {
        let settings = info.redis_settings().clone().set_password(password);
        info = info.set_redis_settings(settings);
    }
    if options.tls_ca.is_none() && options.tls_identity.is_none() {
        return Client::open(info);
    }
    let client_tls = options
        .tls_identity
        .clone()
        .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    Client::build_with_tls(info, TlsCertificates { client_tls, root_cert: options.tls_ca.clone() })
}

/// Does it again if nobody can say whether it was done.
async fn twice<T, F: Future<Output = RedisResult<T>>>(ask: impl Fn() -> F) -> RedisResult<T> {
    match ask().await {
        Err(error) if is_unknown_outcome(&error) => ask().await,
        answer => answer,
    }
}
