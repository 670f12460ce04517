-- What is left of an indexing that was interrupted, files of an older indexer, and the importance of definitions.
ALTER TABLE code_files ADD COLUMN version INTEGER NOT NULL DEFAULT 0; -- of the indexer that parsed it
ALTER TABLE code_files ADD COLUMN pending INTEGER NOT NULL DEFAULT 0; -- to be resolved
ALTER TABLE code_definitions ADD COLUMN rank REAL NOT NULL DEFAULT 0; -- PageRank; 0 until it is computed
CREATE INDEX code_files_pending ON code_files (project) WHERE pending;
