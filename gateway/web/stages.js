// What is happening, in words: the stages of a question, and waiting for the model.

/** A `stage` event as a line. One that this page does not know is shown as it is. */
export function stageText({ stage, detail }) {
  switch (stage) {
    case "queued":
      if (detail.position !== undefined) return queueText(detail);
      return detail.waiting ? `Waiting: ${detail.waiting} before this one` : "Asking";
    case "loading":
      return loadingText(detail);
    case "terms":
      return detail.terms ? `Search terms: ${detail.terms.join(", ")}` : "Looking for search terms";
    case "search":
      return searchText(detail);
    case "fetch":
      return `Reading ${detail.title}`;
    case "compact":
      return `Summarizing ${detail.title} in ${detail.words} words`;
    case "answer":
      return detail.pages ? `Answering from ${detail.pages.join(", ")}` : `Answering: ${detail.note}`;
    case "check":
      return checkText(detail);
    default:
      return [stage, ...Object.entries(detail).map(([name, value]) => `${name}=${value}`)].join(" ");
  }
}

/** Whether a line takes the place of the one before it: the same thing has got further. */
export const replaces = (stage, before) =>
  before !== null && stage.stage === before.stage && ["queued", "loading", "terms"].includes(stage.stage);

/** A place in the model's queue. */
export function queueText({ position, wait_seconds: seconds }) {
  return `Waiting in the queue: place ${position}` + (seconds ? `, about ${Math.ceil(seconds)} s` : "");
}

/** How far the model is loaded. */
export const loadingText = ({ fraction }) => `Starting the model: ${Math.round(fraction * 100)} %`;

function searchText({ term, pages, without, note }) {
  const remarks = [without, note].filter(Boolean).map((text) => ` (${text})`);
  return `Searching “${term}”: ${pages.join(", ") || "nothing found"}${remarks.join("")}`;
}

function checkText({ unsupported, corrected }) {
  const parts = [
    unsupported ? `${unsupported} ${unsupported === 1 ? "sentence" : "sentences"} without support in the pages` : null,
    corrected ? `${corrected} corrected` : null,
  ].filter(Boolean);
  return parts.length ? `Citations checked: ${parts.join(", ")}` : "Citations checked";
}
