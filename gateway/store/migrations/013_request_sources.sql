-- Which other conversations a recorded prompt has something of: facts and tasks that were read from them.
CREATE TABLE request_sources (
  request      INTEGER NOT NULL REFERENCES requests (seq) ON DELETE CASCADE,
  conversation TEXT NOT NULL,
  PRIMARY KEY (request, conversation)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_sources_conversation ON request_sources (conversation);

INSERT INTO request_sources
SELECT DISTINCT requests.seq, learned.conversation
FROM requests
JOIN generations ON generations.request = requests.seq
JOIN (
  SELECT owner, conversation, text FROM facts
  UNION SELECT owner, conversation, title FROM tasks
) AS learned ON learned.owner = requests.owner AND learned.conversation <> requests.conversation
WHERE requests.conversation <> ''
  AND instr(generations.messages, trim(json_quote(learned.text), '"')) > 0; -- as it stands in JSON
