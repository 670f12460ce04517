-- One row per request. `id` comes from the client when it sends X-Request-ID, so it may repeat: `seq` is the key.
CREATE TABLE requests (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('ask', 'chat', 'generate')),
  started_at REAL NOT NULL,
  seconds    REAL NOT NULL,
  status     INTEGER NOT NULL,
  owner      TEXT NOT NULL,
  text       TEXT NOT NULL,
  answer     TEXT NOT NULL,
  model      TEXT NOT NULL,
  error      TEXT,
  details    TEXT NOT NULL, -- JSON object
  redactions INTEGER NOT NULL,
  bytes      INTEGER NOT NULL -- of this row and the rows that belong to it
) STRICT;

CREATE INDEX requests_id ON requests (id);
CREATE INDEX requests_kind ON requests (kind, seq);

CREATE TABLE generations (
  request           INTEGER NOT NULL REFERENCES requests (seq) ON DELETE CASCADE,
  seq               INTEGER NOT NULL,
  step              TEXT NOT NULL,
  prompt_name       TEXT NOT NULL,
  prompt_version    TEXT NOT NULL,
  messages          TEXT NOT NULL, -- JSON array: the whole prompt
  output            TEXT NOT NULL, -- as the model wrote it
  prompt_tokens     INTEGER NOT NULL,
  cached_tokens     INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  queue_seconds     REAL NOT NULL,
  prefill_seconds   REAL NOT NULL,
  decode_seconds    REAL NOT NULL,
  seed              INTEGER,
  finish_reason     TEXT NOT NULL,
  sampling          TEXT NOT NULL, -- JSON object
  PRIMARY KEY (request, seq)
) STRICT;

CREATE TABLE request_pages (
  request  INTEGER NOT NULL REFERENCES requests (seq) ON DELETE CASCADE,
  seq      INTEGER NOT NULL,
  title    TEXT NOT NULL,
  revision INTEGER NOT NULL,
  term     TEXT NOT NULL,
  how      TEXT NOT NULL,
  tokens   INTEGER NOT NULL,
  PRIMARY KEY (request, seq)
) STRICT;

-- Running totals of `requests`, so that rotation never scans the table.
CREATE TABLE request_totals (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  records INTEGER NOT NULL,
  bytes   INTEGER NOT NULL
) STRICT;

INSERT INTO request_totals VALUES (1, 0, 0);
