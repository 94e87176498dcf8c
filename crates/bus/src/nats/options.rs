//! The settings of a NATS bus. Nothing secret is ever shown or logged.

use super::errors::NatsOpenError;
use crate::MessageOrigin;
use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long an unsettled message is held back before redelivery, longer each time. The seeds' 10 minutes are the last
/// step: after a kill -9 a job waits for the first.
const BACKOFF: [Duration; 3] = [Duration::from_secs(30), Duration::from_mins(2), Duration::from_mins(10)];
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
const STREAM_BYTES_MAX: i64 = 1 << 30;

#[derive(Clone)]
pub struct NatsOptions {
    /// Addresses such as `nats://host:4222` or `tls://host`. A user and a password in the first of them apply if
    /// `login` names none.
    pub servers: Vec<String>,
    pub login: Login,
    pub tls: NatsTls,
    /// The name of this replica; all our messages carry it.
    pub replica: String,
    /// The identity given to other senders: NATS does not say who they are.
    pub origin: MessageOrigin,
    /// Copies of each stream in a cluster of NATS servers.
    pub stream_replicas: usize,
    /// How large the stream of jobs and results may grow before new ones are refused.
    pub stream_bytes_max: i64,
    /// Prefix for the names of our streams. For tests.
    pub stream_prefix: String,
    /// How long an unsettled message is held back after its first, second … delivery.
    pub backoff: Vec<Duration>,
    /// How often the server is told that a message is still in progress. It must be well below the first backoff.
    pub progress_every: Duration,
}

/// How we authenticate.
#[derive(Debug, Clone, Default)]
pub enum Login {
    #[default]
    Anonymous,
    Token(Secret),
    Password {
        user: String,
        password: Secret,
    },
    /// A file with a JWT and its key, as `nsc` writes it.
    CredentialsFile(PathBuf),
    /// The seed of an nkey.
    Nkey(Secret),
}

#[derive(Debug, Clone, Default)]
pub struct NatsTls {
    /// Nothing is sent unencrypted. An address with `tls://` or an authority implies this too.
    pub required: bool,
    /// The certificate authority of the server; nothing means those that the system trusts.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key, for a server that asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A secret, kept out of logs and debug output.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl NatsOptions {
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            login: Login::default(),
            tls: NatsTls::default(),
            replica: "reveille".to_owned(),
            origin: MessageOrigin::default(),
            stream_replicas: 1,
            stream_bytes_max: STREAM_BYTES_MAX,
            stream_prefix: String::new(),
            backoff: BACKOFF.to_vec(),
            progress_every: PROGRESS_EVERY,
        }
    }

    /// The servers' addresses without credentials: an address may contain a password.
    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>, NatsOpenError> {
        let addresses: Result<Vec<_>, _> = (1..)
            .zip(&self.servers)
            .map(|(number, text)| {
                let mut url =
                    text.parse::<ServerAddr>().map_err(|_| NatsOpenError::Address { number })?.into_inner();
                let cleaned = url.set_username("").and_then(|()| url.set_password(None));
                cleaned.map_err(|()| NatsOpenError::Address { number })?;
                ServerAddr::from_url(url).map_err(|_| NatsOpenError::Address { number })
            })
            .collect();
        addresses.and_then(
            |list| if list.is_empty() { Err(NatsOpenError::Address { number: 1 }) } else { Ok(list) },
        )
    }

    /// The same for people.
    pub(super) fn places(&self) -> String {
        let places = self.addresses().unwrap_or_default();
        let places: Vec<_> =
            places.iter().map(|place| format!("{}:{}", place.host(), place.port())).collect();
        places.join(", ")
    }

    pub(super) fn login(&self) -> Login {
        let first = self.servers.first().and_then(|text| text.parse::<ServerAddr>().ok());
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        match (&self.login, first.as_ref().map(|first| (first.username(), first.password()))) {
            (Login::Anonymous, Some((Some(user), Some(password)))) => {
                Login::Password { user: decoded(user), password: Secret(decoded(password)) }
            }
            // As other clients have it: a user alone is a token.
            (Login::Anonymous, Some((Some(token), None))) => Login::Token(Secret(decoded(token))),
            (login, _) => login.clone(),
        }
    }

    /// Puts who we are and how we speak into the client's own options.
    pub(super) fn apply(&self, options: ConnectOptions) -> Result<ConnectOptions, NatsOpenError> {
        let options = match self.login() {
            Login::Anonymous => options,
            Login::Token(token) => options.token(token.0),
            Login::Password { user, password } => options.user_and_password(user, password.0),
            Login::Nkey(seed) => options.nkey(seed.0),
            Login::CredentialsFile(path) => {
                let text = std::fs::read_to_string(&path)
                    .map_err(|why| NatsOpenError::File { path: path.clone(), why: why.to_string() })?;
                options.credentials(&text).map_err(|_| NatsOpenError::File {
                    path,
                    why: "it does not hold a JWT and a seed".to_owned(),
                })?
            }
        };
        let NatsTls { required, authority, certificate } = &self.tls;
        let (own, key) = certificate.as_ref().map(|(own, key)| (own, key)).unzip();
        for path in [authority.as_ref(), own, key].into_iter().flatten() {
            std::fs::File::open(path)
                .map_err(|why| NatsOpenError::File { path: path.clone(), why: why.to_string() })?;
        }
        let options = match authority {
            Some(path) => options.add_root_certificates(path.clone()),
            None => options,
        };
        let options = match certificate {
            Some((own, key)) => options.add_client_certificate(own.clone(), key.clone()),
            None => options,
        };
        Ok(options.require_tls(*required || authority.is_some()))
    }
}

impl Login {
    /// What was refused, for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Anonymous => "connections without a login".to_owned(),
            Self::Token(_) => "this token".to_owned(),
            Self::Password { user, .. } => format!("user {user:?} with this password"),
            Self::CredentialsFile(path) => format!("the credentials in {}", path.display()),
            Self::Nkey(_) => "this nkey".to_owned(),
        }
    }
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions")
            .field("servers", &self.places())
            .field("login", &self.login())
            .field("tls", &self.tls)
            .field("replica", &self.replica)
            .field("stream_replicas", &self.stream_replicas)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_used_and_never_shown() {
        let options = NatsOptions::new(["nats://reveille:p%40ss@127.0.0.1:4222", "tls://[::1]"]);
        let Login::Password { user, password } = options.login() else { panic!("{options:?}") };
        assert_eq!((user.as_str(), password.0.as_str()), ("reveille", "p@ss"));
        let shown = format!("{options:?} {:?}", options.addresses().unwrap());
        assert!(
            shown.contains("127.0.0.1:4222") && !shown.contains("ss@") && !shown.contains("p%40"),
            "{shown}"
        );
        assert_eq!(options.places(), "127.0.0.1:4222, ::1:4222");

        let options = NatsOptions { login: Login::Token(Secret::new("t0k")), ..options };
        assert!(matches!(options.login(), Login::Token(_)), "what is named beats the address");
        assert!(!format!("{options:?}").contains("t0k"));
        assert!(matches!(NatsOptions::new(["nats://t0k@host"]).login(), Login::Token(_)));
    }

    #[test]
    fn a_bad_address_is_named_by_its_place() {
        for servers in [vec![], vec!["http://host"], vec!["nats://ok", "nats://u:secret@"]] {
            let number = servers.len().max(1);
            let error = NatsOptions::new(servers).addresses().unwrap_err().to_string();
            assert!(error.contains(&format!("number {number}")) && !error.contains("secret"), "{error}");
        }
    }
}
