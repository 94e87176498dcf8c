//! Asking a server: where it is, and with which key.

use crate::args::ServerArgs;
use crate::serve::KEY_FILE;
use anyhow::{Context, Result};
use reveille_client::{Client, Error};
use std::path::Path;
use tokio::task::spawn_blocking;

/// The server that the command line names.
pub fn connect(server: &ServerArgs) -> Result<Client> {
    let mut client = Client::new(&server.url, key(server)?).context("--url")?;
    if let Some(authority) = &server.ca {
        client = client.trusting(&file("--ca", authority)?).context("--ca")?;
    }
    if let (Some(certificate), Some(key)) = (&server.cert, &server.cert_key) {
        let (certificate, key) = (file("--cert", certificate)?, file("--cert-key", key)?);
        client = client.showing(&certificate, &key).context("--cert and --cert-key")?;
    }
    Ok(client)
}

fn file(flag: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{flag}: {} cannot be read", path.display()))
}

/// Asks from where nothing may block.
pub async fn ask<T: Send + 'static>(
    client: &Client,
    question: impl FnOnce(&Client) -> Result<T, Error> + Send + 'static,
) -> Result<T> {
    let client = client.clone();
    Ok(spawn_blocking(move || question(&client)).await??)
}

/// The key that was given, or the one a server on this machine left for us.
fn key(server: &ServerArgs) -> Result<String> {
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
