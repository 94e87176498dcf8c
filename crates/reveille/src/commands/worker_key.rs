//! `reveille worker-key …`

use super::key::grant_of;
use crate::args::WorkerKeyCommand;
use crate::client::connect;
use crate::output;
use crate::serve::{new_key, write_private};
use anyhow::{Context, Result, bail};
use reveille_api_types::key::{Key, RegisterWorkerKey, RotateWorkerKey, RotatedWorkerKey, ServerKey};
use reveille_wire::key::{private_pem, public_pem};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(command: WorkerKeyCommand) -> Result<ExitCode> {
    match command {
        WorkerKeyCommand::Pair { file } => pair(&file)?,
        WorkerKeyCommand::Register {
            worker,
            public_key,
            tenant,
            agent,
            proof_key_id,
            expires,
            grant,
            server,
        } => {
            let body = RegisterWorkerKey {
                worker,
                public_key: read(&public_key)?,
                agent,
                proof_key_id,
                tenant,
                expires_at: expires,
                grant: grant_of(grant),
            };
            let answer: Value = connect(&server)?.post("/api/v1/auth/worker-keys", &body)?;
            output::answer(&server, &answer, |key: Key| say(&key))?;
        }
        WorkerKeyCommand::Rotate { id, public_key, overlap, server } => {
            let body =
                RotateWorkerKey { public_key: read(&public_key)?, overlap_sec: Some(overlap.as_secs()) };
            let path = format!("/api/v1/auth/worker-keys/{id}/rotate");
            let answer: Value = connect(&server)?.post(&path, &body)?;
            output::answer(&server, &answer, |RotatedWorkerKey { key, old_expires_at }| {
                say(&key);
                output::line(&format!("it takes the place of {id}, which ends at {old_expires_at}"));
            })?;
        }
        WorkerKeyCommand::Server { server } => {
            let answer: Value = connect(&server)?.get("/api/v1/auth/worker-keys/server", &[])?;
            output::answer(&server, &answer, |key: ServerKey| {
                eprintln!(
                    "{} signs with {}; signatures of workers: {}",
                    key.sender, key.key_id, key.signatures
                );
                output::line(key.public_key.trim_end());
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A key that is there is left there: somebody may sign with it.
fn pair(file: &Path) -> Result<()> {
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    if let Some(there) = [file, &public].into_iter().find(|path| path.exists()) {
        bail!("{} is there already", there.display());
    }
    let key = new_key()?;
    let writing = |path: &Path| format!("writing {}", path.display());
    write_private(file, private_pem(&key)?.trim_end()).with_context(|| writing(file))?;
    std::fs::write(&public, public_pem(key.verifying_key())?).with_context(|| writing(&public))?;
    output::line(&format!(
        "{} is the worker's, {} is for `worker-key register`",
        file.display(),
        public.display()
    ));
    Ok(())
}

fn say(key: &Key) {
    let Some(public) = &key.public_key else { return };
    output::line(&format!(
        "key {} of worker {} in tenant {}; its proof_key_id is {}",
        key.id, public.worker, key.tenant, public.proof_key_id
    ));
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}
