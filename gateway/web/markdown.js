// Renders a subset of Markdown as DOM nodes: paragraphs, headings, lists, tables, fenced and inline code, bold.
// Everything else, including HTML and links, stays plain text.

import { h } from "./dom.js";

const FENCE = /^\s{0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const BULLET = /^\s{0,3}[-*+]\s+(.*)$/;
const NUMBER = /^\s{0,3}(\d{1,9})[.)]\s+(.*)$/;
const HEADING = /^\s{0,3}#{1,6}\s+(.*)$/;
const ROW = /^\s{0,3}\|.*\|\s*$/;
const OPEN_ROW = /\|/; // without the pipes at both ends
const RULE = /^(?=.*-)[\s|:-]*$/;
const INLINE = /``([^\n]+?)``|`([^`\n]+)`|\*\*(?=\S)([^*\n]+)\*\*|\[(\d{1,3})\]/g;

/** Renders a text. `cite(n)` makes the node of a marker `[n]`; null leaves the marker as text. */
export function render(text, cite = () => null) {
  const nodes = document.createDocumentFragment();
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  for (let at = 0; at < lines.length; ) {
    const [node, next] = block(lines, at, cite);
    if (node !== null) nodes.append(node);
    at = next;
  }
  return nodes;
}

/** The block that begins at a line, and the index of the line after it. */
function block(lines, at, cite) {
  const line = lines[at];
  if (line.trim() === "") return [null, at + 1];
  if (FENCE.test(line)) return fenced(lines, at);
  if (BULLET.test(line)) return list(lines, at, BULLET, () => h("ul"), cite);
  const number = NUMBER.exec(line);
  if (number) return list(lines, at, NUMBER, () => h("ol", { start: number[1] }), cite);
  const next = lines[at + 1] ?? "";
  if (ROW.test(line) && ROW.test(next)) return table(lines, at, ROW, cite);
  if (OPEN_ROW.test(line) && OPEN_ROW.test(next) && RULE.test(next)) return table(lines, at, OPEN_ROW, cite);
  const heading = HEADING.exec(line);
  if (heading) return [h("p", { class: "heading" }, ...inline(heading[1], cite)), at + 1];
  let end = at + 1;
  while (end < lines.length && !begins(lines[end])) end += 1;
  return [h("p", {}, ...inline(lines.slice(at, end).join("\n"), cite)), end];
}

/** Whether a line ends the paragraph before it. */
function begins(line) {
  return line.trim() === "" || [FENCE, BULLET, NUMBER, HEADING, ROW].some((form) => form.test(line));
}

/** Code up to the closing fence, or up to the end while it is incomplete. */
function fenced(lines, at) {
  const fence = FENCE.exec(lines[at])[1];
  const isEnd = (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0], "") === "";
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  return [h("pre", { tabindex: "0" }, h("code", {}, lines.slice(at + 1, end).join("\n"))), end + 1];
}

/** Items of one kind; an indented line continues its item. */
function list(lines, at, form, make, cite) {
  const element = make();
  let end = at;
  while (end < lines.length && form.test(lines[end])) {
    const item = [form.exec(lines[end]).at(-1)];
    end += 1;
    while (end < lines.length && /^\s{2,}\S/.test(lines[end]) && !begins(lines[end])) {
      item.push(lines[end].trim());
      end += 1;
    }
    element.append(h("li", {}, ...inline(item.join("\n"), cite)));
  }
  return [element, end];
}

/** Rows of cells between pipes; a rule of dashes below the first one makes that the head. */
function table(lines, at, row, cite) {
  const element = h("table");
  let end = at;
  for (; end < lines.length && row.test(lines[end]); end += 1) {
    if (end === at + 1 && RULE.test(lines[end])) {
      for (const cell of element.querySelectorAll("td")) cell.replaceWith(h("th", {}, ...cell.childNodes));
      continue;
    }
    const cells = lines[end].trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/);
    const texts = cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
    element.append(h("tr", {}, ...texts.map((cell) => h("td", {}, ...inline(cell, cite)))));
  }
  return [element, end];
}

function inline(text, cite) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    const node = marked(found, cite);
    if (node === null) continue;
    nodes.push(text.slice(end, found.index), node);
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

function marked([, doubled, code, bold, marker], cite) {
  if (doubled !== undefined || code !== undefined) return h("code", {}, doubled ?? code);
  return bold !== undefined ? h("strong", {}, ...inline(bold, cite)) : cite(Number(marker));
}
