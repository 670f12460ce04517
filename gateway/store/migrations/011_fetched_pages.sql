-- Pages of a wiki behind an API as they were last fetched; those used last stay, up to a number of bytes.
CREATE TABLE wiki_fetched (
  id         INTEGER PRIMARY KEY,
  wiki       TEXT NOT NULL, -- address of its api.php
  reader     INTEGER NOT NULL, -- gateway.wiki.html.page.VERSION that made `sections`
  title      TEXT NOT NULL UNIQUE,
  revision   INTEGER NOT NULL,
  url        TEXT NOT NULL,
  bytes      INTEGER NOT NULL, -- of `sections`
  updated_at REAL NOT NULL, -- when it was fetched
  used_at    REAL NOT NULL,
  sketch     BLOB NOT NULL, -- gateway.wiki.sketch: tells near-copies
  sections   TEXT NOT NULL -- JSON array of gateway.wiki.source.Section
) STRICT;

CREATE INDEX wiki_fetched_used ON wiki_fetched (used_at, bytes);

-- Their passages' vectors, as those of imported pages in 009; the vectors themselves are in `wiki_fetched_vectors`.
CREATE TABLE wiki_fetched_embedded (
  page    INTEGER PRIMARY KEY REFERENCES wiki_fetched (id) ON DELETE CASCADE,
  cutter  INTEGER NOT NULL,
  problem TEXT
) STRICT;

CREATE TABLE wiki_fetched_passages (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  page    INTEGER NOT NULL REFERENCES wiki_fetched_embedded (page) ON DELETE CASCADE,
  section INTEGER NOT NULL
) STRICT;

CREATE INDEX wiki_fetched_passages_page ON wiki_fetched_passages (page);

CREATE TABLE wiki_fetched_gone (
  id INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER wiki_fetched_passages_delete AFTER DELETE ON wiki_fetched_passages BEGIN
  INSERT INTO wiki_fetched_gone VALUES (old.id);
END;
