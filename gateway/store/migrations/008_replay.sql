-- What a generation needs to be run again: the values of its prompt's variables, and what its output had to obey.
ALTER TABLE generations ADD COLUMN variables TEXT NOT NULL DEFAULT '{}'; -- JSON object
ALTER TABLE generations ADD COLUMN obeyed TEXT NOT NULL DEFAULT '{}'; -- JSON object: json_schema or grammar
