-- What an owner has approved for every run: calls of a tool, as its description then was, that match a pattern.
CREATE TABLE approvals (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  owner      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  version    TEXT NOT NULL, -- hash of the tool's description and schema
  pattern    TEXT NOT NULL, -- JSON object: the arguments, with {{*}} for any text
  created_at REAL NOT NULL
) STRICT;

CREATE UNIQUE INDEX approvals_once ON approvals (owner, tool, version, pattern);

-- JSON: tool, version and arguments of the calls that the answer `always` approves.
ALTER TABLE breakpoints ADD COLUMN pattern TEXT;

-- The webhook: when a notice is due there; NULL if it was taken, given up, or is not for it.
ALTER TABLE notices ADD COLUMN hook_at REAL;
ALTER TABLE notices ADD COLUMN hook_attempts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX notices_hook ON notices (hook_at) WHERE hook_at IS NOT NULL;

-- The id of the request in the log that a step made; '' for none.
ALTER TABLE run_steps ADD COLUMN request TEXT NOT NULL DEFAULT '';
