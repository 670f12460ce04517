-- The words of an erased fact leave the index at once, not when its segments happen to be merged.
INSERT INTO fact_words (fact_words, rank) VALUES ('secure-delete', 1);
INSERT INTO fact_words (fact_words) VALUES ('rebuild');

-- A client's message id counts within its conversation: nobody learns of, or gets in the way of, other people's.
CREATE TABLE new_messages (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL, -- the client's, or made here: sending it again is no second message
  conversation  TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  role          TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  speaker       TEXT NOT NULL,
  text          TEXT NOT NULL, -- secrets redacted
  tokens        INTEGER NOT NULL,
  round         INTEGER NOT NULL,
  failed        INTEGER NOT NULL CHECK (failed IN (0, 1)),
  summarized_by INTEGER REFERENCES summaries (seq) ON DELETE SET NULL,
  redactions    INTEGER NOT NULL,
  created_at    REAL NOT NULL,
  UNIQUE (conversation, id)
) STRICT;

INSERT INTO new_messages SELECT * FROM messages ORDER BY seq;
-- Numbers of erased messages are not given again.
DELETE FROM sqlite_sequence WHERE name = 'new_messages';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_messages', seq FROM sqlite_sequence WHERE name = 'messages';
DROP TABLE messages;
ALTER TABLE new_messages RENAME TO messages;
CREATE INDEX messages_conversation ON messages (conversation, seq);
CREATE INDEX messages_summary ON messages (summarized_by) WHERE summarized_by IS NOT NULL;

-- Which model has counted the tokens of a conversation's messages; `model` stays the one that it was begun with.
ALTER TABLE conversations ADD COLUMN counted_by TEXT NOT NULL DEFAULT '';
UPDATE conversations SET counted_by = model;
