// Positions of the nodes of a drawing, and the lines of its arrows. dagre places the nodes of a small graph. Its time grows with the
// length of the arrows, so that a larger graph, or one with long arrows, is placed in rows.

/**
 * @typedef {{width: number, height: number, x: number, y: number}} Box the middle and the size of a node
 * @typedef {{from: string, to: string}} Edge
 * @typedef {{path: string, isEnd: boolean}} Line a part of an arrow, and whether the arrow ends with it
 * @typedef {{width: number, height: number, lines: Line[]}} Layout
 * @typedef {{row: number, half: number, x: number, side: number, weight: number, box: Box | null, above: [number, number][], below: [number, number][]}} Item
 *   a node or the place of a long arrow in a row. Lines are on the left side of calls, and inputs on the right. Its neighbors are pairs of a number of an item and how strongly it attracts.
 */

/** The maximal number of nodes for dagre, and the maximal number of rows that all arrows together cross. */
const MOST_DAGRE_NODES = 400;
const MOST_DAGRE_CROSSED = 800;
/** The maximal number of places for long arrows. Further long arrows are straight. */
const MOST_PLACES = 20_000;
const SWEEPS = 12;
/** Pixels between the nodes of a row, and between rows. */
const GAP = 18;
const ROW_GAP = 34;
const MARGIN = 10;

/** Sets the places of the boxes. Returns the size of the drawing and its lines. @param {Map<string, Box>} boxes @param {Edge[]} edges @returns {Layout} */
export function layout(boxes, edges) {
  const numbers = new Map([...boxes.keys()].map((id, at) => [id, at]));
  const seen = new Set();
  /** @type {[number, number][]} */
  const pairs = [];
  for (const { from, to } of edges) {
    const [start, end] = [numbers.get(from), numbers.get(to)];
    if (start === undefined || end === undefined || seen.has(start * boxes.size + end)) continue;
    seen.add(start * boxes.size + end);
    pairs.push([start, end]);
  }
  const { rows, forward } = rowsOf(boxes.size, pairs);
  const crossed = forward.reduce((sum, [from, to]) => sum + rows[to] - rows[from] - 1, 0);
  const dagre = /** @type {any} */ (globalThis).dagre;
  if (dagre && boxes.size <= MOST_DAGRE_NODES && crossed <= MOST_DAGRE_CROSSED) return byDagre(dagre, [...boxes.values()], pairs);
  return byRows([...boxes.values()], rows, forward, pairs);
}

/** @param {any} dagre @param {Box[]} boxes @param {[number, number][]} pairs @returns {Layout} */
function byDagre(dagre, boxes, pairs) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: GAP, ranksep: 30, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box, at) => graph.setNode(String(at), { width: box.width, height: box.height }));
  for (const [from, to] of pairs) graph.setEdge(String(from), String(to));
  dagre.layout(graph);
  boxes.forEach((box, at) => Object.assign(box, { x: graph.node(String(at)).x, y: graph.node(String(at)).y }));
  const { width, height } = graph.graph();
  const lines = graph.edges().map((/** @type {any} */ edge) => ({ path: smooth(graph.edge(edge).points), isEnd: true }));
  return { width: Math.max(width, 40), height: Math.max(height, 40), lines };
}

/**
 * Returns the row of each node, and the pairs that lead downward. A node is below all its inputs, and as near to its first user as
 * that allows, so that a constant is next to the call that uses it. In a cycle, some pairs do not lead downward.
 * @param {number} count @param {[number, number][]} pairs
 */
