//! The throw-away server of the story: this very binary as a child process, in a folder that is removed afterwards.

use crate::client::ask;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use reveille_client::{Client, Error};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the console is looked for first.
const USUAL: &str = "127.0.0.1:8080";
const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
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
    operator: Client,
    /// Somebody of the tenant, who asks for all that is asked for.
    ann: Client,
    child: Child,
}

impl House {
    pub async fn open() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("reveille-demo-{:016x}", getrandom::u64()?));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        std::fs::write(folder.join("safety.yaml"), POLICY)?;
        let key = format!("vk_{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?);
        let (http, nats, resp) = (free(USUAL)?, free("127.0.0.1:0")?, free("127.0.0.1:0")?);
        let client = |key: &str| Client::new(&format!("http://{http}"), key);
        let operator = client(&key)?.timeout(ANSWER_WITHIN);
        let child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .args(["--http", &http.to_string(), "--nats-door", &nats.to_string()])
            .args(["--resp-door", &resp.to_string(), "--grpc", "off"])
            .arg("--policy")
            .arg(folder.join("safety.yaml"))
            .arg("--data")
            .arg(folder.join("data"))
            .env("REVEILLE_OPERATOR_KEY", &key)
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
        let mut house = Self { http, nats, resp, folder, ann: operator.clone(), operator, child };
        house.wait_until_ready().await?;
        let key = json!({ "name": "ann", "tenant": TENANT, "scopes": ["read", "write"] });
        let made: Value = house.decide(move |operator| operator.post("/api/v1/auth/keys", &key)).await?;
        house.ann = client(made["secret"].as_str().unwrap_or_default())?.timeout(ANSWER_WITHIN);
        Ok(house)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let _shown = ProgressLine::waiting("starting a throw-away server");
        let began = Instant::now();
        while self.ask(|client| client.get::<Value>("/readyz", &[])).await.is_err() {
            if self.child.try_wait()?.is_some() || began.elapsed() > READY_WITHIN {
                let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
                bail!("the server of the demo did not become ready:\n{log}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// As ann.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        ask(&self.ann, question).await.context("asking the server of the demo")
    }

    /// As the operator, who may decide about what ann asks for.
    pub async fn decide<T: Send + 'static>(
        &self,
        decision: impl FnOnce(&Client) -> Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        ask(&self.operator, decision).await.context("deciding at the server of the demo")
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
