// Drawings of nodes and arrows. Nodes are buttons, of which the Tab key reaches one; the arrow keys go from node to node.
import { clipped, drawn, element } from "./dom.js";
import { layout } from "./layout.js";

/**
 * @typedef {{id: string, lines: string[], fill?: string, group?: string, open?: () => void, label?: string}} DrawnNode
 * @typedef {import("./layout.js").Edge} DrawnEdge
 */

/** The maximal number of nodes and arrows in a drawing, so that a browser scrolls smoothly. */
export const MOST_NODES = 3000;
export const MOST_EDGES = 20_000;
/** Letters of a line in a node. */
const MOST_NODE_LETTERS = 36;

/** The number of drawings so far. It makes the ids of their parts unique. */
let count = 0;

/**
 * Draws nodes and edges from top to bottom. A chosen node dims those of other groups.
 * @param {DrawnNode[]} all @param {DrawnEdge[]} edges @param {string} name @param {number} [total] the number of nodes, if `all` has only the first
 */
export function drawing(all, edges, name, total = all.length) {
  count += 1;
  const [arrow, keys] = [`arrow-${count}`, `keys-${count}`];
  const nodes = all.slice(0, MOST_NODES);
  const boxes = new Map(nodes.map((node) => {
    const lines = node.lines.map((line) => clipped(line, MOST_NODE_LETTERS));
    return [node.id, { node, lines, width: Math.max(70, Math.max(...lines.map((line) => line.length)) * 7 + 18), height: 12 + lines.length * 15, x: 0, y: 0 }];
  }));
  const known = edges.filter((edge) => boxes.has(edge.from) && boxes.has(edge.to));
  const kept = known.slice(0, MOST_EDGES);
  const placed = layout(boxes, kept);
  const lines = placed.lines.map(({ path, isEnd }) => drawn("path", { class: "edge", "marker-end": isEnd ? `url(#${arrow})` : null, d: path }));
  /** @type {Map<string, any>} */
  const shapes = new Map();
  for (const [id, box] of boxes) {
    const { node } = box;
    shapes.set(id, drawn("g", {
      class: node.fill ? "node filled" : "node", style: node.fill ? `--fill:${node.fill}` : null, tabindex: -1, role: "button", "aria-pressed": "false",
      "aria-label": node.label ?? node.lines.join(", "), "aria-describedby": keys, transform: `translate(${box.x - box.width / 2} ${box.y - box.height / 2})`,
      onclick: (/** @type {Event} */ event) => { event.stopPropagation(); choose(id); }, onkeydown: (/** @type {KeyboardEvent} */ event) => key(event, id),
      onfocus: () => reach(id),
    },
    drawn("rect", { width: box.width, height: box.height, rx: 6 }),
    box.lines.map((line, at) => drawn("text", { x: box.width / 2, y: 17 + at * 15, "text-anchor": "middle", class: at > 0 ? "small" : null }, line))));
  }
  // The order of reading: rows from top to bottom.
  const order = [...boxes].sort(([, a], [, b]) => a.y - b.y || a.x - b.x).map(([id]) => id);
  let reached = order[0];
  shapes.get(reached)?.setAttribute("tabindex", "0");

  /** Makes a node the one that the Tab key reaches. @param {string} id */
  function reach(id) {
    shapes.get(reached)?.setAttribute("tabindex", "-1");
    shapes.get(id)?.setAttribute("tabindex", "0");
    reached = id;
  }
  /** @param {string} id */
  function choose(id) {
    const chosen = boxes.get(id)?.node;
    for (const [other, shape] of shapes) {
      shape.classList.toggle("chosen", other === id);
      shape.setAttribute("aria-pressed", String(other === id));
      shape.classList.toggle("dim", chosen?.group !== undefined && boxes.get(other)?.node.group !== chosen.group);
    }
    reach(id);
    chosen?.open?.();
  }
  /** Ends the choice: all nodes have their colors again. */
  function clear() {
    for (const shape of shapes.values()) { shape.classList.remove("dim", "chosen"); shape.setAttribute("aria-pressed", "false"); }
  }
  /** @param {KeyboardEvent} event @param {string} id */
  function key(event, id) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(id); }
    if (event.key === "Escape") clear();
    const at = order.indexOf(id);
    const moves = /** @type {Record<string, () => string | undefined>} */ ({
      ArrowDown: () => nearest(id, kept.filter((edge) => edge.from === id).map((edge) => edge.to)),
      ArrowUp: () => nearest(id, kept.filter((edge) => edge.to === id).map((edge) => edge.from)),
      ArrowLeft: () => order[at - 1], ArrowRight: () => order[at + 1], Home: () => order[0], End: () => order[order.length - 1],
    });
    if (!(event.key in moves)) return;
    event.preventDefault();
    const next = shapes.get(moves[event.key]() ?? id);
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  /** Returns the neighbor whose row, and then whose place in it, is nearest. @param {string} id @param {string[]} neighbors */
  function nearest(id, neighbors) {
    const here = /** @type {any} */ (boxes.get(id));
    const far = (/** @type {string} */ other) => { const box = /** @type {any} */ (boxes.get(other)); return Math.abs(box.y - here.y) * 1000 + Math.abs(box.x - here.x); };
    let found = /** @type {string | undefined} */ (undefined);
    for (const other of neighbors) if (other !== id && (found === undefined || far(other) < far(found))) found = other;
    return found;
  }

  const view = drawn("svg", { width: placed.width, height: placed.height, viewBox: `0 0 ${placed.width} ${placed.height}`, role: "group", "aria-label": name, onclick: clear },
    drawn("defs", {}, drawn("marker", { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      drawn("path", { class: "tip-of-edge", d: "M0 0L8 4L0 8z" }))),
    lines, order.map((id) => shapes.get(id)));
  let scale = 1;
  const resize = (/** @type {number} */ factor) => {
    scale = Math.min(Math.max(scale * factor, 0.1), 3);
    view.setAttribute("width", String(placed.width * scale));
    view.setAttribute("height", String(placed.height * scale));
  };
  const frame = element("div", { class: "drawing" }, view);
  const fit = () => { if (frame.clientWidth > 0) { scale = 1; resize(Math.min(1, (frame.clientWidth - 4) / placed.width)); } };
  // A drawing that stays readable is fitted to the width. Otherwise the view starts at the first node.
  requestAnimationFrame(() => {
    if (frame.clientWidth / placed.width > 0.55) fit();
    else frame.scrollLeft = (boxes.get(order[0])?.x ?? 0) - frame.clientWidth / 2;
  });
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => element("button", { type: "button", "aria-label": title, title, onclick: act }, text);
  const limits = [total > nodes.length ? `The first ${nodes.length.toLocaleString("en")} of ${total.toLocaleString("en")} nodes are drawn.` : "",
    known.length > kept.length ? `The first ${kept.length.toLocaleString("en")} of ${known.length.toLocaleString("en")} arrows are drawn.` : ""].filter(Boolean).join(" ");
  return element("div", {},
    limits ? element("p", { class: "faint" }, limits) : null,
    element("div", { class: "row tools" }, button("−", "smaller", () => resize(0.8)), button("+", "larger", () => resize(1.25)), button("Fit", "fit the width", fit), button("1:1", "natural size", () => { scale = 1; resize(1); }),
      element("span", { class: "faint keys", id: keys }, "Keys: up and down follow the arrows, left and right go through all nodes, Enter chooses, Escape ends the choice.")),
    frame);
}

/** Returns a pale color for a number, on which `--text` is readable in both schemes. @param {number} index */
export function pale(index) {
  // The golden angle keeps neighbors apart.
  const hue = Number.isFinite(index) ? Math.round((index * 137.508) % 360) : 0;
  return `light-dark(hsl(${hue} 70% 86%), hsl(${hue} 45% 24%))`;
}
