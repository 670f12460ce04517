-- The project whose code the prompts of a conversation may quote; an id that may no longer be registered.
ALTER TABLE conversations ADD COLUMN project TEXT;
