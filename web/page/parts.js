// What a file has apart from modules: the symbols of each part, saved objects, and the tensors of a tensor cache.
import { counted, element, size, table } from "./dom.js";
import { formTitle } from "./model.js";
import { objectTree } from "./objects.js";
import { rangeText } from "./releases.js";

/** Names of a list that are shown. */
const MOST_NAMES = 1000;

/** The lists of symbols of a part, by their name in the inspection, with their titles. */
const SYMBOLS = [["functions", "Functions that it exports"], ["slots", "Runtime functions that the loader hands in"], ["needs", "Runtime functions that must be linked"]];

/** Returns whether the view would show anything. @param {import("./model.js").Model} model */
export function hasParts(model) {
  const { parts = [], links, objects, cache } = model.inspect ?? {};
  return Boolean(objects || cache || links?.length || parts.length > 1 || parts.some((/** @type {any} */ part) => SYMBOLS.some(([member]) => part[member]?.length)));
}

/** @param {import("./model.js").Model} model */
export function partsView(model) {
  const { parts = [], links = [], tvm_ffi, objects, cache } = model.inspect;
  return element("div", {},
    links.length > 0 ? element("p", {}, "Needs the libraries ", list(links), tvm_ffi ? `. Built on tvm-ffi ${rangeText(tvm_ffi)}.` : ".") : null,
    parts.map((/** @type {any} */ part) => partView(part, parts.length > 1)),
    objects ? objectsView(model, objects) : null,
    cache ? cacheView(cache) : null);
}

/** @param {any} part @param {boolean} titled */
function partView(part, titled) {
  const facts = [formTitle(part.form), part.machine ? `for ${part.machine.architecture}` : "", part.releases ? `of tvm ${rangeText(part.releases)}` : "",
    part.runtime > 0 ? `a runtime with ${counted(part.runtime, "function")} of the C interface` : "", part.prefix ? `system library with the prefix ${part.prefix}` : "",
    part.entry ? `entry ${part.entry}` : "", part.context ? `context ${part.context}` : ""].filter(Boolean).join(", ");
  return element("section", {},
    titled ? element("h2", {}, part.member || "file") : null, element("p", { class: "faint" }, facts),
    SYMBOLS.filter(([member]) => part[member]?.length > 0).map(([member, title]) => element("section", {},
      element("h3", {}, `${title}: ${part[member].length.toLocaleString("en")}`), element("p", { class: "names" }, list(part[member])))));
}

/** @param {import("./model.js").Model} model @param {any} objects */
function objectsView(model, objects) {
  const types = /** @type {[string, number][]} */ (Object.entries(objects.types ?? {})).sort(([, a], [, b]) => b - a);
  return element("section", {},
    element("p", {}, `${counted(objects.nodes, "object")}, of which the root is `, element("code", {}, objects.root ?? "null"), `; ${counted(objects.tensors, "tensor")}. `,
      objects.written_by ? `Written by tvm ${objects.written_by}.` : ""),
    objectTree(model),
    element("h3", {}, "Types"), element("div", { class: "narrow" }, table(["type", "objects#"], types)));
}

/** @param {any} cache */
function cacheView(cache) {
  return element("section", {}, element("h3", {}, "Shards"),
    table(["file", "size#", "tensors#", "state"], (cache.shards ?? []).map((/** @type {any} */ shard) => [shard.path, size(shard.bytes), shard.tensors, shard.state ?? "not read"])));
}

/** Lists names as code. @param {string[]} names */
function list(names) {
  const shown = names.slice(0, MOST_NAMES).flatMap((name, at) => [at > 0 ? ", " : "", element("code", {}, name)]);
  return names.length > MOST_NAMES ? [...shown, `, and ${names.length - MOST_NAMES} more`] : shown;
}
