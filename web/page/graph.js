// A model as a drawing: the graph of a graph executor, or the calls of a function of Relax VM code. Nodes of one color share storage.
import { clipped, counted, element, table } from "./dom.js";
import { drawing, MOST_EDGES, MOST_NODES, pale } from "./drawing.js";
import { modules } from "./model.js";

/**
 * @typedef {import("./drawing.js").DrawnNode} DrawnNode
 * @typedef {{title: string, nodes: (DrawnNode & {rows: [string, string][], storage: string | null})[], edges: import("./drawing.js").DrawnEdge[], total: number, note?: string}} DrawnModel
 */

/** The maximal size in bytes of a graph that is drawn. */
const MOST_GRAPH_BYTES = 64 << 20;
/** The maximal number of outputs of a node that are listed. */
const MOST_OUTPUTS = 100;

/**
 * Finds the models that can be drawn.
 * @param {import("./model.js").Model} model
 * @returns {Promise<DrawnModel[]>}
 */
export async function drawnModels(model) {
  /** @type {DrawnModel[]} */
  const found = [];
  if (model.inspect?.form === "graph-json") push(found, "graph", await textAt(model, 0, 0, model.size));
  for (let unit = 0; unit < model.units.length; unit += 1) {
    for (const field of model.units[unit].fields) {
      if (/graph_json$/.test(field.field) && field.end - field.start > 8) push(found, `graph of ${field.field.split(".")[0]}`, await textAt(model, unit, field.start, field.end));
    }
  }
  for (const { module } of modules(model)) {
    if (module.vm?.code) found.push(...callsOf(module.vm.code));
  }
  return found;
}

/** @param {DrawnModel[]} found @param {string} title @param {string | null} text */
function push(found, title, text) {
  const made = text === null ? null : graphOf(title, text);
  if (made) found.push(made);
}

/** @param {import("./model.js").Model} model @param {number} unit @param {number} start @param {number} end */
async function textAt(model, unit, start, end) {
  if (end - start > MOST_GRAPH_BYTES) return null;
  try {
    return new TextDecoder().decode(await model.read(unit, start, end));
  } catch {
    return null;
  }
}

/** @param {string} title @param {string} text @returns {DrawnModel | null} */
function graphOf(title, text) {
  let json;
  try { json = JSON.parse(text); } catch { return null; }
  if (!Array.isArray(json?.nodes) || json.nodes.some((/** @type {any} */ node) => typeof node !== "object" || node === null)) return null;
  // A file that breaks the rules of a graph is drawn as far as it is one.
  const listed = (/** @type {any} */ value) => (Array.isArray(value) ? value : []);
  const attribute = (/** @type {string} */ name) => {
    const value = json.attrs?.[name];
    return Array.isArray(value) ? (Array.isArray(value[1]) ? value[1] : value) : [];
  };
  const [shapes, types, storages] = [attribute("shape"), attribute("dltype"), attribute("storage_id")];
  const rows = listed(json.node_row_ptr);
  const heads = new Set(listed(json.heads).map((/** @type {any} */ head) => `${head?.[0]} ${head?.[1] ?? 0}`));
  /** @type {DrawnModel["edges"]} */
  const edges = [];
  const nodes = json.nodes.slice(0, MOST_NODES).map((/** @type {any} */ node, /** @type {number} */ index) => {
    for (const input of listed(node.inputs)) if (edges.length <= MOST_EDGES) edges.push({ from: String(input?.[0]), to: String(index) });
    const isCall = node.op !== "null";
    const about = [["name", String(node.name)], ["operator", isCall ? String(node.attrs?.func_name ?? node.op) : "input or parameter"]];
    // The node has one entry for each of its outputs.
    const first = Number.isInteger(rows[index]) ? rows[index] : index;
    const count = Number.isInteger(rows[index + 1]) ? Math.min(Math.max(rows[index + 1] - first, 0), MOST_OUTPUTS) : 1;
    const lines = [];
    const places = [];
    for (let output = 0; output < count; output += 1) {
      const [type, shape, storage] = [types, shapes, storages].map((all) => all[first + output]);
      const tensor = `${type ?? ""}${Array.isArray(shape) ? `[${shape.map((extent) => (typeof extent === "number" ? extent : "?")).join(", ")}]` : ""}`;
      const isHead = heads.has(`${index} ${output}`);
      about.push([count > 1 ? `output ${output}` : "result", [tensor, storage === undefined ? "" : `storage ${storage}`, isHead ? "an output of the graph" : ""].filter(Boolean).join(", ")]);
      if (output < 3) lines.push(clipped(tensor, 30) + (isHead ? " → output" : ""));
      if (storage !== undefined) places.push(String(storage));
    }
    if (count > 3) lines.push(`and ${count - 3} more`);
    const [storage] = places;
    const stored = places.length > 0 ? `storage ${clipped([...new Set(places)].join(", "), 20)}` : "";
    return {
      id: String(index), rows: about, storage: storage ?? null, group: storage,
      lines: [shortened(String(node.name)), ...lines, [isCall ? "" : "input", stored].filter(Boolean).join(", ")].filter(Boolean),
      fill: storage === undefined ? undefined : pale(Number(storage)),
      label: [node.name, ...lines, stored].filter(Boolean).join(", "),
    };
  });
  return { title, nodes, edges, total: json.nodes.length };
}

/** Shortens the name of a generated function, because these names begin alike. @param {string} name */
function shortened(name) {
  const short = name.replace(/^tvmgen_[a-z]+_/, "").replace(/^fused_/, "");
  return clipped(short, 34);
}

