-- The time zone whose days a conversation's summaries follow; '' for the configured one.
ALTER TABLE conversations ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
