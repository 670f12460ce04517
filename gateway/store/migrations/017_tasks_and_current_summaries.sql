-- Tasks that were mentioned on another day than their own, and stay on that day's list: JSON array of YYYY-MM-DD.
ALTER TABLE tasks ADD COLUMN days TEXT NOT NULL DEFAULT '[]';

-- One summary of each whole conversation, brought up to date in idle time. It is in no prompt; a continuation begins
-- with it.
CREATE TABLE current_summaries (
  conversation   TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  level          TEXT NOT NULL CHECK (level = 'conversation'),
  first          INTEGER NOT NULL, -- messages.seq, both included
  last           INTEGER NOT NULL CHECK (last >= first),
  from_time      REAL NOT NULL,
  to_time        REAL NOT NULL,
  text           TEXT NOT NULL,
  pins           TEXT NOT NULL, -- JSON array of lines
  tokens         INTEGER NOT NULL,
  prompt_name    TEXT NOT NULL,
  prompt_version INTEGER NOT NULL,
  model          TEXT NOT NULL,
  created_at     REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- The same table with the kind `fresh`.
CREATE TABLE new_jobs (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  kind         TEXT NOT NULL CHECK (kind IN ('compact', 'facts', 'tasks', 'fresh')),
  conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  payload      TEXT NOT NULL, -- JSON object
  state        TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'failed')), -- a finished one is deleted
  attempts     INTEGER NOT NULL,
  not_before   REAL NOT NULL,
  leased_until REAL, -- while running; a lease that has run out is taken up again
  problem      TEXT,
  created_at   REAL NOT NULL,
  ended_at     REAL
) STRICT;
INSERT INTO new_jobs SELECT * FROM jobs;
DROP TABLE jobs;
ALTER TABLE new_jobs RENAME TO jobs;
CREATE INDEX jobs_open ON jobs (state, not_before) WHERE state IN ('waiting', 'running');
-- One waiting job of a kind a conversation is enough: it takes in all that came before it runs.
CREATE UNIQUE INDEX jobs_one_waiting ON jobs (conversation, kind) WHERE state = 'waiting';
