-- One row for each moment of a call. Rows are only ever added at the end and, whole stretches, pruned at the beginning.
-- There is no index but their order: each would cost every call a second page to write, and time follows the order.
CREATE TABLE audit (
    seq           INTEGER PRIMARY KEY,
    time          INTEGER NOT NULL, -- Unix nanoseconds
    kind          TEXT    NOT NULL,
    call_id       TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    via           TEXT    NOT NULL,
    tool          TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    source_name   TEXT    NOT NULL,
    args_digest   BLOB,             -- SHA-256
    args          TEXT    NOT NULL, -- '' unless the operator asked for them
    coerced       TEXT    NOT NULL, -- a JSON array of paths, '' if none
    rule          TEXT    NOT NULL,
    approval      TEXT    NOT NULL,
    answered_by   TEXT    NOT NULL,
    outcome       TEXT    NOT NULL,
    code          TEXT    NOT NULL,
    duration      INTEGER NOT NULL, -- nanoseconds
    result_digest BLOB,             -- SHA-256
    hash          BLOB    NOT NULL  -- SHA-256 of the hash before it and of this row
);

-- What stands in for the rows that were pruned. One row.
CREATE TABLE audit_checkpoint (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    seq       INTEGER NOT NULL, -- the last row that was pruned
    hash      BLOB    NOT NULL, -- and its hash
    time      INTEGER NOT NULL,
    signature BLOB    NOT NULL
);

-- No call that started before this row is unfinished. One row.
CREATE TABLE audit_settled (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL
);
