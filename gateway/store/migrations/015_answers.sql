-- Which message a reply answers: sending that message again finds this reply and no other one.
ALTER TABLE messages ADD COLUMN answers INTEGER; -- messages.seq; null in users' lines and in what was only kept

-- Until now replies were told by their place: behind the message, failed replies between them left aside.
UPDATE messages SET answers = (
  SELECT CASE before.role WHEN 'user' THEN before.seq END FROM messages AS before
  WHERE before.conversation = messages.conversation AND before.seq < messages.seq AND NOT before.failed
  ORDER BY before.seq DESC LIMIT 1
) WHERE role = 'assistant';
