//! The client itself: where the server is, who asks, and how a question is put.

use crate::tls::Tls;
use crate::{Approvals, Error, Jobs, Pages, Presence, Runs, Workers};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::{Duration, Instant};

/// Longer than a server waits on anybody's behalf.
const ANSWER_WITHIN: Duration = Duration::from_secs(330);
/// Bytes of an answer.
const ANSWER_LEN_MAX: u64 = 64 * 1024 * 1024;
/// How long the server is asked to wait at a time. Proxies cut what is silent for a minute.
const POLL_MAX: Duration = Duration::from_secs(30);
/// Between two polls, in case that a server answers at once however long it was asked to wait.
const PAUSE: Duration = Duration::from_millis(100);
/// Signs that an id may have in a path. A dot is not among them: `..` would lead elsewhere.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A Reveille server, as one key sees it. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
    key: String,
    tenant: Option<String>,
    timeout: Duration,
    tls: Tls,
}

impl Client {
    /// Nobody is asked yet, so that only a url that is neither `http://` nor `https://` is refused.
    pub fn new(url: &str, key: impl Into<String>) -> Result<Self, Error> {
        let url = url.trim_end_matches('/').to_owned();
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Error::Url(url));
        }
        let (timeout, tls) = (ANSWER_WITHIN, Tls::default());
        Ok(Self { agent: agent(&url, timeout, &tls), url, key: key.into(), tenant: None, timeout, tls })
    }

    /// For operators that act for one tenant; every other key has its own.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// How long one exchange may take, what the server was asked to wait included; 330 s unless told.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { agent: agent(&self.url, timeout, &self.tls), timeout, ..self }
    }

    /// Believes servers whose certificate one of these authorities (PEM) has signed, and no others; without this, those
    /// that the system believes.
    pub fn trusting(self, authorities: &[u8]) -> Result<Self, Error> {
        let tls = self.tls.trusting(authorities)?;
        Ok(Self { agent: agent(&self.url, self.timeout, &tls), tls, ..self })
    }

    /// Shows this certificate (PEM, with those between it and its authority) to a server that asks for one.
    pub fn showing(self, certificates: &[u8], key: &[u8]) -> Result<Self, Error> {
        let tls = self.tls.showing(certificates, key)?;
        Ok(Self { agent: agent(&self.url, self.timeout, &tls), tls, ..self })
    }

    pub fn jobs(&self) -> Jobs<'_> {
        Jobs(self)
    }

    pub fn approvals(&self) -> Approvals<'_> {
        Approvals(self)
    }

    pub fn workers(&self) -> Workers<'_> {
        Workers(self)
    }

    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }

    pub fn presence(&self) -> Presence<'_> {
        Presence(self)
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Error> {
        let request = self.signed(self.agent.get(format!("{}{path}", self.url)));
        let request = query.iter().fold(request, |request, (name, value)| request.query(name, value));
        read(&self.answer(request.call())?)
    }

    /// An answer that is no JSON, such as `/metrics`.
    pub fn text(&self, path: &str) -> Result<String, Error> {
        self.answer(self.signed(self.agent.get(format!("{}{path}", self.url))).call())
    }

    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        let request = self.signed(self.agent.post(format!("{}{path}", self.url)));
        read(&self.answer(request.send_json(body))?)
    }

    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        read(&self.answer(self.signed(self.agent.delete(format!("{}{path}", self.url))).call())?)
    }

    /// Items of a list, as many as are wanted, fetched page by page as they are read.
    pub fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        limit: usize,
    ) -> Pages<'_, T> {
        Pages::new(self, path, query, limit)
    }

    /// Asks until it is over, or for so long. The server does the waiting.
    pub fn wait<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Duration,
        is_over: impl Fn(&T) -> bool,
    ) -> Result<T, Error> {
        let began = Instant::now();
        loop {
            let poll = patience.saturating_sub(began.elapsed()).min(POLL_MAX);
            let found = self.get(path, &[("wait", &format!("{}ms", poll.as_millis()))])?;
            if is_over(&found) {
                return Ok(found);
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(Error::WaitTimeout(patience));
            }
            pause(left.min(PAUSE));
        }
    }

    fn signed<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        let request = request.header("X-API-Key", &self.key);
        match &self.tenant {
            Some(tenant) => request.header("X-Tenant-ID", tenant),
            None => request,
        }
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<String, Error> {
        let mut response = response
            .map_err(|error| Error::Unreachable { url: self.url.clone(), reason: error.to_string() })?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(ANSWER_LEN_MAX).read_to_string();
        let text = body.map_err(|error| Error::Unreadable(error.to_string()))?;
        if status < 300 { Ok(text) } else { Err(Error::refused(status, &text)) }
    }
}

/// Without the key.
impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("url", &self.url)
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

/// An id as a part of a path.
pub(crate) fn segment(id: &str) -> String {
    utf8_percent_encode(id, SEGMENT).to_string()
}

fn agent(url: &str, timeout: Duration, tls: &Tls) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder();
    // Reading the system's certificates takes a while, and most servers are asked on the same machine.
    if url.starts_with("https://") {
        config = config.tls_config(tls.config());
    }
    let config = config
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        // The key would go along.
        .max_redirects(0)
        .build();
    config.into()
}

/// No answer at all is read as `null`: there was nothing to say.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let text = if text.is_empty() { "null" } else { text };
    serde_json::from_str(text).map_err(|error| Error::Unreadable(error.to_string()))
}

#[expect(clippy::disallowed_methods, reason = "this client blocks, and has no runtime to hold up")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
