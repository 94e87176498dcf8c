//! Why a worker could not start. Once it runs, nothing ends it but its shutdown signal.

use reveille_core::id::BadId;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a worker needs at least one handler")]
    NoHandler,
    #[error("{0}")]
    Id(#[from] BadId),
    #[error("{what} {name:?} must not have a wildcard or an empty part")]
    Subject { what: &'static str, name: String },
    #[error("NATS_URL: expected nats://[user:password@]host:port: {0}")]
    NatsUrl(std::io::Error),
    #[error("REDIS_URL: expected redis://[user:password@]host:port/db: {0}")]
    RedisUrl(redis::RedisError),
    #[error("cannot connect to NATS: {0}")]
    Nats(#[from] async_nats::ConnectError),
    #[error("cannot subscribe: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}
