//! Checkpoints of the audit trail: a database that somebody rewrote, every hash of it right, is noticed by whoever kept
//! one.

use crate::server::{Ended, Server, program};
use reveille_core::audit::{Bounds, Entry, Link};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use reveille_store::{AuditTrail, SqliteStore};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;

const FILE: &str = "checkpoints.jsonl";
const PEM: &str = "audit.pem";

/// A server with three entries in the chain of `acme`, a checkpoint of every chain, and the key to verify it.
fn checkpointed(settings: &[(&str, &str)]) -> Server {
    let server = Server::on(tempfile::tempdir().unwrap(), settings);
    for name in ["ann", "bob", "cay"] {
        server.ok(&["key", "create", name, "--tenant", "acme", "--scope", "read"]);
    }
    server.ok(&["audit", "checkpoint", "--all", "--out", &server.file(FILE)]);
    std::fs::write(server.file(PEM), server.ok(&["audit", "public-key"])).unwrap();
    server
}

impl Server {
    fn against(&self) -> Ended {
        self.run(&["audit", "verify", "--against", &self.file(FILE), "--public-key", &self.file(PEM)])
    }

    /// The server's own word for its chain, and what is said against the checkpoints.
    #[track_caller]
    fn is_rewritten(&self, status: &str, words: &str) {
        let alone = self.run(&["audit", "verify", "--tenant", "acme"]);
        assert!(alone.code == 0 && alone.out.starts_with(&format!("acme: {status}; ")), "{}", alone.out);
        let Ended { code, out, err } = self.against();
        assert_eq!(code, 1, "{out}{err}");
        let line = out.lines().find(|line| line.contains("rewritten: ")).unwrap_or_else(|| panic!("{out}"));
        assert!(line.contains("at entry 3: ") && line.contains(words), "{line}");
        assert!(out.contains("acme: "), "{out}");
    }
}

/// What whoever has the file can do: every entry of `acme`, and its bounds, are written anew.
fn rewrite(data: &Path, change: impl FnOnce(&mut Vec<Entry>) -> Bounds) {
    let file = data.join("reveille.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut entries = runtime.block_on(async {
        let store = SqliteStore::open(&file, Arc::new(|| Millis(0))).unwrap();
        store.chain(&TenantId::known("acme"), 0, 100).await.unwrap().entries
    });
    assert_eq!(entries.len(), 3);
    let bounds = change(&mut entries);
    let connection = Connection::open(&file).unwrap();
    let last = entries.last().map_or(0, |entry| entry.seq as i64);
    connection.execute("DELETE FROM audit WHERE tenant = 'acme' AND seq > ?1", [last]).unwrap();
    let first = entries.first().map_or(i64::MAX, |entry| entry.seq as i64);
    connection.execute("DELETE FROM audit WHERE tenant = 'acme' AND seq < ?1", [first]).unwrap();
    for entry in &entries {
        let changed = connection.execute(
            "UPDATE audit SET identity = ?1, prev_hash = ?2, event_hash = ?3 WHERE tenant = 'acme' AND seq = ?4",
            params![entry.draft.identity, entry.prev_hash.0, entry.event_hash.0, entry.seq as i64],
        );
        assert_eq!(changed.unwrap(), 1);
    }
    let Bounds { boundary, head } = bounds;
    // A key without its entry would get it again at the next start.
    connection.execute("DELETE FROM keys WHERE record ->> '$.tenant' = 'acme'", []).unwrap();
    let changed = connection.execute(
        "UPDATE audit_chains SET head_seq = ?1, head_hash = ?2, boundary_seq = ?3, boundary_hash = ?4 WHERE tenant = 'acme'",
        params![head.seq as i64, head.hash.0, boundary.seq as i64, boundary.hash.0],
    );
    assert_eq!(changed.unwrap(), 1);
}

/// Somebody else did it all, and every hash says so.
fn with_another_identity(entries: &mut Vec<Entry>) -> Bounds {
    let mut head = Link::default();
    for entry in entries {
        "mallory".clone_into(&mut entry.draft.identity);
        *entry = Entry::follow(entry.draft.clone(), &head);
        head = entry.link();
    }
    Bounds { head, ..Bounds::default() }
}

