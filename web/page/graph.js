// A model as a drawing: the graph of a graph executor, or the calls of a function of Relax VM code. Nodes of one color share storage.
import { drawing, pale } from "./drawing.js";
import { counted, element, table } from "./dom.js";
import { modules } from "./model.js";

/**
 * @typedef {import("./drawing.js").DrawnNode} DrawnNode
 * @typedef {{title: string, nodes: (DrawnNode & {rows: [string, string][], storage: string | null})[], edges: import("./drawing.js").DrawnEdge[], note?: string}} DrawnModel
 */

/** The maximal size in bytes of a graph that is drawn. */
const MOST_GRAPH_BYTES = 64 << 20;

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
  const heads = new Set(listed(json.heads).map((/** @type {any} */ head) => head?.[0]));
  /** @type {DrawnModel["edges"]} */
  const edges = [];
  const nodes = json.nodes.map((/** @type {any} */ node, /** @type {number} */ index) => {
    const entry = rows[index] ?? index;
    const shape = Array.isArray(shapes[entry]) ? `${types[entry] ?? ""}[${shapes[entry].join(", ")}]` : types[entry] ?? "";
    const storage = storages[entry];
    for (const input of listed(node.inputs)) edges.push({ from: String(input?.[0]), to: String(index) });
    const isCall = node.op !== "null";
    const about = [["name", String(node.name)], ["operator", isCall ? String(node.attrs?.func_name ?? node.op) : "input or parameter"], ["result", shape]];
    if (storage !== undefined) about.push(["storage", String(storage)]);
    return {
      id: String(index), rows: about, storage: storage === undefined ? null : String(storage), group: storage === undefined ? undefined : String(storage),
      lines: [shortened(String(node.name)), shape + (heads.has(index) ? " → output" : ""), isCall ? "" : "input"].filter(Boolean),
      fill: storage === undefined ? undefined : pale(Number(storage)),
      label: `${node.name}, ${shape}, storage ${storage ?? "unknown"}`,
    };
  });
  return { title, nodes, edges };
}

/** Shortens the name of a generated function, because these names begin alike. @param {string} name */
function shortened(name) {
  const short = name.replace(/^tvmgen_[a-z]+_/, "").replace(/^fused_/, "");
  return short.length > 34 ? `${short.slice(0, 33)}…` : short;
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
  for (const line of code) {
    const constant = /^\s*(c\d+) = (.*)$/.exec(line);
    if (constant && !made) constants.set(constant[1], constant[2]);
    const header = /^\s*function (\S+?)\(([^)]*)\)/.exec(line);
    if (header) {
      made = { title: `calls of ${header[1]}`, nodes: [], edges: [], note: "A node is a call of a kernel, in the order of the code; an arrow is a register. Calls of the machine itself are left out." };
      [writer, storage, shape] = [new Map(), new Map(), new Map()];
      found.push(made);
      header[2].split(",").map((each) => each.trim()).filter(Boolean).forEach((name, at) => {
        made?.nodes.push({ id: `%${at}`, lines: [name, "input"], rows: [["input", name]], storage: null });
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
      made.nodes.push({ id: number, lines: [`${number}  ${shortened(callee)}`, tensor, weights.length ? `with ${weights.join(", ")}` : ""].filter(Boolean), rows: about, storage: place ?? null, group: place, fill: place === undefined ? undefined : pale(Number(place)), label: `${callee}, storage ${place ?? "unknown"}` });
      for (const input of new Set(inputs)) {
        const from = writer.get(input);
        if (from !== undefined) made.edges.push({ from, to: number });
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
 * @param {DrawnModel[]} models
 */
export function graphView(models) {
  return element("div", {}, models.map((each) => {
    const about = element("section", { "aria-live": "polite" });
    const blocks = new Set(each.nodes.map((node) => node.storage).filter((storage) => storage !== null)).size;
    for (const node of each.nodes) node.open = () => about.replaceChildren(table(["", "chosen"], node.rows));
    return element("section", {},
      models.length > 1 ? element("h2", {}, each.title) : null,
      element("p", { class: "faint" }, `${counted(each.nodes.length, "node")}${blocks > 0 ? `, ${counted(blocks, "block")} of storage: nodes of one color share one. Choose a node to see which` : ""}. ${each.note ?? ""}`),
      drawing(each.nodes, each.edges, each.title), about);
  }));
}
