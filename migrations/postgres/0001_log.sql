-- The log of events and what is written together with it. Columns and primary key of `events` are those of
-- the postgres-es crate, so that its repository reads what Cairn writes; the rest of that table is Cairn's.

CREATE TABLE events (
    aggregate_type  TEXT   NOT NULL,
    aggregate_id    TEXT   NOT NULL,
    sequence        BIGINT NOT NULL CHECK (sequence >= 0),
    event_type      TEXT   NOT NULL,
    event_version   TEXT   NOT NULL,
    payload         JSON   NOT NULL,
    metadata        JSON   NOT NULL,
    -- Place in the whole log, from the counter below: gapless, in order of commit.
    position        BIGINT NOT NULL,
    -- Milliseconds since 1970, the event's own time.
    recorded_at     BIGINT NOT NULL,
    -- The instance that the event concerns; none for subscriptions.
    vnf_instance_id TEXT,
    CONSTRAINT events_pkey PRIMARY KEY (aggregate_type, aggregate_id, sequence),
    CONSTRAINT events_position UNIQUE (position)
);

CREATE INDEX events_of_instance ON events (vnf_instance_id, position);

-- One row, locked until commit by whoever appends. A sequence would give positions out of the order of
-- commit, and a reader with a cursor would lose events.
CREATE TABLE log_position (
    id       BIGINT PRIMARY KEY CHECK (id = 1),
    position BIGINT NOT NULL
);
INSERT INTO log_position (id, position) VALUES (1, 0);

-- State of each aggregate after its last event. A cache: another schema version is ignored.
CREATE TABLE states (
    aggregate_type TEXT   NOT NULL,
    aggregate_id   TEXT   NOT NULL,
    version        BIGINT NOT NULL,
    schema_version BIGINT NOT NULL,
    state          TEXT   NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id)
);

-- Answers by Idempotency-Key.
CREATE TABLE keyed_answers (
    key            TEXT   PRIMARY KEY,
    request_digest TEXT   NOT NULL,
    answer         TEXT   NOT NULL,
    created_at     BIGINT NOT NULL
);
CREATE INDEX keyed_answers_by_age ON keyed_answers (created_at);

-- Operations that need an owner, and their leases. Rows stay, so that fence numbers only rise.
CREATE TABLE work (
    op_id       TEXT   PRIMARY KEY,
    needed      BIGINT NOT NULL,
    fence       BIGINT NOT NULL DEFAULT 0,
    owner       TEXT,
    expires_at  BIGINT,
    -- Why it was set aside, and until when.
    quarantined TEXT,
    retry_at    BIGINT
);
CREATE INDEX work_needed ON work (op_id) WHERE needed = 1;

-- Processes seen, by the database's clock.
CREATE TABLE nodes (
    node    TEXT   PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- Encrypted bodies in pieces of at most 256 KiB, named by keyed digest.
CREATE TABLE blobs (
    digest     TEXT   PRIMARY KEY,
    size       BIGINT NOT NULL,
    chunks     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE TABLE blob_chunks (
    digest  TEXT   NOT NULL,
    chunk   BIGINT NOT NULL,
    content BYTEA  NOT NULL,
    PRIMARY KEY (digest, chunk)
);

-- Encrypted secrets, by reference.
CREATE TABLE secrets (
    reference  TEXT   PRIMARY KEY,
    content    BYTEA  NOT NULL,
    created_at BIGINT NOT NULL
);

-- Proof of the key that everything encrypted here was encrypted with.
CREATE TABLE key_check (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    proof TEXT   NOT NULL
);

-- Notifications owed. A queue, never rebuilt.
CREATE TABLE deliveries (
    id              TEXT   PRIMARY KEY,
    subscription_id TEXT   NOT NULL,
    position        BIGINT NOT NULL,
    notification_id TEXT   NOT NULL,
    vnf_instance_id TEXT   NOT NULL,
    op_id           TEXT,
    operation_state TEXT,
    state           TEXT   NOT NULL,
    tries           BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    last_tried_at   BIGINT,
    last_answer     BIGINT,
    next_try_at     BIGINT,
    leased_until    BIGINT,
    CONSTRAINT deliveries_owed UNIQUE (subscription_id, position)
);
CREATE INDEX deliveries_pending ON deliveries (subscription_id, vnf_instance_id, position)
    WHERE state = 'PENDING';
-- Those that are settled are forgotten after a time.
CREATE INDEX deliveries_settled ON deliveries (created_at) WHERE state <> 'PENDING';
CREATE TABLE delivery_cursor (
    id       BIGINT PRIMARY KEY CHECK (id = 1),
    position BIGINT NOT NULL
);
INSERT INTO delivery_cursor (id, position) VALUES (1, 0);

-- VNF packages: the record as JSON, the CSAR in encrypted pieces.
CREATE TABLE packages (
    id         TEXT   PRIMARY KEY,
    -- Place in the order of creation.
    ordinal    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    state      TEXT   NOT NULL,
    vnfd_id    TEXT,
    record     TEXT   NOT NULL
);
CREATE UNIQUE INDEX packages_onboarded_vnfd ON packages (vnfd_id) WHERE state = 'ONBOARDED';
CREATE TABLE package_chunks (
    package_id TEXT   NOT NULL,
    chunk      BIGINT NOT NULL,
    chunks     BIGINT NOT NULL,
    content    BYTEA  NOT NULL,
    PRIMARY KEY (package_id, chunk)
);

-- Registered VIMs; their secrets are in `secrets`.
CREATE TABLE vims (
    vim_id     TEXT   PRIMARY KEY,
    -- Place in the order of registration.
    ordinal    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    info       TEXT   NOT NULL
);

-- How far each read model is, and the shape that its table has. The tables themselves are made and made
-- anew by the read models.
CREATE TABLE checkpoints (
    name     TEXT   PRIMARY KEY,
    position BIGINT NOT NULL,
    shape    BIGINT NOT NULL
);
