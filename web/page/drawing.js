// Drawings of nodes and arrows. dagre computes the layout. Above a few hundred nodes, where dagre takes seconds, nodes are placed in rows.
import { drawn, element } from "./dom.js";

/**
 * @typedef {{id: string, lines: string[], fill?: string, group?: string, open?: () => void, label?: string}} DrawnNode
 * @typedef {{from: string, to: string}} DrawnEdge
 */

/** The maximal number of nodes for dagre. */
const DAGRE = 400;
/** The maximal number of nodes in a drawing, so that a browser scrolls smoothly. */
export const MOST_NODES = 3000;

/**
 * Draws nodes and edges from top to bottom. Nodes are buttons; a chosen node dims those of other groups.
 * @param {DrawnNode[]} all @param {DrawnEdge[]} edges @param {string} name
 */
export function drawing(all, edges, name) {
  const nodes = all.slice(0, MOST_NODES);
  const boxes = new Map(nodes.map((node) => [node.id, {
    node, width: Math.max(70, Math.max(...node.lines.map((line) => line.length)) * 7 + 18), height: 12 + node.lines.length * 15, x: 0, y: 0,
  }]));
  const kept = edges.filter((edge) => boxes.has(edge.from) && boxes.has(edge.to));
  const dagre = /** @type {any} */ (globalThis).dagre;
  const placed = dagre && nodes.length <= DAGRE ? byDagre(dagre, boxes, kept) : byRows(boxes, kept);
  const lines = placed.lines.map((points) => drawn("path", { class: "edge", "marker-end": "url(#arrow)", d: curve(points) }));
  /** @type {Map<string, any>} */
  const shapes = new Map();
  for (const [id, box] of boxes) {
    const { node } = box;
    const shape = drawn("g", {
      class: "node", tabindex: 0, role: "button", "aria-label": node.label ?? node.lines.join(", "),
      transform: `translate(${box.x - box.width / 2} ${box.y - box.height / 2})`,
      onclick: () => choose(id), onkeydown: (/** @type {KeyboardEvent} */ event) => key(event, id),
    },
    drawn("rect", { width: box.width, height: box.height, rx: 6, style: node.fill ? `fill:${node.fill}` : null }),
    node.lines.map((line, at) => drawn("text", { x: box.width / 2, y: 17 + at * 15, "text-anchor": "middle", class: at > 0 ? "small" : null, style: at > 0 && node.fill ? "fill:var(--text)" : null }, line)));
    shapes.set(id, shape);
  }
  /** @param {string} id */
  function choose(id) {
    const chosen = boxes.get(id)?.node;
    for (const [other, shape] of shapes) {
      shape.classList.toggle("chosen", other === id);
      shape.classList.toggle("dim", chosen?.group !== undefined && boxes.get(other)?.node.group !== chosen.group);
    }
    chosen?.open?.();
  }
  /** @param {KeyboardEvent} event @param {string} id */
  function key(event, id) {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(id); }
    if (event.key === "Escape") for (const shape of shapes.values()) shape.classList.remove("dim", "chosen");
    const next = event.key === "ArrowDown" ? kept.find((edge) => edge.from === id)?.to : event.key === "ArrowUp" ? kept.find((edge) => edge.to === id)?.from : undefined;
    if (next === undefined) return;
    event.preventDefault();
    shapes.get(next)?.focus();
  }
  const view = drawn("svg", { width: placed.width, height: placed.height, viewBox: `0 0 ${placed.width} ${placed.height}`, role: "group", "aria-label": name },
    drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      drawn("path", { class: "tip-of-edge", d: "M0 0L8 4L0 8z" }))),
    lines, [...shapes.values()]);
  let scale = 1;
  const resize = (/** @type {number} */ factor) => {
    scale = Math.min(Math.max(scale * factor, 0.1), 3);
    view.setAttribute("width", String(placed.width * scale));
    view.setAttribute("height", String(placed.height * scale));
  };
  const frame = element("div", { class: "drawing" }, view);
  const fit = () => { if (frame.clientWidth > 0) { scale = 1; resize(Math.min(1, (frame.clientWidth - 4) / placed.width)); } };
  // A drawing that stays readable fits at first; of another one the first node is in sight.
  requestAnimationFrame(() => {
    if (frame.clientWidth / placed.width > 0.55) fit();
    else frame.scrollLeft = (boxes.values().next().value?.x ?? 0) - frame.clientWidth / 2;
  });
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => element("button", { type: "button", "aria-label": title, title, onclick: act }, text);
  return element("div", {},
    all.length > nodes.length ? element("p", { class: "faint" }, `The first ${nodes.length} of ${all.length} are drawn.`) : null,
    element("div", { class: "row", style: "margin-bottom:.4rem" }, button("−", "smaller", () => resize(0.8)), button("+", "larger", () => resize(1.25)), button("Fit", "fit the width", fit), button("1:1", "natural size", () => { scale = 1; resize(1); })),
    frame);
}

