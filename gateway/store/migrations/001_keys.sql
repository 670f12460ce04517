-- API keys. Only a hash is kept: the token itself is shown once, when the key is made.
CREATE TABLE keys (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  role         TEXT NOT NULL CHECK (role IN ('user', 'admin')),
  owner        TEXT NOT NULL,
  hash         BLOB NOT NULL UNIQUE,
  created_at   REAL NOT NULL, -- Unix seconds, like every time in this database
  last_used_at REAL,
  revoked_at   REAL
) STRICT;

CREATE UNIQUE INDEX keys_active_name ON keys (name) WHERE revoked_at IS NULL;
