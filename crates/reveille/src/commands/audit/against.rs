//! `reveille audit verify --against`: whether the server's trail is the one that somebody keeps checkpoints of.
//!
//! A checkpoint's hash stands for every entry before it, as long as the chain up to there holds. So both are looked at:
//! the chain by the server, entry by entry, and the place where the checkpoint was taken.

use super::checkpoint_file::{self, SignedLine};
use super::{is_sound, say};
use crate::args::ServerArgs;
use crate::client::connect;
use crate::{exit, output, progress};
use anyhow::{Context, Result, anyhow};
use reveille_api_types::audit::{ChainLink, Verified};
use reveille_client::{Client, Error};
use reveille_core::audit::Checkpoint;
use reveille_core::time::Millis;
use reveille_engine::VerifyingKey;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Holds,
    /// Its entries are gone, as they may be by now.
    Pruned,
    Rewritten,
}

#[derive(Serialize)]
struct Compared {
    line: usize,
    tenant_id: String,
    seq: u64,
    at: String,
    outcome: Outcome,
    words: String,
}

pub fn verify(
    file: &Path,
    public_key: Option<&Path>,
    tenant: Option<&str>,
    server: &ServerArgs,
) -> Result<ExitCode> {
    let mut lines = checkpoint_file::verified(file, public_key.map(trusted).transpose()?)?;
    lines.retain(|line| tenant.is_none_or(|tenant| line.checkpoint.tenant.as_str() == tenant));
    if lines.is_empty() {
        return Err(anyhow!("{} has no checkpoint of {}", file.display(), tenant.unwrap_or_default()));
    }
    let client = connect(server)?;
    let checked = "checking every hash of the chains";
    let (chains, compared) = progress::during(checked, || ask(&client, &lines))?;
    if server.json {
        let chains: Vec<&Verified> = chains.values().collect();
        output::json(&json!({ "chains": chains, "checkpoints": compared }));
    } else {
        for (tenant, chain) in &chains {
            say(chain);
            for line in compared.iter().filter(|line| line.tenant_id == *tenant) {
                output::line(&format!("  checkpoint of {} at entry {}: {}", line.at, line.seq, line.words));
            }
        }
    }
    let is_any = |outcome: Outcome| compared.iter().any(|line| line.outcome == outcome);
    Ok(if is_any(Outcome::Rewritten) || !chains.values().all(is_sound) {
        ExitCode::from(exit::FAILED)
    } else if is_any(Outcome::Pruned) {
        ExitCode::from(exit::PRUNED)
    } else {
        ExitCode::SUCCESS
    })
}

fn trusted(path: &Path) -> Result<Vec<VerifyingKey>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    VerifyingKey::read_all(&text)
        .ok_or_else(|| anyhow!("{} has no Ed25519 public key in PEM", path.display()))
}

/// What the server has of each chain, and at each place.
fn ask(client: &Client, lines: &[SignedLine]) -> Result<(BTreeMap<String, Verified>, Vec<Compared>), Error> {
    let (mut chains, mut compared) = (BTreeMap::new(), Vec::new());
    for SignedLine { line, checkpoint } in lines {
        let tenant = checkpoint.tenant.as_str();
        if !chains.contains_key(tenant) {
            let chain = client.get("/api/v1/audit/verify", &[("tenant", tenant)])?;
            chains.insert(tenant.to_owned(), chain);
        }
        let seq = checkpoint.last.seq.to_string();
        let link: ChainLink = client.get("/api/v1/audit/link", &[("tenant", tenant), ("seq", &seq)])?;
        let (outcome, words) = compare(checkpoint, &link);
        compared.push(Compared {
            line: *line,
            tenant_id: tenant.to_owned(),
            seq: checkpoint.last.seq,
            at: checkpoint.at.rfc3339(),
            outcome,
            words,
        });
    }
    Ok((chains, compared))
}

/// Whether what the server has is what was signed.
fn compare(checkpoint: &Checkpoint, link: &ChainLink) -> (Outcome, String) {
    let rewritten = |words: String| (Outcome::Rewritten, format!("rewritten: {words}"));
    let signed = checkpoint.last.hash.to_string();
    if let Some(hash) = link.event_hash.as_ref().filter(|hash| **hash != signed) {
        return rewritten(format!("the entry has the hash {hash}, and had {signed}"));
    }
    match link.state.as_str() {
        "kept" => (Outcome::Holds, "holds".to_owned()),
        // Nobody had a reason yet to take it out.
        "pruned" if checkpoint.last_at.is_some_and(|at| at.rfc3339() > link.kept_since) => {
            rewritten(format!(
                "the entry is said to be pruned, but is of {}, and everything since {} is kept",
                checkpoint.last_at.map_or_else(String::new, Millis::rfc3339),
                link.kept_since
            ))
        }
        "pruned" => (Outcome::Pruned, "pruned, cannot be checked".to_owned()),
        "missing" => rewritten(format!("there is no such entry; the chain ends with {}", link.last_seq)),
        other => rewritten(format!("the entry is {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::audit::{Hash, Link};
    use reveille_core::id::TenantId;

    const KEPT_SINCE: Millis = Millis(1_000_000);

    /// What is said of a checkpoint whose last entry was of this moment, where the server has this.
    #[track_caller]
    fn check(last_at: Millis, state: &str, hash: Option<Hash>, expected: Outcome) {
        let checkpoint = Checkpoint {
            tenant: TenantId::known("acme"),
            first_seq: 1,
            last: Link { seq: 5, hash: Hash([7; 32]) },
            last_at: Some(last_at),
            at: Millis(2_000_000),
            key_id: String::new(),
        };
        let link = ChainLink {
            tenant_id: "acme".to_owned(),
            seq: 5,
            state: state.to_owned(),
            event_hash: hash.map(|hash| hash.to_string()),
            retention_boundary_seq: 6,
            last_seq: 9,
            kept_since: KEPT_SINCE.rfc3339(),
        };
        let (outcome, words) = compare(&checkpoint, &link);
        assert_eq!(outcome, expected, "{words}");
    }

    #[test]
    fn the_same_hash_holds_and_another_is_a_rewritten_history() {
        let (same, other) = (Some(Hash([7; 32])), Some(Hash([8; 32])));
        check(Millis(1_500_000), "kept", same, Outcome::Holds);
        check(Millis(1_500_000), "kept", other, Outcome::Rewritten);
        check(Millis(1_500_000), "altered", None, Outcome::Rewritten);
        check(Millis(1_500_000), "missing", None, Outcome::Rewritten);
    }

    #[test]
    fn what_was_pruned_in_time_cannot_be_checked_and_what_was_pruned_before_is_rewritten() {
        check(Millis(900_000), "pruned", None, Outcome::Pruned);
        check(Millis(900_000), "pruned", Some(Hash([7; 32])), Outcome::Pruned);
        check(Millis(900_000), "pruned", Some(Hash([8; 32])), Outcome::Rewritten);
        check(Millis(1_500_000), "pruned", None, Outcome::Rewritten);
        check(Millis(1_500_000), "pruned", Some(Hash([7; 32])), Outcome::Rewritten);
    }
}
