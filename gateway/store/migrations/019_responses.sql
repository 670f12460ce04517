-- Responses of POST /v1/responses, until their client deletes them or they are too many, too large or too old.
CREATE TABLE responses (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL,
  owner      TEXT NOT NULL,
  user       TEXT, -- the client's end user
  created_at REAL NOT NULL,
  previous   TEXT, -- id of the response that this one continues; it may be gone
  bytes      INTEGER NOT NULL,
  input      TEXT NOT NULL, -- JSON array: the items of the request
  response   TEXT NOT NULL, -- JSON object: the reply
  UNIQUE (owner, id) -- the id comes from the client when it sends X-Request-ID
) STRICT;

CREATE INDEX responses_age ON responses (created_at);
