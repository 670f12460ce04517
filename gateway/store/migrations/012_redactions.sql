-- How many secrets were taken out of a row's texts before it was stored, as messages have it from the beginning.
ALTER TABLE conversations ADD COLUMN redactions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE facts ADD COLUMN redactions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN redactions INTEGER NOT NULL DEFAULT 0;
