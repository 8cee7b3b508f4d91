// Saved objects as a tree. A branch is created when it is opened, so that shared objects, and those that contain themselves, are shown too.
import { clipped, counted, element, size } from "./dom.js";

/**
 * @typedef {{type: string, text: string, children: [string, number, string][]}} ObjectNode a node: its type, its value as text, and its
 *   children, each with a name, an index or -1, and a text
 */

/** The maximal size of a text that is shown as a tree. */
const MOST_TEXT_BYTES = 16 << 20;
/** The number of children that one button adds. */
const MORE = 200;
const MOST_VALUE_LETTERS = 160;

/** Shows the objects of the file as a tree. @param {import("./model.js").Model} model */
export function objectTree(model) {
  const into = element("div", {}, element("p", { class: "faint", role: "status" }, "Reading the objects"));
  if (model.size > MOST_TEXT_BYTES) into.replaceChildren(element("p", { class: "faint" }, `The tree is left out: the file has ${size(model.size)}, and the limit is ${size(MOST_TEXT_BYTES)}.`));
  else void fillTree(model, into);
  return into;
}

/** @param {import("./model.js").Model} model @param {any} into */
async function fillTree(model, into) {
  try {
    const json = JSON.parse(new TextDecoder().decode(await model.read(0, 0, model.size)));
    const isOld = !Array.isArray(json.nodes) || json.root_index === undefined;
    const nodes = /** @type {any[]} */ (Array.isArray(json.nodes) ? json.nodes : []);
    const read = (/** @type {number} */ at) => (isOld ? oldNode : newNode)(nodes, at);
    into.replaceChildren(
      element("h3", {}, "Tree"),
      element("p", { class: "faint" }, "The file does not state whether a number is the index of an object. After a number that may be one, the tree has the object."),
      element("ul", { class: "tree" }, branch(read, "root", Number(json.root_index ?? json.root), "", true)));
  } catch (error) {
    into.replaceChildren(element("p", { class: "faint" }, `The objects cannot be shown as a tree: ${error instanceof Error ? error.message : error}`));
  }
}

/** Creates a line of the tree. @param {(at: number) => ObjectNode | null} read @param {string} name @param {number} at @param {string} text @param {boolean} [isOpen] */
function branch(read, name, at, text, isOpen = false) {
  const node = at >= 0 ? read(at) : null;
  // A number that may be an index is already the number of the object.
  const label = [element("span", { class: "faint" }, `${name}: `), text, text && node ? " → " : null,
    node ? element("code", {}, node.type || "None") : null, node?.text ? ` ${node.text}` : null, node && !text ? element("span", { class: "faint" }, ` #${at}`) : null];
  if (!node || node.children.length === 0) return element("li", {}, label);
  const list = element("ul", { class: "tree" });
  const details = element("details", { open: isOpen, ontoggle: () => fill() }, element("summary", {}, label, element("span", { class: "faint" }, `, ${counted(node.children.length, "child").replace("childs", "children")}`)), list);
  const add = () => {
    const first = list.childElementCount;
    list.append(...node.children.slice(first, first + MORE).map(([name, child, text]) => branch(read, name, child, text)));
    const left = node.children.length - list.childElementCount;
    if (left > 0) list.append(element("li", {}, element("button", { type: "button", onclick: (/** @type {any} */ event) => { event.target.closest("li").remove(); add(); } }, `${left.toLocaleString("en")} more`)));
  };
  const fill = () => { if (details.open && list.childElementCount === 0) add(); };
  fill();
  return element("li", {}, details);
}

/** @param {any} value */
function shortText(value) {
  return clipped(typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value) ?? "", MOST_VALUE_LETTERS);
}

/** Returns a child for each member of an object, whose numbers may be indices. @param {any[]} nodes @param {any} members @param {(name: string) => boolean} [isValue] @returns {[string, number, string][]} */
function membersOf(nodes, members, isValue = () => false) {
  return Object.entries(members).map(([name, value]) => {
    const at = /^\d+$/.test(String(value)) && !isValue(name) ? Number(value) : -1;
    return [name, at >= 0 && at < nodes.length ? at : -1, typeof value === "string" && /^\d+$/.test(value) ? value : shortText(value)];
  });
}

/** Reads a node of 0.22 and later (OBJ-18). @param {any[]} nodes @param {number} at @returns {ObjectNode | null} */
function newNode(nodes, at) {
  const { type = "", data } = nodes[at] ?? {};
  if (!nodes[at]) return null;
  if (/^ffi\.(Array|List|Tuple)$/.test(type) && Array.isArray(data)) return { type, text: "", children: data.map((child, index) => [`[${index}]`, Number(child), ""]) };
  if (/^ffi\.(Map|Dict)$/.test(type) && Array.isArray(data)) return { type, text: "", children: pairsOf(data, (key) => nodes[key]?.data) };
  if (typeof data === "object" && data !== null && !Array.isArray(data)) return { type, text: "", children: membersOf(nodes, data) };
  return { type, text: data === undefined ? "" : shortText(data), children: [] };
}

/** Reads a node of 0.21 and before (OBJ-22). @param {any[]} nodes @param {number} at @returns {ObjectNode | null} */
function oldNode(nodes, at) {
  const node = nodes[at];
  if (!node) return null;
  const { type_key: type = "", repr_str: text, repr_b64: bytes, attrs = {}, data, keys } = node;
  /** @type {[string, number, string][]} */
  const listed = !Array.isArray(data) ? [] : Array.isArray(keys) ? data.map((child, index) => [shortText(keys[index] ?? index), Number(child), ""])
    : /Map$/.test(type) ? pairsOf(data, (key) => nodes[key]?.repr_str) : data.map((child, index) => [`[${index}]`, Number(child), ""]);
  // The value of a constant is no index.
  const members = membersOf(nodes, attrs, (name) => name === "value" && /Imm$/.test(type));
  return { type, text: text !== undefined ? shortText(text) : bytes !== undefined ? "binary" : "", children: [...members, ...listed] };
}

/** Returns the values of a map under their keys. A key without a short text is a child too. @param {any[]} data @param {(key: number) => any} textOf @returns {[string, number, string][]} */
function pairsOf(data, textOf) {
  /** @type {[string, number, string][]} */
  const children = [];
  for (let at = 0; at + 1 < data.length; at += 2) {
    const key = textOf(data[at]);
    const isShort = ["string", "number", "boolean"].includes(typeof key);
    if (!isShort) children.push([`key ${at / 2}`, Number(data[at]), ""]);
    children.push([isShort ? shortText(key) : `value ${at / 2}`, Number(data[at + 1]), ""]);
  }
  return children;
}
