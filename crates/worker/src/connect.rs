//! Where NATS and Redis are, and how the connection to NATS is kept.

use std::env;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use crate::error::Error;

/// Whether NATS is connected; a new connection is a change also when the last one went unnoticed.
pub type ConnectionWatch = watch::Receiver<bool>;

/// Messages that one subscription holds before it drops; a limit for an intake that has stalled.
const SUBSCRIPTION_LEN_MAX: usize = 65_536;
const RECONNECT_PAUSE_MIN_MS: u64 = 100;
const RECONNECT_PAUSE_MAX_MS: u64 = 2_000;
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
/// A connection that went silent is noticed after a few of these.
const PING_EVERY: Duration = Duration::from_secs(10);

/// The addresses of the bus and of the blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    /// `nats://[user:password@]host:port`, or `nats://token@host:port`; several with commas between.
    pub nats_url: String,
    /// `redis://[user:password@]host:port/db`.
    pub redis_url: String,
}

impl Default for Connect {
    fn default() -> Self {
        Self { nats_url: "nats://127.0.0.1:4222".into(), redis_url: "redis://127.0.0.1:6379/0".into() }
    }
}

impl Connect {
    /// `NATS_URL` and `REDIS_URL`, or the usual local ports.
    pub fn from_env() -> Self {
        let set = |name| env::var(name).ok().filter(|url| !url.is_empty());
        let local = Self::default();
        Self {
            nats_url: set("NATS_URL").unwrap_or(local.nats_url),
            redis_url: set("REDIS_URL").unwrap_or(local.redis_url),
        }
    }

    /// A client that connects in the background, again and again, and how its connection stands.
    pub(crate) async fn nats(&self, name: &str) -> Result<(Client, ConnectionWatch), Error> {
        let servers: Vec<ServerAddr> = self
            .nats_url
            .split(',')
            .map(|url| url.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(Error::NatsUrl)?;
        let (is_connected, link) = watch::channel(false);
        let options = credentials(&servers)
            .name(name)
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(reconnect_pause)
            .connection_timeout(CONNECT_WAIT_MAX)
            .ping_interval(PING_EVERY)
            .subscription_capacity(SUBSCRIPTION_LEN_MAX)
            .event_callback(move |event| {
                note(&event, &is_connected);
                std::future::ready(())
            });
        Ok((options.connect(servers).await?, link))
    }
}

fn note(event: &Event, is_connected: &watch::Sender<bool>) {
    match event {
        Event::Connected => {
            tracing::info!("connected to NATS");
            is_connected.send_replace(true);
        }
        Event::Disconnected => {
            tracing::warn!("NATS is unreachable; reconnecting");
            is_connected.send_replace(false);
        }
        Event::SlowConsumer(_) => tracing::error!("NATS messages were lost: the worker cannot keep up"),
        Event::Draining | Event::Closed => tracing::debug!(%event, "NATS"),
        _ => tracing::warn!(%event, "NATS"),
    }
}

/// The client does not look for credentials in addresses, so the first that are there are given to it.
fn credentials(servers: &[ServerAddr]) -> ConnectOptions {
    let options = ConnectOptions::new();
    let Some(server) = servers.iter().find(|server| server.has_user_pass()) else { return options };
    let user = unescaped(server.username().unwrap_or_default());
    match server.password() {
        Some(password) => options.user_and_password(user, unescaped(password)),
        None => options.token(user),
    }
}

/// Undoes the `%40` of addresses.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%').and_then(|digits| {
            let digits = str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Nothing before the first try, then 100 ms and twice as long every time.
fn reconnect_pause(tries: usize) -> Duration {
    let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    let pause_ms = if tries == 0 { 0 } else { RECONNECT_PAUSE_MIN_MS << doublings };
    Duration::from_millis(pause_ms.min(RECONNECT_PAUSE_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reconnect_waits_longer_every_time_up_to_its_limit() {
        let pauses = [0, 1, 2, 5, 6, 1000].map(|tries| reconnect_pause(tries).as_millis());
        assert_eq!(pauses, [0, 100, 200, 1600, 2000, 2000]);
    }

    #[test]
    fn credentials_are_read_as_they_were_meant() {
        assert_eq!(unescaped("p%40ss%3aword"), "p@ss:word");
        assert_eq!(unescaped("100%"), "100%");
        assert_eq!(unescaped("%zz%4"), "%zz%4");
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_named() {
        let connect = Connect { nats_url: "http://x".into(), ..Connect::default() };
        let error = connect.nats("w").await.err().unwrap();
        assert!(error.to_string().starts_with("NATS_URL: expected nats://"), "{error}");
    }
}
