//! One Redis, or a cluster. Nothing beyond the connections has to know which.

use super::super::RedisOptions;
use super::ANSWERS_WITHIN;
use crate::blobs::SLOT_TAG;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{
    Arg, Client, ClientTlsConfig, Cmd, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisFuture,
    RedisResult, TlsCertificates, Value,
};
use std::time::Duration;

/// Pause between connection attempts; callers meanwhile get `Unavailable`.
const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_LAST: Duration = Duration::from_millis(500);
const RECONNECTS: usize = 2;
/// Commands that wait to be written before callers wait.
const QUEUE: usize = 1024;

#[derive(Clone)]
pub enum RedisConnection {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

/// Where Redis is, and how it is spoken to.
pub struct Address {
    info: ConnectionInfo,
    tls: Option<TlsCertificates>,
}

impl Address {
    pub fn of(options: &RedisOptions) -> RedisResult<Self> {
        let mut info: ConnectionInfo = options.url.as_str().into_connection_info()?;
        if let Some(password) = &options.password {
            let settings = info.redis_settings().clone().set_password(password);
            info = info.set_redis_settings(settings);
        }
        let client_tls = options
            .tls_identity
            .clone()
            .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let is_told = client_tls.is_some() || options.tls_ca.is_some();
        let tls = is_told.then(|| TlsCertificates { client_tls, root_cert: options.tls_ca.clone() });
        Ok(Self { info, tls })
    }

    /// Connects in the background: a Redis that is unavailable now may be back in a moment.
    pub fn connect(&self, patience: Duration) -> RedisResult<RedisConnection> {
        let client = match &self.tls {
            None => Client::open(self.info.clone())?,
            Some(tls) => Client::build_with_tls(self.info.clone(), tls.clone())?,
        };
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(ANSWERS_WITHIN))
            .set_response_timeout(Some(patience))
            .set_min_delay(RECONNECT_FIRST)
            .set_max_delay(RECONNECT_LAST)
            .set_number_of_retries(RECONNECTS)
            .set_pipeline_buffer_size(QUEUE);
        ConnectionManager::new_lazy_with_config(client, config).map(RedisConnection::Single)
    }

    /// Learns the other nodes from the node at this address. `retries` is how often the client resends what failed,
    /// whether or not it was carried out.
    pub async fn connect_cluster(&self, patience: Duration, retries: u32) -> RedisResult<RedisConnection> {
        let mut builder = ClusterClientBuilder::new([self.info.clone()])
            .connection_timeout(ANSWERS_WITHIN)
            .response_timeout(patience)
            .min_retry_wait(RECONNECT_FIRST.as_millis() as u64)
            .max_retry_wait(RECONNECT_LAST.as_millis() as u64)
            .retries(retries);
        if let Some(tls) = &self.tls {
            builder = builder.certs(tls.clone());
        }
        builder.build()?.get_async_connection().await.map(RedisConnection::Cluster)
    }
}

impl ConnectionLike for RedisConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => {
                if !is_about_a_node(command) {
                    return connection.req_packed_command(command);
                }
                let ours = SingleNodeRoutingInfo::SpecificNode(Route::with_key(SLOT_TAG, SlotAddr::Master));
                Box::pin(connection.route_command(command.clone(), RoutingInfo::SingleNode(ours)))
            }
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

/// Keys determine their node. Commands without a key go to the node that has ours: loading scripts, and INFO.
fn is_about_a_node(command: &Cmd) -> bool {
    let Some(Arg::Simple(name)) = command.args_iter().next() else { return false };
    [&b"SCRIPT"[..], b"INFO", b"CONFIG", b"TIME", b"CLUSTER"].contains(&name)
}
