//! Why a worker or a workspace could not start. Once it runs, nothing ends it but its shutdown signal,
//! and a workspace also the registry's word that it was retired.

use reveille_core::id::BadId;
use reveille_wire::key::BadKey;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a worker needs at least one handler")]
    NoHandler,
    #[error("{0}")]
    Id(#[from] BadId),
    #[error("{0}")]
    Key(#[from] BadKey),
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
    #[error("{what}: expected http[s]://host[:port], got {url:?}")]
    HttpUrl { what: &'static str, url: String },
    #[error("VOICEGW_API_KEY: expected printable characters only")]
    ApiKey,
    #[error("workspace id {0:?}: expected 1 to 128 letters, digits, '-' and '_'")]
    WorkspaceId(String),
    /// Whoever is named as `forwarded_to` has taken its place.
    #[error("this workspace was retired{}", forwarded(forwarded_to.as_deref()))]
    Retired { forwarded_to: Option<String> },
}

fn forwarded(to: Option<&str>) -> String {
    to.map_or_else(String::new, |to| format!("; its place was taken by {to}"))
}
