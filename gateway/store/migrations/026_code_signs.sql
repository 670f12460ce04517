-- The signs of a vector's numbers, by project: a search compares the query with these, and reads the nearest vectors.
-- Earlier vectors are made again.
DELETE FROM code_vectors;
ALTER TABLE code_vectors ADD COLUMN project TEXT; -- of the part
ALTER TABLE code_vectors ADD COLUMN signs BLOB; -- a bit each
CREATE INDEX code_vectors_signs ON code_vectors (project, signs);
