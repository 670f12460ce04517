-- Vectors of parts of projects, made and dropped as those of facts. An unchanged part of a changed file keeps its own.
ALTER TABLE code_parts ADD COLUMN digest BLOB NOT NULL DEFAULT x''; -- of title and body

CREATE TABLE code_vectors (
  part    INTEGER PRIMARY KEY REFERENCES code_parts (id) ON DELETE CASCADE,
  vector  BLOB, -- little-endian float32
  problem TEXT -- why it has none
) STRICT;
