// Server-sent events from a reply's body: EventSource can neither post nor send a key.

const LONGEST_LINE = 64 * 1024 * 1024; // characters; limits the memory that a broken server can use

/** Yields {event, data} with `data` parsed from JSON; comments are skipped. */
export async function* events(body) {
  let event = "message";
  let data = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length) yield { event, data: JSON.parse(data.join("\n")) };
      event = "message";
      data = [];
      continue;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") event = value;
    if (field === "data") data.push(value);
  }
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      if (rest.length > LONGEST_LINE) throw new Error("a line of the stream is too long");
      for (const part of parts) yield part.replace(/\r$/, "");
    }
  } finally {
    await reader.cancel().catch(() => {}); // closes the connection if the reader stops early
  }
}