/** @typedef {{node: DrawnNode, width: number, height: number, x: number, y: number}} Box */

/** @param {any} dagre @param {Map<string, Box>} boxes @param {DrawnEdge[]} edges */
function byDagre(dagre, boxes, edges) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const [id, box] of boxes) graph.setNode(id, { width: box.width, height: box.height });
  edges.forEach((edge, at) => graph.setEdge(edge.from, edge.to, {}, String(at)));
  dagre.layout(graph);
  for (const [id, box] of boxes) Object.assign(box, { x: graph.node(id).x, y: graph.node(id).y });
  const { width, height } = graph.graph();
  const lines = graph.edges().map((/** @type {any} */ edge) => graph.edge(edge).points);
  return { width: Math.max(width, 40), height: Math.max(height, 40), lines: /** @type {{x: number, y: number}[][]} */ (lines) };
}

/** Places each node one row below the lowest of its predecessors. @param {Map<string, Box>} boxes @param {DrawnEdge[]} edges */
function byRows(boxes, edges) {
  /** @type {Map<string, string[]>} */
  const into = new Map();
  for (const edge of edges) into.set(edge.to, [...(into.get(edge.to) ?? []), edge.from]);
  /** @type {Map<string, number>} */
  const rows = new Map();
  // Nodes of a graph come after their inputs. In a hostile file they may not. Their rows are then wrong, but the loop still ends.
  for (const id of boxes.keys()) rows.set(id, Math.max(-1, ...(into.get(id) ?? []).map((from) => rows.get(from) ?? -1)) + 1);
  /** @type {number[]} */
  const right = [];
  let width = 0;
  for (const [id, box] of boxes) {
    const row = rows.get(id) ?? 0;
    const left = right[row] ?? 10;
    box.x = left + box.width / 2;
    box.y = row * 84 + 40;
    right[row] = left + box.width + 16;
    width = Math.max(width, right[row]);
  }
  const lines = edges.map((edge) => {
    const [from, to] = [/** @type {Box} */ (boxes.get(edge.from)), /** @type {Box} */ (boxes.get(edge.to))];
    return [{ x: from.x, y: from.y + from.height / 2 }, { x: to.x, y: to.y - to.height / 2 }];
  });
  return { width, height: right.length * 84 + 20, lines };
}

/** @param {{x: number, y: number}[]} points */
function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  for (let at = 0; at < rest.length; at += 1) {
    const next = rest[at + 1];
    if (next && at < rest.length - 1) path += `Q${rest[at].x} ${rest[at].y} ${(rest[at].x + next.x) / 2} ${(rest[at].y + next.y) / 2}`;
    else path += `L${rest[at].x} ${rest[at].y}`;
  }
  return path;
}

/** Returns a pale color for a number, on which `--text` is readable in both schemes. @param {number} index */
export function pale(index) {
  // The golden angle keeps neighbors apart.
  const hue = Math.round((index * 137.508) % 360);
  return `light-dark(hsl(${hue} 70% 86%), hsl(${hue} 45% 24%))`;
}
