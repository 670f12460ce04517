// Progress as text: the stages of a question, and waiting for the model.

const STAGES = new Map(Object.entries({
  queued: (detail) => (detail.position === undefined ? startText(detail) : queueText(detail)),
  loading: (detail) => loadingText(detail),
  terms: ({ terms }) => (terms ? `Search terms: ${terms.join(", ") || "those of the question"}` : "Choosing search terms"),
  search: ({ term, pages, without, note }) => {
    const remarks = [without, note].filter(Boolean).map((text) => ` (${text})`);
    return `Searching “${term}”: ${pages.join(", ") || "nothing found"}${remarks.join("")}`;
  },
  fetch: ({ title }) => `Reading ${title}`,
  rerank: () => "Ranking the passages again",
  compact: ({ title, words }) => `Summarizing ${title} in ${words} words`,
  answer: ({ pages, note, seconds }) => (pages ? `Answering from ${pages.join(", ")}${about(seconds)}` : `Answering: ${note}`),
  reading: (detail) => readingText(detail),
  check: ({ unsupported, corrected }) => {
    const parts = [];
    if (unsupported) parts.push(`${unsupported} ${unsupported === 1 ? "sentence" : "sentences"} without support in the pages`);
    if (corrected) parts.push(`${corrected} corrected`);
    return parts.length ? `Citations checked: ${parts.join(", ")}` : "Citations checked";
  },
}));

const about = (seconds) => (seconds >= 1 ? ` (about ${Math.ceil(seconds)} s)` : "");

const startText = ({ waiting }) => (waiting ? `Waiting: ${waiting} before this one` : "Asking");

/** A `stage` event as a line of text. An unknown stage is shown with its raw details. */
export const stageText = ({ stage, detail }) =>
  STAGES.get(stage)?.(detail) ?? [stage, ...Object.entries(detail).map(([name, value]) => `${name}=${value}`)].join(" ");

/** Whether a stage only updates the one before it and replaces its line. */
export const replaces = (stage, before) =>
  before !== null && stage.stage === before.stage && ["queued", "loading", "terms", "reading"].includes(stage.stage);

export function queueText({ position, wait_seconds: seconds }) {
  return `Waiting in the queue: place ${position}` + (seconds ? `, about ${Math.ceil(seconds)} s` : "");
}

export const readingText = ({ done, total, seconds_left: left }) =>
  `Prompt: ${done} of ${total} tokens read` + (left >= 1 ? `, about ${Math.ceil(left)} s left` : "");

export const loadingText = ({ fraction }) => `Starting the model: ${Math.round(fraction * 100)} %`;
