-- Summaries of wiki pages for a question, by a hash of everything they depend on. No question stands here.
CREATE TABLE compactions (
  key     BLOB PRIMARY KEY,
  text    TEXT NOT NULL,
  used_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX compactions_used ON compactions (used_at);
