-- Standing approvals, until they are revoked. The body is the JSON of hooks/approval.Grant.
CREATE TABLE approval_grants (
    id   TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;

-- Requests that wait for a human. What is left here when the daemon starts was lost with the one before it. The body is
-- the JSON of hooks/approval.Pending.
CREATE TABLE approval_open (
    id   TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