#[test]
fn a_rewritten_database_is_noticed_by_its_checkpoint_and_not_by_its_chain() {
    let server = checkpointed(&[]);
    let before = server.against();
    assert_eq!(before.code, 0, "{}{}", before.out, before.err);
    assert!(
        before.out.contains("at entry 3: holds") && before.err.is_empty(),
        "{}{}",
        before.out,
        before.err
    );

    let server = server.meanwhile(|data| rewrite(data, with_another_identity));
    server.is_rewritten("ok", "the entry has the hash ");
    // What was recorded since is no help.
    server.ok(&["key", "create", "dan", "--tenant", "acme", "--scope", "read"]);
    server.is_rewritten("ok", "the entry has the hash ");
    let json = server.run(&["audit", "verify", "--against", &server.file(FILE), "--json"]);
    assert!(json.code == 1 && json.out.contains(r#""outcome":"rewritten""#), "{}", json.out);
}

#[test]
fn a_history_that_was_cut_short_or_pruned_before_its_time_is_noticed_too() {
    let cut_short = |entries: &mut Vec<Entry>| {
        entries.pop();
        Bounds { head: entries[1].link(), ..Bounds::default() }
    };
    let server = checkpointed(&[]).meanwhile(|data| rewrite(data, cut_short));
    server.is_rewritten("ok", "there is no such entry; the chain ends with 2");

    // Everything is gone, with the right hash at the boundary.
    let pruned = |entries: &mut Vec<Entry>| {
        let head = entries[2].link();
        entries.clear();
        Bounds { boundary: head, head }
    };
    let server = checkpointed(&[]).meanwhile(|data| rewrite(data, pruned));
    server.is_rewritten("partial", "said to be pruned");
}

#[test]
fn checkpoints_that_were_tampered_with_are_told_apart() {
    let server = checkpointed(&[]);
    let whole = std::fs::read_to_string(server.file(FILE)).unwrap();
    let check = |text: &str, expected: &str| {
        std::fs::write(server.file(FILE), text).unwrap();
        let Ended { code, out, err } = server.against();
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(expected), "{err}");
    };
    let changed = whole.replace(r#"\"last_seq\":3"#, r#"\"last_seq\":2"#);
    assert_ne!(changed, whole);
    check(&changed, "line 2: the signature does not fit");
    check(&whole[..whole.len() - 20], "is cut off: line 3 has no end");
    check(&whole.replace(r#","signature":"#, r#","seal":"#), "line 2: it is neither a key nor a checkpoint");
    check(&whole.replace(r#"\"at\":"#, r#" \"at\":"#), "line 2: it is not written as checkpoints are");
    check(&whole.replace("checkpoint.1", "checkpoint.2"), "line 2: it is of another format");
    check("", "is empty");
    check(&format!("{}\n", whole.lines().next().unwrap()), "has no checkpoint in it");

    // Somebody signs for themselves.
    let other = checkpointed(&[]);
    let foreign = std::fs::read_to_string(other.file(FILE)).unwrap();
    check(&foreign, "line 2: it was signed with another key, ed25519:");
    // The key that a file names is believed only where nobody names another, and not in silence.
    let pinned = server.run(&["audit", "verify", "--against", &server.file(FILE)]);
    assert!(
        pinned.code == 1 && pinned.err.contains("warning: verifying with the key that"),
        "{}",
        pinned.err
    );
    let first: Vec<&str> = whole.lines().collect();
    let mixed: Vec<&str> = first.iter().copied().chain(foreign.lines()).collect();
    std::fs::write(server.file(FILE), mixed.join("\n") + "\n").unwrap();
    let pinned = server.run(&["audit", "verify", "--against", &server.file(FILE)]);
    assert!(
        pinned.code == 1 && pinned.err.contains("line 5: it was signed with another key"),
        "{}",
        pinned.err
    );
}

#[test]
fn a_tenants_reader_takes_checkpoints_of_its_own_chain_and_of_no_other() {
    let server = checkpointed(&[]);
    let made = server.ok(&["key", "create", "eve", "--tenant", "acme", "--scope", "read"]);
    let key = made.split_whitespace().last().unwrap();
    let own = server.ok(&["audit", "checkpoint", "--key", key]);
    assert!(own.lines().count() == 2 && own.contains(r#"\"tenant\":\"acme\""#), "{own}");
    for args in [&["--all"][..], &["--tenant", "default"]] {
        let refused = server.run(&[&["audit", "checkpoint", "--key", key], args].concat());
        assert!(refused.code == 1 && refused.err.contains("403"), "{}", refused.err);
    }
    // Added to the same file, the key stands there once.
    server.ok(&["audit", "checkpoint", "--key", key, "--out", &server.file(FILE)]);
    let file = std::fs::read_to_string(server.file(FILE)).unwrap();
    assert_eq!((file.lines().count(), file.matches("PUBLIC KEY").count()), (4, 2), "{file}");
    let own =
        server.run(&["audit", "verify", "--against", &server.file(FILE), "--tenant", "acme", "--key", key]);
    assert!(own.code == 0 && own.out.matches(": holds").count() == 2, "{}{}", own.out, own.err);
}

/// Somebody else's program makes the key and verifies what was signed with it.
#[test]
fn openssl_verifies_a_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    let openssl = |args: &[&str]| {
        let Ended { code, out, err } = program("openssl", place.path(), args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    };
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", "private.pem"]);
    let key = place.path().join("private.pem");
    let server = checkpointed(&[("REVEILLE_AUDIT_SIGNING_KEY_FILE", key.to_str().unwrap())]);
    let public = server.ok(&["audit", "public-key"]);
    assert_eq!(public, openssl(&["pkey", "-in", "private.pem", "-pubout"]));
    std::fs::write(place.path().join(PEM), public).unwrap();

    let file = std::fs::read_to_string(server.file(FILE)).unwrap();
    let line: serde_json::Value = serde_json::from_str(file.lines().nth(1).unwrap()).unwrap();
    let (payload, signature) = (line["payload"].as_str().unwrap(), line["signature"].as_str().unwrap());
    std::fs::write(place.path().join("payload"), payload).unwrap();
    std::fs::write(place.path().join("signature.b64"), signature).unwrap();
    openssl(&["base64", "-d", "-A", "-in", "signature.b64", "-out", "signature"]);
    let verify =
        ["pkeyutl", "-verify", "-pubin", "-inkey", PEM, "-rawin", "-in", "payload", "-sigfile", "signature"];
    assert!(openssl(&verify).contains("Signature Verified Successfully"));
    std::fs::write(place.path().join("payload"), payload.replace("acme", "acne")).unwrap();
    assert_ne!(program("openssl", place.path(), &verify).code, 0);
}