function rowsOf(count, pairs) {
  /** @type {number[][]} */
  const out = Array.from({ length: count }, () => []);
  const missing = new Array(count).fill(0);
  for (const [from, to] of pairs) {
    if (from === to) continue;
    out[from].push(to);
    missing[to] += 1;
  }
  const order = [...missing.keys()].filter((at) => missing[at] === 0);
  const place = new Array(count).fill(-1);
  for (let at = 0; at < order.length; at += 1) {
    place[order[at]] = at;
    for (const to of out[order[at]]) if ((missing[to] -= 1) === 0) order.push(to);
  }
  // The nodes of a cycle, and those after it.
  for (let at = 0; at < count; at += 1) if (place[at] < 0) place[at] = order.push(at) - 1;
  const rows = new Array(count).fill(0);
  for (const at of order) for (const to of out[at]) if (place[to] > place[at]) rows[to] = Math.max(rows[to], rows[at] + 1);
  for (const at of order.reverse()) {
    let first = Infinity;
    for (const to of out[at]) if (place[to] > place[at]) first = Math.min(first, rows[to]);
    if (first < Infinity) rows[at] = first - 1;
  }
  return { rows, forward: pairs.filter(([from, to]) => place[from] < place[to]) };
}

/**
 * Places nodes in rows. Each node is moved toward its neighbors, row by row, and boxes of a row do not overlap. All long arrows of
 * a node share one line, which has a place in each row that it crosses.
 * @param {Box[]} boxes @param {number[]} rows @param {[number, number][]} forward @param {[number, number][]} pairs @returns {Layout}
 */
function byRows(boxes, rows, forward, pairs) {
  const hasInput = new Array(boxes.length).fill(false);
  for (const [, to] of forward) hasInput[to] = true;
  // Calls keep their place. Lines, and then inputs, are moved aside.
  /** @type {Item[]} */
  const items = boxes.map((box, at) => ({ row: rows[at], half: box.width / 2, x: 0, side: hasInput[at] ? 0 : 2, weight: hasInput[at] ? 1 : 1e-6, box, above: [], below: [] }));
  const lowest = [...rows];
  for (const [from, to] of forward) lowest[from] = Math.max(lowest[from], rows[to] - 1);
  /** The first place of the line of each node. @type {Map<number, number>} */
  const lines = new Map();
  boxes.forEach((_, at) => {
    if (lowest[at] === rows[at] || items.length + lowest[at] - rows[at] > boxes.length + MOST_PLACES) return;
    lines.set(at, items.length);
    for (let row = rows[at] + 1; row <= lowest[at]; row += 1) {
      const last = row === rows[at] + 1 ? at : items.length - 1;
      items[last].below.push([items.length, last === at ? 0.01 : 1]);
      items.push({ row, half: 4, x: 0, side: -2, weight: 1e-3, box: null, above: [[last, last === at ? 0.1 : 1]], below: [] });
    }
  });
  /** Returns the item from which the last part of an arrow starts. @type {(from: number, to: number) => number} */
  const startOf = (from, to) => (rows[to] - rows[from] > 1 && lines.has(from) ? /** @type {number} */ (lines.get(from)) + rows[to] - rows[from] - 2 : from);
  for (const [from, to] of forward) {
    const start = startOf(from, to);
    items[start].below.push([to, start === from ? 1 : 0.01]);
    items[to].above.push([start, start !== from ? 0.01 : hasInput[from] ? 1 : 1e-3]);
  }

  /** @type {Item[][]} */
  const table = [];
  for (const item of items) (table[item.row] ??= []).push(item);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const row of sweep % 2 === 0 ? table : [...table].reverse()) {
      for (const item of row) {
        const [near, far] = sweep % 2 === 0 ? [item.above, item.below] : [item.below, item.above];
        // At first the other side has no places yet.
        const links = sweep < 2 && near.length > 0 ? near : [...near, ...far];
        let [sum, weight] = [0, 0];
        for (const [other, strength] of links) { sum += items[other].x * strength; weight += strength; }
        if (weight > 0) item.x = sum / weight;
      }
      spread(row);
    }
  }

  let left = Infinity;
  for (const item of items) left = Math.min(left, item.x - item.half);
  let [width, y] = [0, MARGIN];
  /** @type {[number, number][]} */
  const spans = table.map((row) => {
    let height = 0;
    for (const item of row) height = Math.max(height, item.box?.height ?? 0);
    for (const item of row) {
      item.x += MARGIN - left;
      width = Math.max(width, item.x + item.half + MARGIN);
      if (item.box) Object.assign(item.box, { x: item.x, y: y + height / 2 });
    }
    y += height + ROW_GAP;
    return [y - height - ROW_GAP, y - ROW_GAP];
  });
  const bottom = (/** @type {number} */ at) => items[at].box ? boxes[at].y + boxes[at].height / 2 : spans[items[at].row][1];
  /** @type {Line[]} */
  const drawn = [];
  for (const [at, first] of lines) {
    let path = "";
    for (let place = first; place < first + lowest[at] - rows[at]; place += 1) {
      const [top, end] = spans[items[place].row];
      const last = place === first ? at : place - 1;
      path += `${place === first ? `M${round(items[last].x)} ${round(bottom(last))}` : ""}${bend(items[last].x, bottom(last), items[place].x, top)}V${round(end)}`;
    }
    drawn.push({ path, isEnd: false });
  }
  const isForward = new Set(forward);
  for (const pair of pairs) {
    const [from, to] = pair;
    const start = isForward.has(pair) ? startOf(from, to) : from;
    const [box, top] = [boxes[to], boxes[to].y - boxes[to].height / 2];
    drawn.push({ path: from === to ? `M${round(box.x + box.width / 2)} ${round(box.y - 8)}c14 -4 14 20 0 16` : `M${round(items[start].x)} ${round(bottom(start))}${bend(items[start].x, bottom(start), box.x, top)}`, isEnd: true });
  }
  return { width, height: y - ROW_GAP + MARGIN, lines: drawn };
}

