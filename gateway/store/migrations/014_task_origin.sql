-- The message that a task was read from, whatever has changed the task since: forgetting its speaker takes the task along.
ALTER TABLE tasks ADD COLUMN origin INTEGER; -- messages.seq

UPDATE tasks SET origin = message;

CREATE TRIGGER tasks_insert AFTER INSERT ON tasks BEGIN
  UPDATE tasks SET origin = new.message WHERE owner = new.owner AND id = new.id;
END;
