//! The throw-away server of the story: this very binary as a child process, in a folder that is removed afterwards.

use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

/// Where the console is looked for first.
const USUAL: &str = "127.0.0.1:8080";
const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A worker that is silent for so long is dead: nobody wants to watch for half a minute.
const TTL_SECONDS: &str = "6";
/// Whose fleet it is. Whoever opens the console is let in as somebody of this tenant.
pub const TENANT: &str = "demo";
const POLICY: &str = "\
version: demo
default_decision: deny
rules:
  - {id: hands-off-prod, match: {risk_tags: [prod-data]}, decision: deny, reason: agents do not touch production data}
  - {id: ask-a-person, match: {topics: [job.demo.deploy]}, decision: require_approval, reason: a deploy needs a person's yes}
  - {id: the-rest, match: {topics: ['job.demo.*']}, decision: allow}
";

pub struct House {
    pub http: SocketAddr,
    pub nats: SocketAddr,
    pub resp: SocketAddr,
    folder: PathBuf,
    agent: ureq::Agent,
    operator: String,
    /// Of somebody of the tenant, who asks for all that is asked for.
    ann: String,
    child: Child,
}

impl House {
    pub async fn open() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("reveille-demo-{:016x}", getrandom::u64()?));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        std::fs::write(folder.join("safety.yaml"), POLICY)?;
        let operator = format!("vk_{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?);
        let (http, nats, resp) = (free(USUAL)?, free("127.0.0.1:0")?, free("127.0.0.1:0")?);
        let child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .args(["--http", &http.to_string(), "--nats-door", &nats.to_string()])
            .args(["--resp-door", &resp.to_string(), "--grpc", "off"])
            .arg("--policy")
            .arg(folder.join("safety.yaml"))
            .arg("--data")
            .arg(folder.join("data"))
            .env("REVEILLE_OPERATOR_KEY", &operator)
            .env("REVEILLE_AUTH_OPEN", "true")
            .env("REVEILLE_AUTH_OPEN_TENANT", TENANT)
            .env("REVEILLE_DOORS_TENANT", TENANT)
            .env("REVEILLE_FLEET_CAP_TTL_SECONDS", TTL_SECONDS)
            .env("REVEILLE_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("server.log"))?)
            .spawn()
            .context("starting the server of the demo")?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_mins(1)))
            .http_status_as_error(false)
            .build();
        let mut house =
            Self { http, nats, resp, folder, agent: config.into(), operator, ann: String::new(), child };
        house.wait_until_ready().await?;
        let key = json!({ "name": "ann", "tenant": TENANT, "scopes": ["read", "write"] });
        let made = house.call(&house.operator, "/api/v1/auth/keys", Some(key)).await?;
        made.1["secret"].as_str().unwrap_or_default().clone_into(&mut house.ann);
        Ok(house)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let _shown = Progress::waiting("starting a throw-away server");
        let began = Instant::now();
        while !matches!(self.call("", "/readyz", None).await, Ok((200, _))) {
            if self.child.try_wait()?.is_some() || began.elapsed() > READY_WITHIN {
                let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
                bail!("the server of the demo did not become ready:\n{log}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// As ann.
    pub async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.call(&self.ann, path, None).await?.1)
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<(u16, Value)> {
        self.call(&self.ann, path, Some(body)).await
    }

    /// As the operator, who may decide about what ann asks for.
    pub async fn decide(&self, path: &str) -> Result<Value> {
        Ok(self.call(&self.operator, path, Some(json!({ "reason": "the demo goes on" }))).await?.1)
    }

    async fn call(&self, key: &str, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        let url = format!("http://{}{path}", self.http);
        let (agent, key) = (self.agent.clone(), key.to_owned());
        spawn_blocking(move || {
            let response = match body {
                None => agent.get(url).header("X-API-Key", &key).call(),
                Some(body) => agent.post(url).header("X-API-Key", &key).send_json(body),
            };
            let mut response = response.context("asking the server of the demo")?;
            let status = response.status().as_u16();
            Ok((status, response.body_mut().read_json().unwrap_or(Value::Null)))
        })
        .await?
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The wanted address, or another port there if it is taken.
fn free(wanted: &str) -> Result<SocketAddr> {
    let listener = TcpListener::bind(wanted).or_else(|_| TcpListener::bind("127.0.0.1:0"))?;
    Ok(listener.local_addr()?)
}
