-- What was learned about people, channels and projects. A row is never changed but for its end: a newer version
-- supersedes it, a deletion ends it without a successor.
CREATE TABLE facts (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL, -- of the fact through all its versions
  owner         TEXT NOT NULL,
  scope         TEXT NOT NULL CHECK (scope IN ('owner', 'channel', 'project')),
  scope_id      TEXT NOT NULL, -- conversation of a channel, id of a project, '' for the owner's
  key           TEXT NOT NULL,
  text          TEXT NOT NULL,
  quote         TEXT NOT NULL, -- of the user's text it was read from; '' when the user entered it
  conversation  TEXT REFERENCES conversations (id) ON DELETE CASCADE,
  message       INTEGER, -- messages.seq
  reason        TEXT NOT NULL,
  valid_from    REAL NOT NULL,
  ended_at      REAL, -- superseded or deleted
  superseded_by INTEGER REFERENCES facts (seq) ON DELETE SET NULL
) STRICT;

CREATE INDEX facts_live ON facts (owner, scope, scope_id, valid_from) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX facts_live_key ON facts (owner, scope, scope_id, key) WHERE ended_at IS NULL;
CREATE INDEX facts_id ON facts (id, seq);

CREATE VIRTUAL TABLE fact_words USING fts5 (
  key, text, content = 'facts', content_rowid = 'seq', tokenize = "porter unicode61 remove_diacritics 2"
);

CREATE TRIGGER facts_insert AFTER INSERT ON facts BEGIN
  INSERT INTO fact_words (rowid, key, text) VALUES (new.seq, new.key, new.text);
END;

CREATE TRIGGER facts_delete AFTER DELETE ON facts BEGIN
  INSERT INTO fact_words (fact_words, rowid, key, text) VALUES ('delete', old.seq, old.key, old.text);
END;

-- OBJECTIVE > TASK > CHECKLIST item. Ids sort and explain themselves: O-20261120-01, T-20261120-03, T-20261120-03.c2.
CREATE TABLE tasks (
  id           TEXT NOT NULL,
  owner        TEXT NOT NULL,
  level        TEXT NOT NULL CHECK (level IN ('objective', 'task', 'checklist')),
  parent       TEXT,
  archetype    TEXT NOT NULL CHECK (archetype IN ('user', 'model', 'hybrid')),
  title        TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'doing', 'waiting', 'done', 'cancelled')),
  day          TEXT NOT NULL, -- YYYY-MM-DD, the day it belongs to
  breakpoint   INTEGER NOT NULL CHECK (breakpoint IN (0, 1)), -- stop here and ask the user
  tool         TEXT, -- JSON {name, arguments} that a runner would call
  question     TEXT, -- what a breakpoint asks
  conversation TEXT REFERENCES conversations (id) ON DELETE CASCADE,
  message      INTEGER, -- messages.seq that caused the last change
  created_at   REAL NOT NULL,
  updated_at   REAL NOT NULL,
  PRIMARY KEY (owner, id),
  FOREIGN KEY (owner, parent) REFERENCES tasks (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_day ON tasks (owner, day);
