//! Files of checkpoints: JSON, a line each, so that they can be appended to, and read by anything.
//!
//! The first line names the key that the others were signed with. A line like it stands wherever the server's key has
//! changed since; it says what to look for, and is not what makes a key trusted.

use anyhow::{Context, Result, anyhow, bail};
use reveille_api_types::audit::{CheckpointLine, SigningKey};
use reveille_core::audit::Checkpoint;
use reveille_engine::VerifyingKey;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

const FORMAT: &str = "reveille.audit.checkpoints.1";
/// The largest file that is read: a line a day of a thousand tenants for six years.
const FILE_LEN_MAX: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyLine {
    format: String,
    key_id: String,
    public_key: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Key(KeyLine),
    Checkpoint(CheckpointLine),
}

/// A checkpoint whose signature holds.
pub struct SignedLine {
    /// Counts from one.
    pub line: usize,
    pub checkpoint: Checkpoint,
}

/// Lines for a file, or for standard output.
pub fn lines(key: Option<&SigningKey>, checkpoints: &[CheckpointLine]) -> Result<String> {
    let mut text = String::new();
    if let Some(SigningKey { key_id, public_key }) = key.cloned() {
        let line = KeyLine { format: FORMAT.to_owned(), key_id, public_key };
        text = serde_json::to_string(&line)? + "\n";
    }
    for checkpoint in checkpoints {
        text += &(serde_json::to_string(checkpoint)? + "\n");
    }
    Ok(text)
}

/// Adds checkpoints to a file, which is made if there is none, and what they were signed with if that is news.
pub fn append(path: &Path, key: &SigningKey, checkpoints: &[CheckpointLine]) -> Result<()> {
    let known = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => read(path)?.into_iter().rev().find_map(|(_, line)| match line {
            Line::Key(line) => Some(line.key_id),
            Line::Checkpoint(_) => None,
        }),
    };
    let text = lines((known.as_ref() != Some(&key.key_id)).then_some(key), checkpoints)?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("writing {}", path.display()))
}

/// The checkpoints of a file, each signed with one of these keys; without any, with the one that the first line names.
pub fn verified(path: &Path, trusted: Option<Vec<VerifyingKey>>) -> Result<Vec<SignedLine>> {
    let lines = read(path)?;
    let trusted = match (trusted, lines.first()) {
        (Some(trusted), _) => trusted,
        (None, Some((_, Line::Key(line)))) => {
            let pinned = VerifyingKey::read_all(&line.public_key);
            let pinned = pinned
                .ok_or_else(|| anyhow!("{}, line 1: public_key is not an Ed25519 key", path.display()))?;
            eprintln!(
                "warning: verifying with the key that {} names itself ({}); --public-key FILE names one that you trust",
                path.display(),
                pinned.iter().map(VerifyingKey::id).collect::<Vec<_>>().join(", ")
            );
            pinned
        }
        (None, _) => bail!("{} does not begin with a key: give one with --public-key", path.display()),
    };
    let mut verified = Vec::new();
    for (number, line) in lines {
        if let Line::Checkpoint(line) = line {
            let checkpoint =
                signed(&line, &trusted).with_context(|| format!("{}, line {number}", path.display()))?;
            verified.push(SignedLine { line: number, checkpoint });
        }
    }
    if verified.is_empty() {
        bail!("{} has no checkpoint in it", path.display());
    }
    Ok(verified)
}

fn signed(line: &CheckpointLine, trusted: &[VerifyingKey]) -> Result<Checkpoint> {
    let checkpoint = Checkpoint::read(&line.payload)?;
    let Some(key) = trusted.iter().find(|key| key.id() == checkpoint.key_id) else {
        let known: Vec<_> = trusted.iter().map(VerifyingKey::id).collect();
        bail!("it was signed with another key, {}; trusted is {}", checkpoint.key_id, known.join(", "));
    };
    if !key.verifies(line.payload.as_bytes(), &line.signature) {
        bail!("the signature does not fit: somebody has changed this line, or the server did not sign it");
    }
    Ok(checkpoint)
}

/// Every line with its number. A file that somebody cut off is told apart from one that was never a file of these.
fn read(path: &Path) -> Result<Vec<(usize, Line)>> {
    let reading = || format!("reading {}", path.display());
    if std::fs::metadata(path).with_context(reading)?.len() > FILE_LEN_MAX {
        bail!("{} is larger than {FILE_LEN_MAX} bytes", path.display());
    }
    let text = std::fs::read_to_string(path).with_context(reading)?;
    if text.is_empty() {
        bail!("{} is empty", path.display());
    }
    if !text.ends_with('\n') {
        let last = text.lines().count();
        bail!("{} is cut off: line {last} has no end", path.display());
    }
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered
        .map(|(number, line)| match serde_json::from_str(line) {
            Ok(Line::Key(line)) if line.format != FORMAT => {
                bail!("{}, line {number}: it is of another format, {:?}", path.display(), line.format)
            }
            Ok(line) => Ok((number, line)),
            Err(_) => bail!("{}, line {number}: it is neither a key nor a checkpoint", path.display()),
        })
        .collect()
}
