-- Runs of tasks. A run works through the items of its task's checklist, one job a step.
CREATE TABLE runs (
  id          TEXT PRIMARY KEY,
  owner       TEXT NOT NULL,
  task        TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'paused', 'done', 'cancelled')),
  planned     TEXT NOT NULL CHECK (planned IN ('', 'user', 'words', 'model')), -- who wrote the checklist
  max_steps   INTEGER NOT NULL,
  max_tokens  INTEGER NOT NULL,
  max_seconds REAL NOT NULL,
  tokens      INTEGER NOT NULL, -- spent
  seconds     REAL NOT NULL, -- of work; waiting is not counted
  result      TEXT,
  created_at  REAL NOT NULL,
  updated_at  REAL NOT NULL,
  FOREIGN KEY (owner, task) REFERENCES tasks (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_task ON runs (owner, task, created_at);
CREATE UNIQUE INDEX runs_open ON runs (owner, task) WHERE state IN ('running', 'waiting', 'paused');

-- What was done for an item: the intent is stored before the effect, the outcome after it.
CREATE TABLE run_steps (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  run       TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  item      TEXT NOT NULL, -- tasks.id
  tool      TEXT NOT NULL, -- '' for a question to the model
  arguments TEXT NOT NULL, -- JSON, exactly what the tool gets
  hash      TEXT NOT NULL, -- of the tool, its description and the arguments
  outcome   TEXT CHECK (outcome IN ('done', 'failed', 'answered')), -- NULL: not known
  result    TEXT, -- or what went wrong
  tokens    INTEGER NOT NULL,
  seconds   REAL NOT NULL,
  began_at  REAL NOT NULL,
  ended_at  REAL
) STRICT;

CREATE INDEX run_steps_run ON run_steps (run, seq);
CREATE UNIQUE INDEX run_steps_open ON run_steps (run) WHERE outcome IS NULL;

-- BREAKPOINTs: where a run waits for its owner.
CREATE TABLE breakpoints (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  owner       TEXT NOT NULL, -- who may answer
  run         TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  item        TEXT, -- tasks.id; NULL for the whole run
  kind        TEXT NOT NULL,
  question    TEXT NOT NULL,
  schema      TEXT NOT NULL, -- JSON schema of the answer
  hash        TEXT NOT NULL, -- what an approval holds for; '' if nothing is approved
  created_at  REAL NOT NULL,
  expires_at  REAL NOT NULL,
  answer      TEXT, -- JSON
  answered_at REAL,
  closed_at   REAL -- withdrawn without an answer
) STRICT;

CREATE UNIQUE INDEX breakpoints_open ON breakpoints (run) WHERE answered_at IS NULL AND closed_at IS NULL;

-- What is to be said to an owner.
CREATE TABLE notices (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  owner     TEXT NOT NULL,
  task      TEXT NOT NULL,
  text      TEXT NOT NULL,
  source    TEXT NOT NULL UNIQUE, -- the same effect leaves one notice however often it is repeated
  created_at REAL NOT NULL,
  shown_at  REAL,
  FOREIGN KEY (owner, task) REFERENCES tasks (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX notices_new ON notices (owner, seq) WHERE shown_at IS NULL;

-- The same table; `subject` is a conversation, or a run for the kind `run`.
CREATE TABLE new_jobs (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  kind         TEXT NOT NULL CHECK (kind IN ('compact', 'facts', 'tasks', 'fresh', 'run')),
  subject      TEXT NOT NULL,
  conversation TEXT GENERATED ALWAYS AS (CASE WHEN kind <> 'run' THEN subject END)
    REFERENCES conversations (id) ON DELETE CASCADE,
  run          TEXT GENERATED ALWAYS AS (CASE WHEN kind = 'run' THEN subject END) REFERENCES runs (id) ON DELETE CASCADE,
  payload      TEXT NOT NULL, -- JSON object
  state        TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'failed')), -- a finished one is deleted
  attempts     INTEGER NOT NULL,
  not_before   REAL NOT NULL,
  leased_until REAL, -- while running; a lease that has run out is taken up again
  problem      TEXT,
  created_at   REAL NOT NULL,
  ended_at     REAL
) STRICT;
INSERT INTO new_jobs (seq, kind, subject, payload, state, attempts, not_before, leased_until, problem, created_at, ended_at)
SELECT seq, kind, conversation, payload, state, attempts, not_before, leased_until, problem, created_at, ended_at FROM jobs;
DROP TABLE jobs;
ALTER TABLE new_jobs RENAME TO jobs;
CREATE INDEX jobs_open ON jobs (state, not_before) WHERE state IN ('waiting', 'running');
-- One waiting job of a kind a subject is enough: it takes in all that came before it runs.
CREATE UNIQUE INDEX jobs_one_waiting ON jobs (subject, kind) WHERE state = 'waiting';
