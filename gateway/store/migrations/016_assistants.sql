-- Speakers' names are now in the prompts of every kind: such lines are counted again.
UPDATE messages SET tokens = -1 WHERE speaker <> '' AND role = 'user' AND NOT failed
AND conversation IN (SELECT id FROM conversations WHERE kind <> 'channel');

-- The time zone whose days a conversation's summaries follow; '' for the configured one.
ALTER TABLE conversations ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';

-- A character: its biography, and what it remembers of all its conversations. Names are unique where there is one.
CREATE TABLE assistants (
  id         TEXT PRIMARY KEY, -- UUID
  owner      TEXT NOT NULL,
  name       TEXT NOT NULL, -- '' for one that a conversation got by itself
  biography  TEXT NOT NULL, -- the current version
  version    INTEGER NOT NULL, -- of the biography, from 1
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  redactions INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX assistants_name ON assistants (owner, name) WHERE name <> '';
CREATE INDEX assistants_owner ON assistants (owner, created_at);

-- All versions, the current one included.
CREATE TABLE biographies (
  assistant  TEXT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  version    INTEGER NOT NULL,
  text       TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (assistant, version)
) STRICT, WITHOUT ROWID;

-- What an assistant has learned: each version contains the one before and the summaries that `reflected` names.
CREATE TABLE reflections (
  assistant      TEXT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  version        INTEGER NOT NULL,
  text           TEXT NOT NULL,
  pins           TEXT NOT NULL, -- JSON array of lines
  tokens         INTEGER NOT NULL,
  prompt_name    TEXT NOT NULL,
  prompt_version INTEGER NOT NULL,
  model          TEXT NOT NULL,
  created_at     REAL NOT NULL,
  PRIMARY KEY (assistant, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE reflected (
  assistant  TEXT NOT NULL,
  summary    INTEGER NOT NULL REFERENCES summaries (seq) ON DELETE CASCADE,
  reflection INTEGER NOT NULL, -- reflections.version
  PRIMARY KEY (assistant, summary),
  FOREIGN KEY (assistant, reflection) REFERENCES reflections (assistant, version) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX reflected_summary ON reflected (summary);
CREATE INDEX reflected_reflection ON reflected (assistant, reflection);

-- A summary that is deleted takes the reflections along that contain it; the other summaries are reflected again.
CREATE TRIGGER summaries_delete BEFORE DELETE ON summaries BEGIN
  DELETE FROM reflections WHERE version >= (
    SELECT reflection FROM reflected WHERE reflected.summary = old.seq AND reflected.assistant = reflections.assistant
  );
END;

-- A persona becomes the biography of an assistant of its conversation and of those that continue it.
ALTER TABLE conversations ADD COLUMN assistant TEXT REFERENCES assistants (id) ON DELETE SET NULL;
CREATE INDEX conversations_assistant ON conversations (assistant) WHERE assistant IS NOT NULL;

CREATE TEMP TABLE moved AS
WITH RECURSIVE line (id, root) AS (
  SELECT id, id FROM conversations AS own WHERE persona <> '' AND NOT EXISTS (
    SELECT 1 FROM conversations AS before WHERE before.id = own.previous AND before.persona = own.persona
  )
  UNION SELECT next.id, line.root FROM line JOIN conversations AS before ON before.id = line.id
  JOIN conversations AS next ON next.previous = before.id AND next.persona = before.persona
)
SELECT id, root FROM line;

INSERT INTO assistants
SELECT id, owner, '', persona, 1, created_at, updated_at, 0 FROM conversations WHERE id IN (SELECT root FROM moved);

INSERT INTO biographies SELECT id, 1, biography, created_at FROM assistants;

UPDATE conversations SET assistant = (SELECT root FROM moved WHERE moved.id = conversations.id);

DROP TABLE moved;
ALTER TABLE conversations DROP COLUMN persona;

-- The old reflection of a conversation is a summary of its beginning: the assistant's next reflection takes it in.
UPDATE summaries SET level = 'conversation' WHERE level = 'reflection';