/**
 * Sorts a row by the wanted places, and moves its items apart as little as possible: items that touch form a block, which lies at the
 * weighted mean of what its items want.
 * @param {Item[]} row
 */
function spread(row) {
  row.sort((a, b) => a.x + a.side - b.x - b.side);
  /** @type {{first: number, sum: number, weight: number}[]} */
  const blocks = [];
  const offsets = [0];
  for (let at = 1; at < row.length; at += 1) offsets.push(offsets[at - 1] + row[at - 1].half + row[at].half + GAP);
  row.forEach((item, at) => {
    let block = { first: at, sum: item.weight * (item.x - offsets[at]), weight: item.weight };
    for (let last = blocks[blocks.length - 1]; last && last.sum / last.weight >= block.sum / block.weight; last = blocks[blocks.length - 1]) {
      block = { first: last.first, sum: last.sum + block.sum, weight: last.weight + block.weight };
      blocks.pop();
    }
    blocks.push(block);
  });
  blocks.forEach((block, at) => {
    const end = blocks[at + 1]?.first ?? row.length;
    for (let item = block.first; item < end; item += 1) row[item].x = block.sum / block.weight + offsets[item];
  });
}

/** Returns the rest of a path that bends from one point to a lower one. @param {number} x @param {number} y @param {number} toX @param {number} toY */
function bend(x, y, toX, toY) {
  if (Math.abs(x - toX) < 0.5) return `L${round(toX)} ${round(toY)}`;
  const middle = round((y + toY) / 2);
  return `C${round(x)} ${middle} ${round(toX)} ${middle} ${round(toX)} ${round(toY)}`;
}

/** @param {number} pixels */
function round(pixels) {
  return Math.round(pixels * 10) / 10;
}

/** Returns the path through the points of dagre. @param {{x: number, y: number}[]} points */
function smooth(points) {
  const [first, ...rest] = points;
  let path = `M${round(first.x)} ${round(first.y)}`;
  for (let at = 0; at < rest.length; at += 1) {
    const next = rest[at + 1];
    if (next && at < rest.length - 1) path += `Q${round(rest[at].x)} ${round(rest[at].y)} ${round((rest[at].x + next.x) / 2)} ${round((rest[at].y + next.y) / 2)}`;
    else path += `L${round(rest[at].x)} ${round(rest[at].y)}`;
  }
  return path;
}