/**
 * Reads the calls of each function out of the text of VM code. A kernel writes its result into its last argument.
 * @param {string[]} code
 * @returns {DrawnModel[]}
 */
function callsOf(code) {
  /** @type {DrawnModel[]} */
  const found = [];
  /** @type {Map<string, string>} */
  const constants = new Map();
  /** @type {DrawnModel | null} */
  let made = null;
  /** The node that wrote each register last, and the storage and the text of the tensor in it. @type {Map<string, string>} */
  let writer = new Map();
  /** @type {Map<string, string>} */
  let storage = new Map();
  /** @type {Map<string, string>} */
  let shape = new Map();
  /** Adds a node to the function, or only counts it. @param {DrawnModel["nodes"][number]} node */
  function add(node) {
    if (!made) return;
    made.total += 1;
    if (made.nodes.length < MOST_NODES) made.nodes.push(node);
  }
  for (const line of code) {
    const constant = /^\s*(c\d+) = (.*)$/.exec(line);
    if (constant && !made) constants.set(constant[1], constant[2]);
    const header = /^\s*function (\S+?)\(([^)]*)\)/.exec(line);
    if (header) {
      made = { title: `calls of ${header[1]}`, nodes: [], edges: [], total: 0, note: "A node is a call of a kernel, in the order of the code; an arrow is a register. Calls of the machine itself are left out." };
      [writer, storage, shape] = [new Map(), new Map(), new Map()];
      found.push(made);
      header[2].split(",").map((each) => each.trim()).filter(Boolean).forEach((name, at) => {
        add({ id: `%${at}`, lines: [name, "input"], rows: [["input", name]], storage: null });
        writer.set(`%${at}`, `%${at}`);
      });
      continue;
    }
    const call = /^\s*(\d+)\s+(?:(%\w+) = )?([\w.$]+)\((.*)\)\s*$/.exec(line);
    if (!made || !call) continue;
    const [, number, target, callee, list] = call;
    const args = list.split(", ");
    if (callee.endsWith("alloc_storage") && target) storage.set(target, number);
    else if (callee.endsWith("alloc_tensor") && target) {
      storage.set(target, storage.get(args[0]) ?? number);
      const [wanted, type] = [constants.get(args[2]) ?? "", constants.get(args[3]) ?? ""];
      shape.set(target, `${type}${wanted.replace(/^shape /, "")}`);
      writer.delete(target);
    } else if (callee.endsWith("null_value") && target) { storage.delete(target); writer.delete(target); } else if (!callee.startsWith("vm.builtin.") || /copy|reshape|call_tir_dyn/.test(callee)) {
      const result = target ?? args.filter((arg) => arg.startsWith("%") && arg !== "%vm").pop();
      const inputs = args.filter((arg) => arg !== result || target);
      const place = result === undefined ? undefined : storage.get(result);
      const about = /** @type {[string, string][]} */ ([["call", `${callee}(${list})`], ["instruction", number]]);
      if (place !== undefined) about.push(["storage", `of instruction ${place}`]);
      const tensor = result === undefined ? "" : shape.get(result) ?? "";
      const weights = inputs.map((arg) => constants.get(arg)).filter((text) => text?.startsWith("tensor ")).map((text) => /** @type {string} */ (text).replace(/^tensor /, "").replace(/, \d+ bytes$/, ""));
      add({
        id: number, rows: about, storage: place ?? null, group: place, fill: place === undefined ? undefined : pale(Number(place)),
        lines: [`${number}  ${shortened(callee)}`, tensor, weights.length ? `with ${weights.join(", ")}` : "", place === undefined ? "" : `storage ${place}`].filter(Boolean),
        label: `${callee}, storage ${place ?? "unknown"}`,
      });
      for (const input of new Set(inputs)) {
        const from = writer.get(input);
        if (from !== undefined && made.edges.length <= MOST_EDGES) made.edges.push({ from, to: number });
      }
      if (result !== undefined) writer.set(result, number);
    } else if (target) {
      // A value that the machine computes from registers. Its edges start at the nodes that wrote these registers.
      const from = args.map((arg) => writer.get(arg)).find((each) => each !== undefined);
      if (from !== undefined && !/shape|storage/.test(callee)) writer.set(target, from);
      else writer.delete(target);
    }
  }
  return found.filter((each) => each.nodes.some((node) => !node.id.startsWith("%")));
}

/**
 * Shows each model. If there are several, the first is open, and the others are drawn when they are opened.
 * @param {DrawnModel[]} models
 */
export function graphView(models) {
  if (models.length === 1) return modelView(models[0]);
  return element("div", {}, models.map((each, at) => {
    const details = element("details", { class: "model", open: at === 0, ontoggle: () => fill() }, element("summary", {}, `${each.title}: ${counted(each.total, "node")}`));
    const fill = () => { if (details.open && details.childElementCount === 1) details.append(modelView(each)); };
    fill();
    return details;
  }));
}

/** @param {DrawnModel} model */
function modelView(model) {
  const about = element("section", { "aria-live": "polite" });
  const blocks = new Set(model.nodes.map((node) => node.storage).filter((storage) => storage !== null)).size;
  const nodes = model.nodes.map((node) => ({ ...node, open: () => about.replaceChildren(table(["", "chosen"], node.rows)) }));
  return element("section", {},
    element("p", { class: "faint" }, `${counted(model.total, "node")}${blocks > 0 ? `, ${counted(blocks, "block")} of storage. Nodes with the same storage have the same color; choose one to see which` : ""}. ${model.note ?? ""}`),
    drawing(nodes, model.edges, model.title, model.total), about);
}
