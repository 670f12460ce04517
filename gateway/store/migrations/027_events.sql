-- What gateways on one database tell each other; deleted after some minutes. NOTIFY is the hint to look. Not used here:
-- a SQLite file has one gateway.
CREATE TABLE events (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  gateway TEXT NOT NULL, -- that tells it
  topic   TEXT NOT NULL,
  key     TEXT NOT NULL, -- such as a conversation
  body    BLOB NOT NULL, -- JSON
  at      REAL NOT NULL
) STRICT;

CREATE INDEX events_at ON events (at);
