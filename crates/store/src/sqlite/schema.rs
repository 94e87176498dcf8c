//! The tables of the data file.
//!
//! A job is one row: the record as JSON, and beside it the columns that lists filter by. Writes happen several times
//! per job and lists only now and then, so an index has to earn its place: those over rare or live rows are partial
//! and cost an ordinary job nothing once it has succeeded.

/// "Revl": marks the file as ours in its header.
pub(super) const APPLICATION_ID: u32 = 0x5265_766c;

/// Counts changes of the tables below.
pub(super) const VERSION: u32 = 6;

/// States in which a job waits: for a verdict, for a person, for a worker. Few jobs stay in them long, and people ask
/// for them most.
pub(super) const WAITING_STATES: &str = "('PENDING', 'APPROVAL_REQUIRED', 'SCHEDULED')";

/// Endings that are rare enough to have an index of their own.
pub(super) const RARE_STATES: &str = "('FAILED', 'TIMEOUT', 'CANCELLED', 'DENIED', 'OUTPUT_QUARANTINED')";

/// The statements that make an empty file ours.
pub(super) fn create() -> String {
    let waiting = waiting();
    format!(
        "PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {VERSION};

         -- seq counts insertions; cursors are made of it.
         CREATE TABLE jobs (
             seq INTEGER PRIMARY KEY,
             id TEXT NOT NULL UNIQUE,
             revision INTEGER NOT NULL,
             live INTEGER NOT NULL,
             state TEXT NOT NULL,
             updated_at INTEGER NOT NULL,
             tenant TEXT NOT NULL,
             topic TEXT NOT NULL,
             team TEXT NOT NULL,
             trace_id TEXT NOT NULL,
             idempotency_key TEXT,
             record TEXT NOT NULL,
             -- Whether a person was ever asked about it.
             asked INTEGER NOT NULL DEFAULT 0
         );
         CREATE INDEX jobs_of_tenant ON jobs (tenant, seq);
         CREATE INDEX jobs_live ON jobs (seq) WHERE live = 1;
         CREATE INDEX jobs_ended ON jobs (updated_at) WHERE live = 0;
         CREATE INDEX jobs_ended_badly ON jobs (state, seq) WHERE state IN {RARE_STATES};
         -- A job that belongs to no larger trace has its own id as trace.
         CREATE INDEX jobs_of_trace ON jobs (trace_id, seq) WHERE trace_id <> id;
         CREATE UNIQUE INDEX jobs_idempotent ON jobs (tenant, idempotency_key)
             WHERE idempotency_key IS NOT NULL;
         {ASKED_INDEX}
         {waiting}

         CREATE TABLE dead_letters (
             seq INTEGER PRIMARY KEY,
             job_id TEXT NOT NULL UNIQUE,
             tenant TEXT NOT NULL,
             record TEXT NOT NULL
         );
         CREATE INDEX dead_letters_of_tenant ON dead_letters (tenant, seq);

         CREATE TABLE blobs (
             key TEXT NOT NULL PRIMARY KEY,
             expires_at INTEGER NOT NULL,
             value BLOB NOT NULL
         );
         CREATE INDEX blobs_by_expiry ON blobs (expires_at);

         {LOCKS}
         {AUDIT}
         {PACKETS}"
    )
}

const ASKED_INDEX: &str = "CREATE INDEX jobs_asked ON jobs (seq) WHERE asked = 1;";

/// The tenant is in it so that a list of one tenant passes over the jobs of others without reading them.
fn waiting() -> String {
    format!("CREATE INDEX jobs_waiting ON jobs (state, seq, tenant) WHERE state IN {WAITING_STATES};")
}

/// A fence is never reused, even when the row that had it is gone.
const LOCKS: &str = "CREATE TABLE locks (
    fence INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    until INTEGER NOT NULL
);";

/// Packets that could not be processed.
const PACKETS: &str = "CREATE TABLE dead_packets (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    buried_at INTEGER NOT NULL,
    packet BLOB NOT NULL
) STRICT;";

/// What the partial index over the trail covers: all but what every job adds.
pub(super) const RARE_EVENTS: &str = "event_type <> 'safety.decision'";

/// The trail is appended to with every new job, so it has the two indexes that no query of it can do
/// without (a tenant's chain, a job's entries) and a third that an ordinary entry is not in. Entries are
/// wider than a table without rowids likes, and `id`, the order of recording, only ever grows.
const AUDIT: &str = "CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    severity TEXT NOT NULL,
    action TEXT NOT NULL,
    identity TEXT NOT NULL,
    job_id TEXT,
    decision TEXT,
    matched_rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    extra TEXT NOT NULL,
    prev_hash BLOB NOT NULL,
    event_hash BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_of_tenant ON audit (tenant, seq);
CREATE INDEX audit_of_job ON audit (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX audit_rare ON audit (event_type) WHERE event_type <> 'safety.decision';

-- Where each chain ends, and where it begins since older entries were pruned.
CREATE TABLE audit_chains (
    tenant TEXT NOT NULL PRIMARY KEY,
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    boundary_seq INTEGER NOT NULL,
    boundary_hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;";

/// The tables of the store in a file of this version.
pub(super) fn tables(version: u32) -> &'static [&'static str] {
    let all = &["jobs", "dead_letters", "blobs", "locks", "audit", "audit_chains", "dead_packets"];
    match version {
        ..2 => &all[..3],
        2 => &all[..4],
        3 | 4 => &all[..6],
        _ => all,
    }
}

/// The statements that migrate a file of an older version to this one. The table of keys that version 1 had stays
/// where it is; the roster, which owns it now, finds it there.
pub(super) fn upgrade(version: u32) -> String {
    let locks = if version < 2 { LOCKS } else { "" };
    let audit = if version < 3 { AUDIT } else { "" };
    let asked = if version < 4 { format!("{ASKED} {ASKED_INDEX}") } else { String::new() };
    let packets = if version < 5 { PACKETS } else { "" };
    let waiting = waiting();
    format!(
        "BEGIN IMMEDIATE; {locks} {audit} {asked} {packets} DROP INDEX IF EXISTS jobs_asking; {waiting}
         PRAGMA user_version = {VERSION}; COMMIT;"
    )
}

/// For older jobs we know that a person was asked if one still is, or if the job's history says so.
const ASKED: &str = "ALTER TABLE jobs ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
    UPDATE jobs SET asked = 1 WHERE record LIKE '%\"REQUIRE_APPROVAL\"%';";
