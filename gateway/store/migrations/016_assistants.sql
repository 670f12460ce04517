-- Speakers' names are now in the prompts of every kind: such lines are counted again.
UPDATE messages SET tokens = -1 WHERE speaker <> '' AND role = 'user' AND NOT failed
AND conversation IN (SELECT id FROM conversations WHERE kind <> 'channel');

-- The time zone whose days a conversation's summaries follow; '' for the configured one.
ALTER TABLE conversations ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
