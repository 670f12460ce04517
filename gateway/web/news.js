// What happens in a conversation behind the replies: compaction, facts, tasks.

import { stream } from "./api.js";

const AGAIN_SECONDS = 5;

/** Follows the news of the conversation at `path` until `signal`. `tell` gets a line ("" for none), `erased` is called once. */
export async function followNews(path, signal, tell, erased) {
  while (!signal.aborted) {
    try {
      for await (const { event, data } of stream("GET", `${path}/events`, { signal, quiet: true })) {
        if (event === "erased") return erased();
        tell(newsText(event, data));
      }
    } catch (error) {
      if (error.name === "AbortError" || [401, 403, 404].includes(error.status)) return;
    }
    // The server stops or restarts; what comes of requests is told where they were made.
    await new Promise((resolve) => setTimeout(resolve, AGAIN_SECONDS * 1000));
  }
}

function newsText(event, data) {
  switch (event) {
    case "state":
      return data.compacting ? "Compacting older messages…" : "";
    case "compacting":
      return `Compacting ${data.tokens} tokens of older messages (${data.levels.join(", ")})…`;
    case "compacted":
      return data.summaries ? `Compacted: ${data.summaries} ${data.summaries === 1 ? "summary" : "summaries"} made` : "";
    case "compaction_failed":
      return `Compaction failed: ${data.message}`;
    case "compaction_stopped":
      return "Compaction has made room for your message and goes on later";
    case "facts":
      return `Remembered: ${data.changed.join(", ")}`;
    case "tasks":
      return `Tasks changed: ${data.changed.join(", ")}`;
    case "missed":
      return `${data.count} notices were missed`;
    default:
      return event;
  }
}
