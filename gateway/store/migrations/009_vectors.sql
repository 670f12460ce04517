-- Vectors of wiki passages and of facts, made in the background when an embedding model is configured; else these
-- tables stay empty. The passages' vectors are in `wiki_vectors`, a table of the extension sqlite-vec, which
-- gateway.store.wiki.vectors makes once it knows their dimensions. Nothing here needs that extension.

-- What the vectors were made with; those of another model, size or task prompt cannot be compared. At most one row.
CREATE TABLE vector_space (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  name       TEXT NOT NULL, -- gateway.inference.embedding.Embeddings.space
  dimensions INTEGER NOT NULL,
  identity   TEXT NOT NULL -- of the configured model when it was last seen to make this space
) STRICT;

-- Pages whose passages have their vectors. A page that changes becomes another row of wiki_pages and loses this one.
CREATE TABLE wiki_embedded (
  page    INTEGER PRIMARY KEY REFERENCES wiki_pages (id) ON DELETE CASCADE,
  cutter  INTEGER NOT NULL, -- gateway.wiki.search.vectors.VERSION that cut it
  problem TEXT -- why it has no vectors
) STRICT;

CREATE TABLE wiki_passages (
  id      INTEGER PRIMARY KEY AUTOINCREMENT, -- also in wiki_vectors, so it must never mean another passage
  page    INTEGER NOT NULL REFERENCES wiki_embedded (page) ON DELETE CASCADE,
  section INTEGER NOT NULL -- index in wiki_pages.sections
) STRICT;

CREATE INDEX wiki_passages_page ON wiki_passages (page);

-- Passages that are gone while their vectors are not yet: whoever deletes a page need not have the extension.
CREATE TABLE wiki_passages_gone (
  id INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER wiki_passages_delete AFTER DELETE ON wiki_passages BEGIN
  INSERT INTO wiki_passages_gone VALUES (old.id);
END;

CREATE TABLE fact_vectors (
  fact    INTEGER PRIMARY KEY REFERENCES facts (seq) ON DELETE CASCADE,
  vector  BLOB, -- little-endian float32
  problem TEXT -- why it has none
) STRICT;
