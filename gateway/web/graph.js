// The code view: the neighbourhood of a definition as a graph and as a list, and the code behind a node.

import { call } from "./api.js";
import { byId, h } from "./dom.js";
import { problem } from "./problem.js";

// Around a definition, each ring is one call further away.
const RINGS = { name: "concentric", concentric: (node) => -node.data("distance"), levelWidth: () => 1, minNodeSpacing: 36 };
const CLUSTERS = { name: "cose", animate: false, numIter: 300, nodeRepulsion: () => 40000, idealEdgeLength: () => 50 };

let drawing = null; // cytoscape's instance
let shown = null; // the last reply, and what was asked for it
let project = null;

export function setUpGraph() {
  byId("graph-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go(byId("graph-name").value.trim());
  });
  for (const id of ["graph-level", "graph-depth"]) byId(id).addEventListener("change", () => draw(shown?.name ?? ""));
  byId("graph-project").addEventListener("change", (event) => (location.hash = address(event.target.value, "")));
  byId("graph-filter").addEventListener("input", filter);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawing?.style(look()));
}

/** Shows a project; with `name`, the neighbourhood of that definition. */
export async function openGraph(wanted, name) {
  const box = byId("graph-problems");
  box.replaceChildren();
  try {
    const projects = (await call("GET", "/v1/projects")).data;
    project = projects.find((each) => [each.id, each.name].includes(wanted)) ?? projects[0] ?? null;
    const choices = projects.map((each) => h("option", { value: each.name, selected: each === project }, each.name));
    byId("graph-project").replaceChildren(...choices);
    byId("graph-form").hidden = project === null;
    if (project === null) {
      const hint = ["No project is registered. On the server, ", h("code", {}, "hearth context add PATH"), " adds one."];
      box.replaceChildren(h("p", { class: "hint" }, ...hint));
      return;
    }
    byId("graph-name").value = name;
    await draw(name);
  } catch (error) {
    box.replaceChildren(problem(error, () => openGraph(wanted, name)));
  }
}

const address = (which, name) => `#/code/${encodeURIComponent(which)}${name ? `/${encodeURIComponent(name)}` : ""}`;
const route = (query, fields) => `/v1/projects/${project.id}/${query}?${new URLSearchParams(fields)}`;

function go(name) {
  const next = address(project.name, name);
  if (location.hash === next) draw(name);
  else location.hash = next;
}

async function draw(name) {
  const box = byId("graph-problems");
  box.replaceChildren();
  try {
    const fields = { name, level: byId("graph-level").value, depth: byId("graph-depth").value };
    const graph = await call("GET", route("graph", fields));
    shown = { name, graph };
    byId("graph-count").textContent =
      `${graph.nodes.length} shown${graph.left_out ? `, ${graph.left_out} more did not fit` : ""}.`;
    list(graph.nodes);
    await paint(graph);
    if (name) await showCode(name);
    else byId("graph-code").replaceChildren();
  } catch (error) {
    if (error.status === 404 && name) await suggest(name);
    else box.replaceChildren(problem(error, () => draw(name)));
  }
}

/** What the search finds, where nothing has the name. */
async function suggest(words) {
  const found = (await call("GET", route("search", { q: words, limit: 20 }))).data.filter((each) => each.kind === "code");
  const title = found.length ? `Nothing is called “${words}”. These parts of the code match:` : `Nothing matches “${words}”.`;
  const rows = found.map(({ path, line, text }) => h("li", {}, jump(`${path}:${line}`), " ", h("code", {}, text.trim().split("\n")[0])));
  byId("graph-problems").replaceChildren(h("p", {}, title), h("ul", {}, ...rows));
}

const jump = (name, text = name) => h("a", { href: address(project.name, name) }, text);

function list(nodes) {
  const rows = nodes.map(({ name, kind, path, ref }) =>
    h("li", { "data-words": `${name} ${path}`.toLowerCase() }, jump(ref, name), " ", h("span", { class: "hint" }, `${kind} · ${path}`)));
  byId("graph-list").replaceChildren(...rows);
  filter();
}

/** Hides what does not have the words of the filter, in list and drawing. */
function filter() {
  const words = byId("graph-filter").value.trim().toLowerCase();
  for (const row of byId("graph-list").children) row.hidden = !row.dataset.words.includes(words);
  drawing?.nodes().forEach((node) => node.style("display", node.data("words").includes(words) ? "element" : "none"));
}

async function paint({ nodes, edges }) {
  const { default: cytoscape } = await import("./cytoscape.js");
  drawing?.destroy();
  drawing = cytoscape({
    container: byId("graph-drawing"),
    elements: [
      ...nodes.map((node) => ({
        data: { ...node, words: `${node.name} ${node.path}`.toLowerCase(), label: short(node) },
        classes: `${node.kind} ${node.distance === 0 && shown.name ? "centre" : ""}`,
      })),
      ...edges.map((edge) => ({ data: edge })),
    ],
    style: look(),
    layout: nodes.some((node) => node.distance > 0) ? RINGS : CLUSTERS,
  });
  drawing.on("tap", "node", (event) => showCode(event.target.data("ref")));
  drawing.on("dbltap", "node", (event) => go(event.target.data("ref")));
  filter();
}

const short = ({ name, kind }) => (kind === "file" ? name.split("/").slice(-2).join("/") : name.split(".").slice(-2).join("."));

/** The colours of the page, which the drawing cannot inherit. */
function look() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const text = { label: "data(label)", color: colour("--ink"), "font-size": 13, "text-valign": "bottom", "text-margin-y": 3 };
  return [
    { selector: "node", style: { ...text, width: 14, height: 14, "background-color": colour("--faint") } },
    { selector: ".class", style: { shape: "round-rectangle", "background-color": colour("--accent") } },
    { selector: ".file, .module", style: { shape: "diamond" } },
    { selector: ".centre", style: { width: 22, height: 22, "border-width": 3, "border-color": colour("--accent") } },
    { selector: "node:selected", style: { "background-color": colour("--alarm") } },
    {
      selector: "edge",
      style: { width: 1, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.8, opacity: 0.45, "line-color": colour("--faint"), "target-arrow-color": colour("--faint") },
    },
  ];
}

/** The code of a definition, and who calls it. */
async function showCode(name) {
  const box = byId("graph-code");
  try {
    const { definitions, left_out: more } = await call("GET", route("code", { name }));
    const callers = await call("GET", route("callers", { name }));
    const blocks = definitions.map(({ name: full, kind, path, line, end_line: end, shown_to: last, code }) =>
      h("div", {}, h("h3", {}, full), h("p", { class: "hint" }, `${kind} · ${path}:${line}`),
        h("pre", { tabindex: "0" }, h("code", {}, code)),
        last < end ? h("p", { class: "hint" }, `${end - last} more lines in the file.`) : null));
    if (more) blocks.push(h("p", { class: "hint" }, `${more} more definitions have this name.`));
    box.replaceChildren(...blocks, ...uses("Called by", callers.confirmed), ...uses("Possibly called by", callers.possible));
  } catch (error) {
    box.replaceChildren(problem(error, () => showCode(name)));
  }
}

function uses(title, rows) {
  if (!rows.length) return [];
  const items = rows.map(({ caller, path, line }) => h("li", {}, jump(caller), " ", h("span", { class: "hint" }, `${path}:${line}`)));
  return [h("h3", {}, `${title} (${rows.length})`), h("ul", {}, ...items)];
}
