-- Tasks that were mentioned on another day than their own, and stay on that day's list: JSON array of YYYY-MM-DD.
ALTER TABLE tasks ADD COLUMN days TEXT NOT NULL DEFAULT '[]';
