-- Full text of messages, to find what was said. The view is what the index contains: no failed messages, and `đ` as `d`,
-- which has no diacritic that SQLite could remove.
CREATE VIEW message_texts AS
SELECT seq, replace(replace(text, 'đ', 'd'), 'Đ', 'D') AS text FROM messages WHERE NOT failed;

CREATE VIRTUAL TABLE message_words USING fts5 (
  text, content = 'message_texts', content_rowid = 'seq', tokenize = "porter unicode61 remove_diacritics 2"
);

INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);
INSERT INTO message_words (message_words) VALUES ('rebuild');

CREATE TRIGGER message_words_insert AFTER INSERT ON messages BEGIN
  INSERT INTO message_words (rowid, text) SELECT seq, text FROM message_texts WHERE seq = new.seq;
END;

CREATE TRIGGER message_words_delete BEFORE DELETE ON messages BEGIN
  INSERT INTO message_words (message_words, rowid, text)
  SELECT 'delete', seq, text FROM message_texts WHERE seq = old.seq;
END;

CREATE TRIGGER message_words_change BEFORE UPDATE OF text, failed ON messages BEGIN
  INSERT INTO message_words (message_words, rowid, text)
  SELECT 'delete', seq, text FROM message_texts WHERE seq = old.seq;
END;

CREATE TRIGGER message_words_changed AFTER UPDATE OF text, failed ON messages BEGIN
  INSERT INTO message_words (rowid, text) SELECT seq, text FROM message_texts WHERE seq = new.seq;
END;

-- Vectors of messages, a row for each part of a long one; made and dropped as those of facts.
CREATE TABLE message_vectors (
  message INTEGER NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
  vector  BLOB, -- little-endian float32
  problem TEXT -- why it has none
) STRICT;

CREATE INDEX message_vectors_message ON message_vectors (message);

CREATE TRIGGER message_vectors_change AFTER UPDATE OF text ON messages BEGIN
  DELETE FROM message_vectors WHERE message = new.seq;
END;
