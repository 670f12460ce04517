CREATE TABLE conversations (
  id           TEXT PRIMARY KEY, -- UUID
  owner        TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('chat', 'code', 'channel')),
  policy       TEXT NOT NULL CHECK (policy IN ('ceiling', 'rounds', 'window', 'conversations')),
  title        TEXT NOT NULL,
  participants TEXT NOT NULL, -- JSON array of names
  persona      TEXT NOT NULL,
  instructions TEXT NOT NULL,
  model        TEXT NOT NULL,
  previous     TEXT REFERENCES conversations (id) ON DELETE SET NULL,
  created_at   REAL NOT NULL,
  updated_at   REAL NOT NULL,
  archived_at  REAL
) STRICT;

CREATE INDEX conversations_owner ON conversations (owner, updated_at);

CREATE TABLE summaries (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation   TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  level          TEXT NOT NULL CHECK (level IN ('round', 'conversation', 'now', 'today', 'month', 'reflection', 'message')),
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
  superseded_by  INTEGER REFERENCES summaries (seq) ON DELETE SET NULL,
  created_at     REAL NOT NULL
) STRICT;

CREATE INDEX summaries_conversation ON summaries (conversation, seq);
CREATE INDEX summaries_live ON summaries (conversation, level) WHERE superseded_by IS NULL;

CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE, -- the client's, or made here: sending it again is no second message
  conversation  TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  role          TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  speaker       TEXT NOT NULL,
  text          TEXT NOT NULL, -- secrets redacted
  tokens        INTEGER NOT NULL,
  round         INTEGER NOT NULL,
  failed        INTEGER NOT NULL CHECK (failed IN (0, 1)),
  summarized_by INTEGER REFERENCES summaries (seq) ON DELETE SET NULL,
  redactions    INTEGER NOT NULL,
  created_at    REAL NOT NULL
) STRICT;

CREATE INDEX messages_conversation ON messages (conversation, seq);

CREATE TABLE jobs (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  kind         TEXT NOT NULL CHECK (kind IN ('compact', 'facts', 'tasks')),
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

CREATE INDEX jobs_open ON jobs (state, not_before) WHERE state IN ('waiting', 'running');
-- One waiting job of a kind a conversation is enough: it takes in all that came before it runs.
CREATE UNIQUE INDEX jobs_one_waiting ON jobs (conversation, kind) WHERE state = 'waiting';

-- How far into a conversation the work of a kind has come: messages.seq.
CREATE TABLE watermarks (
  conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  kind         TEXT NOT NULL CHECK (kind IN ('facts', 'tasks')),
  through      INTEGER NOT NULL,
  PRIMARY KEY (conversation, kind)
) STRICT;

-- Which conversation a recorded request belongs to, so that erasing one erases its prompts and replies as well.
ALTER TABLE requests ADD COLUMN conversation TEXT NOT NULL DEFAULT '';

CREATE INDEX requests_conversation ON requests (conversation) WHERE conversation <> '';
