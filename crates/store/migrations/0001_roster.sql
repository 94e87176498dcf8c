-- A record is JSON, and beside it are the columns that queries filter or sort by. It is text, because JSONB
-- cannot hold everything that JSON can. Ids sort by their bytes, as they do in the server.

-- The last three columns count, not what the record says of them.
CREATE TABLE keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL,
    record TEXT NOT NULL,
    revoked_at BIGINT,
    revoked_by TEXT NOT NULL,
    last_used_at BIGINT,
    CONSTRAINT keys_hash UNIQUE (hash)
);

CREATE TABLE tenants (id TEXT COLLATE "C" PRIMARY KEY, created_at BIGINT NOT NULL);

-- 1 is cap, 2 is voicegateway, 3 is molecule. Nearly every write is a beat: it finds room beside the row that it
-- replaces and no index that it would have to change.
CREATE TABLE presence (
    contract SMALLINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    last_seen BIGINT NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (contract, tenant, id)
) WITH (fillfactor = 70);

CREATE TABLE workspaces (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    record TEXT NOT NULL
);

CREATE TABLE structure_events (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    record TEXT NOT NULL
);
CREATE INDEX events_of_tenant ON structure_events (tenant, created_at, id);
CREATE INDEX events_of_workspace ON structure_events (workspace, tenant, created_at, id);
CREATE INDEX events_by_time ON structure_events (created_at, id);

-- open: it is a job of ours and has not ended.
CREATE TABLE delegations (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    open BOOLEAN NOT NULL,
    record TEXT NOT NULL
);
CREATE INDEX delegations_of_source ON delegations (source, created_at, id);
CREATE INDEX delegations_open ON delegations (id) WHERE open;
CREATE INDEX delegations_over ON delegations (updated_at, id) WHERE NOT open;

CREATE TABLE drains (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);

-- How often keys, workspaces and drains have changed.
CREATE TABLE generations (what TEXT COLLATE "C" PRIMARY KEY, n BIGINT NOT NULL);

-- The audit trail. id is the order of sealing; origin names an entry before it has a place, so that sealing it again
-- adds nothing. Where a column and the draft disagree, the column counts, and the hash tells.
CREATE TABLE audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    origin BYTEA NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL,
    job_id TEXT COLLATE "C",
    draft TEXT NOT NULL,
    prev_hash BYTEA NOT NULL,
    event_hash BYTEA NOT NULL,
    CONSTRAINT audit_of_origin UNIQUE (origin),
    CONSTRAINT audit_of_tenant UNIQUE (tenant, seq)
);
CREATE INDEX audit_of_job ON audit (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX audit_rare ON audit (event_type, id) WHERE event_type <> 'safety.decision';

-- Where each chain ends, and where it begins since older entries were pruned.
CREATE TABLE audit_chains (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    head_seq BIGINT NOT NULL,
    head_hash BYTEA NOT NULL,
    boundary_seq BIGINT NOT NULL,
    boundary_hash BYTEA NOT NULL
);
