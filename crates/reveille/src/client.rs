//! Talking to a server: one blocking request at a time, errors in words.

use crate::args::Server;
use crate::serve::KEY_FILE;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::time::Duration;

const PAGE_LEN_MAX: usize = 500;
const ANSWER_WITHIN: Duration = Duration::from_secs(330);

pub struct Client {
    agent: ureq::Agent,
    url: String,
    key: String,
}

impl Client {
    pub fn new(server: &Server) -> Result<Self> {
        let url = server.url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") {
            bail!("--url: {url:?} must start with http:// (put a TLS proxy in front for https)");
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_WITHIN))
            .http_status_as_error(false)
            .build();
        Ok(Self { agent: config.into(), url, key: key(server)? })
    }

    pub fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        let request = self.agent.get(format!("{}{path}", self.url)).header("X-API-Key", &self.key);
        let request = query.iter().fold(request, |request, (name, value)| request.query(name, value));
        self.answer(request.call())
    }

    /// Items of a list, page by page, as many as are wanted.
    pub fn list(&self, path: &str, query: &[(&str, &str)], limit: usize) -> Result<Vec<Value>> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page_len = (limit - items.len()).min(PAGE_LEN_MAX).to_string();
            let mut asked = vec![("limit", page_len.as_str()), ("cursor", cursor.as_str())];
            asked.extend_from_slice(query);
            let page = self.get(path, &asked)?;
            items.extend(page["items"].as_array().into_iter().flatten().cloned());
            match page["next_cursor"].as_str() {
                Some(next) if items.len() < limit => next.clone_into(&mut cursor),
                _ => return Ok(items),
            }
        }
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("X-API-Key", &self.key);
        self.answer(request.send_json(body))
    }

    pub fn delete(&self, path: &str) -> Result<Value> {
        self.answer(self.agent.delete(format!("{}{path}", self.url)).header("X-API-Key", &self.key).call())
    }

    fn answer(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value> {
        let mut response = response.map_err(|error| {
            anyhow!("{} does not answer ({error}); is `reveille serve` running?", self.url)
        })?;
        let status = response.status().as_u16();
        let text = response
            .body_mut()
            .with_config()
            .limit(64 * 1024 * 1024)
            .read_to_string()
            .context("reading the answer")?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status < 300 {
            return Ok(body);
        }
        let words = body["error"].as_str().unwrap_or("no reason given");
        let job = body["job_id"].as_str().map_or(String::new(), |id| format!(" (job {id})"));
        bail!("{words}{job} [{status} {}]", body["code"].as_str().unwrap_or("-"))
    }
}

/// The key that was given, or the one a server on this machine left for us.
fn key(server: &Server) -> Result<String> {
    if let Some(key) = &server.key {
        return Ok(key.clone());
    }
    if let Some(key) =
        ["REVEILLE_OPERATOR_KEY", "CORDUM_API_KEY"].into_iter().find_map(|name| std::env::var(name).ok())
    {
        return Ok(key);
    }
    let path = server.data.join(KEY_FILE);
    let key = std::fs::read_to_string(&path).with_context(|| {
        format!("no key: give --key or REVEILLE_KEY ({} cannot be read either)", path.display())
    })?;
    Ok(key.trim().to_owned())
}
