-- Projects: folders of source code and notes that are indexed where they are.
CREATE TABLE code_projects (
  id          TEXT PRIMARY KEY, -- of the path
  name        TEXT NOT NULL UNIQUE,
  path        TEXT NOT NULL UNIQUE,
  docs        INTEGER NOT NULL, -- documents alone
  excludes    TEXT NOT NULL, -- JSON array of globs
  created_at  REAL NOT NULL,
  used_at     REAL NOT NULL,
  indexed_at  REAL,
  files       INTEGER NOT NULL DEFAULT 0,
  definitions INTEGER NOT NULL DEFAULT 0,
  size        INTEGER NOT NULL DEFAULT 0,
  problem     TEXT
) STRICT;

-- Facts of a text by the hash of language, version and content: a copy or a move is not parsed again.
CREATE TABLE code_facts (
  hash  BLOB PRIMARY KEY,
  facts BLOB NOT NULL -- msgpack of gateway.code.languages.facts.FileFacts
) STRICT, WITHOUT ROWID;

CREATE TABLE code_files (
  id       INTEGER PRIMARY KEY,
  project  TEXT NOT NULL REFERENCES code_projects (id) ON DELETE CASCADE,
  path     TEXT NOT NULL, -- within the project
  module   TEXT NOT NULL, -- dotted; "" for a document
  language TEXT NOT NULL,
  hash     BLOB NOT NULL,
  size     INTEGER NOT NULL, -- bytes
  mtime_ns INTEGER NOT NULL,
  UNIQUE (project, path)
) STRICT;

CREATE INDEX code_files_hash ON code_files (hash);

-- The first definition of a file is the file itself. `ordinal` is the index in its facts.
CREATE TABLE code_definitions (
  id        INTEGER PRIMARY KEY,
  file      INTEGER NOT NULL REFERENCES code_files (id) ON DELETE CASCADE,
  ordinal   INTEGER NOT NULL,
  parent    INTEGER NOT NULL, -- ordinal; -1 for the file
  name      TEXT NOT NULL,
  qualified TEXT NOT NULL, -- such as pkg.module.AuthService.login
  kind      TEXT NOT NULL,
  line      INTEGER NOT NULL,
  end_line  INTEGER NOT NULL,
  signature TEXT NOT NULL,
  doc       TEXT NOT NULL
) STRICT;

CREATE INDEX code_definitions_file ON code_definitions (file, ordinal);
CREATE INDEX code_definitions_name ON code_definitions (name);

-- Calls, bases, imports and uses. `external`: the name of its target outside of the project, if that is known.
CREATE TABLE code_sites (
  id       INTEGER PRIMARY KEY,
  file     INTEGER NOT NULL REFERENCES code_files (id) ON DELETE CASCADE,
  scope    INTEGER NOT NULL, -- ordinal of a definition
  kind     TEXT NOT NULL,
  name     TEXT NOT NULL,
  receiver TEXT NOT NULL,
  line     INTEGER NOT NULL,
  column   INTEGER NOT NULL,
  external TEXT
) STRICT;

CREATE INDEX code_sites_file ON code_sites (file, scope);
CREATE INDEX code_sites_name ON code_sites (name);

CREATE TABLE code_edges (
  site       INTEGER NOT NULL REFERENCES code_sites (id) ON DELETE CASCADE,
  target     INTEGER NOT NULL REFERENCES code_definitions (id) ON DELETE CASCADE,
  origin     TEXT NOT NULL,
  confidence REAL NOT NULL,
  PRIMARY KEY (site, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX code_edges_target ON code_edges (target);

-- Names that resolving a file looked up: it is resolved again when one of them changes elsewhere.
CREATE TABLE code_lookups (
  name TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES code_files (id) ON DELETE CASCADE,
  PRIMARY KEY (name, file)
) STRICT, WITHOUT ROWID;

CREATE INDEX code_lookups_file ON code_lookups (file);

-- Which definitions a file passes to a parameter of a function.
CREATE TABLE code_arguments (
  file     INTEGER NOT NULL REFERENCES code_files (id) ON DELETE CASCADE, -- of the call
  callee   INTEGER NOT NULL REFERENCES code_definitions (id) ON DELETE CASCADE,
  name     TEXT NOT NULL,
  value    INTEGER NOT NULL REFERENCES code_definitions (id) ON DELETE CASCADE,
  kind     TEXT NOT NULL,
  PRIMARY KEY (file, callee, name, value, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX code_arguments_callee ON code_arguments (callee);
CREATE INDEX code_arguments_value ON code_arguments (value);

-- Full text: a row for each definition and each section of a document. The text stays in the files.
CREATE TABLE code_parts (
  id       INTEGER PRIMARY KEY,
  file     INTEGER NOT NULL REFERENCES code_files (id) ON DELETE CASCADE,
  title    TEXT NOT NULL,
  line     INTEGER NOT NULL,
  end_line INTEGER NOT NULL
) STRICT;

CREATE INDEX code_parts_file ON code_parts (file);

CREATE VIRTUAL TABLE code_text USING fts5 (
  title, body, content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2"
);

CREATE TRIGGER code_parts_delete AFTER DELETE ON code_parts BEGIN
  DELETE FROM code_text WHERE rowid = old.id;
END;
