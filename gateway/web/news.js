// Background events of a conversation: compaction, facts, tasks.

import { call, stream } from "./api.js";

const RECONNECT_SECONDS = 5;

const TEXTS = new Map(Object.entries({
  state: ({ compacting }) => (compacting ? "Compacting older messages…" : ""),
  compacting: ({ tokens, levels }) => `Compacting ${tokens} tokens of older messages (${levels.join(", ")})…`,
  compacted: ({ summaries: n }) => (n ? `Compacted: ${n} ${n === 1 ? "summary" : "summaries"} made` : ""),
  compaction_failed: ({ message }) => `Compaction failed: ${message}`,
  compaction_stopped: () => "Compaction paused for your message and will continue later",
  facts: ({ changed }) => `Remembered: ${changed.join(", ")}`,
  tasks: async ({ changed }) => `Tasks changed: ${(await Promise.all(changed.map(taskText))).join("; ")}`,
  missed: ({ count }) => `${count} notices were missed`,
}));

/** A task's words; its id if it is gone. */
export async function taskText(id) {
  try {
    return (await call("GET", `/v1/tasks/${encodeURIComponent(id)}`, { quiet: true })).title;
  } catch {
    return id;
  }
}

/** Follows the events of the conversation at `path` until `signal`; passes each as a line to `show`, "" for none.
 *  Calls `erased` once if the conversation is deleted. */
export async function followNews(path, signal, show, erased) {
  while (!signal.aborted) {
    try {
      for await (const { event, data } of stream("GET", `${path}/events`, { signal, quiet: true })) {
        if (event === "erased") return erased();
        show((await TEXTS.get(event)?.(data)) ?? event);
      }
    } catch (error) {
      if (error.name === "AbortError" || [401, 403, 404].includes(error.status)) return;
    }
    // The server is stopping or restarting. Failed requests show their own errors.
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_SECONDS * 1000));
  }
}
