-- Sessions of browsers that were ended before their time. An empty session_id stands for every session of the key that
-- would have ended no later.
CREATE TABLE ended_sessions (
    key_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (key_id, session_id)
);

-- replaced_by counts, and not what the record says of it. A key ends when the column or the record says so, whichever is
-- first.
ALTER TABLE keys ADD COLUMN replaced_by TEXT COLLATE "C", ADD COLUMN expires_at BIGINT;
