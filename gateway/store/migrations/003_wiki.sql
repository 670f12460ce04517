CREATE TABLE wiki_pages (
  id         INTEGER PRIMARY KEY,
  title      TEXT NOT NULL UNIQUE,
  revision   INTEGER NOT NULL,
  sections   TEXT NOT NULL, -- JSON array of gateway.wiki.source.Section
  bytes      INTEGER NOT NULL, -- of the wikitext
  updated_at REAL NOT NULL,
  origin     TEXT NOT NULL -- 'sample' or what the page was imported from
) STRICT;

CREATE INDEX wiki_pages_origin ON wiki_pages (origin);

-- Every name a page can be asked for: its title (target = name) and the redirects (target = another name).
CREATE TABLE wiki_names (
  id     INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE,
  key    TEXT NOT NULL, -- gateway.store.fts.title_key(name)
  target TEXT NOT NULL,
  origin TEXT NOT NULL
) STRICT;

CREATE INDEX wiki_names_key ON wiki_names (key);
CREATE INDEX wiki_names_origin ON wiki_names (origin);

CREATE VIRTUAL TABLE wiki_name_words USING fts5 (
  name, content = 'wiki_names', content_rowid = 'id', prefix = '2 3',
  tokenize = "unicode61 remove_diacritics 2"
);

-- Trigrams also see punctuation, which the word tokenizer drops: `><>` is a name.
CREATE VIRTUAL TABLE wiki_name_trigrams USING fts5 (
  name, content = 'wiki_names', content_rowid = 'id', tokenize = "trigram remove_diacritics 1"
);

CREATE TRIGGER wiki_names_insert AFTER INSERT ON wiki_names BEGIN
  INSERT INTO wiki_name_words (rowid, name) VALUES (new.id, new.name);
  INSERT INTO wiki_name_trigrams (rowid, name) VALUES (new.id, new.name);
END;

CREATE TRIGGER wiki_names_delete AFTER DELETE ON wiki_names BEGIN
  INSERT INTO wiki_name_words (wiki_name_words, rowid, name) VALUES ('delete', old.id, old.name);
  INSERT INTO wiki_name_trigrams (wiki_name_trigrams, rowid, name) VALUES ('delete', old.id, old.name);
END;

-- Names are never renamed: a changed title is another row. A changed target needs no new index entry.
CREATE TRIGGER wiki_names_rename BEFORE UPDATE OF name ON wiki_names BEGIN
  SELECT raise(ABORT, 'a wiki name cannot change');
END;

-- The page text is in wiki_pages.sections; this index keeps no copy. rowid is wiki_pages.id.
CREATE VIRTUAL TABLE wiki_text USING fts5 (
  title, headings, body, content = '', contentless_delete = 1,
  tokenize = "porter unicode61 remove_diacritics 2"
);

CREATE TABLE wiki_state (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
