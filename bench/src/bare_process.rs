//! Starts a bare server as a process of its own, so that it has as much of the machine as the real one.

use anyhow::{Context, Result};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

pub struct Bare {
    pub address: String,
    /// Ends with this.
    _child: Child,
}

impl Bare {
    pub async fn start(kind: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bare", kind])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting a bare server")?;
        let mut lines = BufReader::new(child.stderr.take().context("its stderr")?).lines();
        let line = lines.next_line().await?.context("the bare server said nothing")?;
        let address = line.rsplit("//").next().context("an address")?.to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { address, _child: child })
    }
}
