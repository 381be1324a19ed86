-- The log of events and what is written together with it. Columns and primary key of `events` are those of
-- the sqlite-es crate, so that its repository reads what Cairn writes; the rest of that table is Cairn's.

CREATE TABLE events (
    aggregate_type  TEXT   NOT NULL,
    aggregate_id    TEXT   NOT NULL,
    sequence        INTEGER NOT NULL CHECK (sequence >= 0),
    event_type      TEXT   NOT NULL,
    event_version   TEXT   NOT NULL,
    payload         TEXT   NOT NULL,
    metadata        TEXT   NOT NULL,
    -- Place in the whole log, from the counter below: gapless, in order of commit.
    position        INTEGER NOT NULL,
    -- Milliseconds since 1970, the event's own time.
    recorded_at     INTEGER NOT NULL,
    -- The instance that the event concerns; none for subscriptions.
    vnf_instance_id TEXT,
    PRIMARY KEY (aggregate_type, aggregate_id, sequence),
    UNIQUE (position)
) STRICT;

CREATE INDEX events_of_instance ON events (vnf_instance_id, position);

-- One row, locked until commit by whoever appends. A sequence would give positions out of the order of
-- commit, and a reader with a cursor would lose events.
CREATE TABLE log_position (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
) STRICT;
INSERT INTO log_position (id, position) VALUES (1, 0);

-- State of each aggregate after its last event. A cache: another schema version is ignored.
CREATE TABLE states (
    aggregate_type TEXT   NOT NULL,
    aggregate_id   TEXT   NOT NULL,
    version        INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    state          TEXT   NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id)
) STRICT;

-- Answers by Idempotency-Key.
CREATE TABLE keyed_answers (
    key            TEXT   PRIMARY KEY,
    request_digest TEXT   NOT NULL,
    answer         TEXT   NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX keyed_answers_by_age ON keyed_answers (created_at);

-- Operations that need an owner, and their leases. Rows stay, so that fence numbers only rise.
CREATE TABLE work (
    op_id       TEXT   PRIMARY KEY,
    needed      INTEGER NOT NULL,
    fence       INTEGER NOT NULL DEFAULT 0,
    owner       TEXT,
    expires_at  INTEGER,
    -- Why it was set aside, and until when.
    quarantined TEXT,
    retry_at    INTEGER
) STRICT;
CREATE INDEX work_needed ON work (op_id) WHERE needed = 1;

-- Processes seen, by the database's clock.
CREATE TABLE nodes (
    node    TEXT   PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT;

-- Encrypted bodies in pieces of at most 256 KiB, named by keyed digest.
CREATE TABLE blobs (
    digest     TEXT   PRIMARY KEY,
    size       INTEGER NOT NULL,
    chunks     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE blob_chunks (
    digest  TEXT   NOT NULL,
    chunk   INTEGER NOT NULL,
    content BLOB  NOT NULL,
    PRIMARY KEY (digest, chunk)
) STRICT;

-- Encrypted secrets, by reference.
CREATE TABLE secrets (
    reference  TEXT   PRIMARY KEY,
    content    BLOB  NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Proof of the key that everything encrypted here was encrypted with.
CREATE TABLE key_check (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    proof TEXT   NOT NULL
) STRICT;

-- Notifications owed. A queue, never rebuilt.
CREATE TABLE deliveries (
    id              TEXT   PRIMARY KEY,
    subscription_id TEXT   NOT NULL,
    position        INTEGER NOT NULL,
    notification_id TEXT   NOT NULL,
    vnf_instance_id TEXT   NOT NULL,
    op_id           TEXT,
    operation_state TEXT,
    state           TEXT   NOT NULL,
    tries           INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    last_tried_at   INTEGER,
    last_answer     INTEGER,
    next_try_at     INTEGER,
    leased_until    INTEGER,
    UNIQUE (subscription_id, position)
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (subscription_id, vnf_instance_id, position)
    WHERE state = 'PENDING';
-- Those that are settled are forgotten after a time.
CREATE INDEX deliveries_settled ON deliveries (created_at) WHERE state <> 'PENDING';
CREATE TABLE delivery_cursor (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
) STRICT;
INSERT INTO delivery_cursor (id, position) VALUES (1, 0);

-- VNF packages: the record as JSON, the CSAR in encrypted pieces.
CREATE TABLE packages (
    id         TEXT   PRIMARY KEY,
    -- Place in the order of creation.
    ordinal    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    state      TEXT   NOT NULL,
    vnfd_id    TEXT,
    record     TEXT   NOT NULL
) STRICT;
CREATE UNIQUE INDEX packages_onboarded_vnfd ON packages (vnfd_id) WHERE state = 'ONBOARDED';
CREATE TABLE package_chunks (
    package_id TEXT   NOT NULL,
    chunk      INTEGER NOT NULL,
    chunks     INTEGER NOT NULL,
    content    BLOB  NOT NULL,
    PRIMARY KEY (package_id, chunk)
) STRICT;

-- Registered VIMs; their secrets are in `secrets`.
CREATE TABLE vims (
    vim_id     TEXT   PRIMARY KEY,
    -- Place in the order of registration.
    ordinal    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    info       TEXT   NOT NULL
) STRICT;

-- How far each read model is, and the shape that its table has. The tables themselves are made and made
-- anew by the read models.
CREATE TABLE checkpoints (
    name     TEXT   PRIMARY KEY,
    position INTEGER NOT NULL,
    shape    INTEGER NOT NULL
) STRICT;
