-- `sections` moves to the end: it is long, and SQLite reads a row from its beginning to the last column asked for.
CREATE TABLE wiki_pages_new (
  id         INTEGER PRIMARY KEY,
  title      TEXT NOT NULL UNIQUE,
  revision   INTEGER NOT NULL,
  bytes      INTEGER NOT NULL, -- of the wikitext
  updated_at REAL NOT NULL,
  origin     TEXT NOT NULL, -- 'sample', or the wiki that the page was imported from
  extractor  INTEGER NOT NULL, -- gateway.wiki.wikitext.extract.VERSION that made `sections`
  sketch     BLOB NOT NULL, -- gateway.wiki.sketch: tells near-copies
  sections   TEXT NOT NULL -- JSON array of gateway.wiki.source.Section
) STRICT;

INSERT INTO wiki_pages_new SELECT id, title, revision, bytes, updated_at, origin, 0, x'', sections FROM wiki_pages;
DROP TABLE wiki_pages;
ALTER TABLE wiki_pages_new RENAME TO wiki_pages;
CREATE INDEX wiki_pages_origin ON wiki_pages (origin);

-- Titles that an import with --prune has met so far; the others are removed at its end.
CREATE TABLE wiki_import_seen (
  title TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- The sample is read again, to be sketched.
DELETE FROM wiki_state WHERE name = 'sample';
