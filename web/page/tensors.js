// The list of tensors, from the fields of a dump or the index of a tensor cache, and the values of the selected tensor.
import { counted, element, hex, pagedTable, size } from "./dom.js";
import { histogram } from "./histogram.js";
import { modules } from "./model.js";

/**
 * @typedef {{name: string, unit: number, start: number, end: number, code: number, bits: number, lanes: number, shape: number[], type: string, file?: string}} TensorPlace
 *   a tensor; `file` is the name of another file that has its bytes
 */

/**
 * Finds the tensors: each is a run of fields `X.dtype.code`, `X.shape[0]`, ..., `X.data`.
 * @param {import("./model.js").Model} model
 * @returns {TensorPlace[]}
 */
export function tensorsOf(model) {
  if (model.inspect?.cache) return cached(model.inspect);
  /** @type {TensorPlace[]} */
  const found = [];
  model.units.forEach((unit, index) => {
    let tensor = blank();
    let prefix = "";
    for (const field of unit.fields) {
      const [, start, member] = /^(.*?)\.?(dtype\.code|dtype\.bits|dtype\.lanes|shape\[\d+\]|data)$/.exec(field.field) ?? [];
      if (member === undefined) continue;
      if (start !== prefix) [prefix, tensor] = [start, blank()];
      if (member === "dtype.code") tensor.code = Number(field.value);
      else if (member === "dtype.bits") tensor.bits = Number(field.value);
      else if (member === "dtype.lanes") tensor.lanes = Number(field.value);
      else if (member !== "data") tensor.shape.push(Number(field.value));
      else if (field.rule === "TEN-32") {
        found.push({ ...tensor, name: prefix, unit: index, start: field.start, end: field.end, type: dtype(tensor) });
        [prefix, tensor] = ["", blank()];
      }
    }
  });
  describe(model, found);
  return found;
}

function blank() {
  return { code: -1, bits: 0, lanes: 1, shape: /** @type {number[]} */ ([]) };
}

/** Returns the tensors of a cache, whose bytes are in its shards. @param {any} inspection @returns {TensorPlace[]} */
function cached(inspection) {
  const files = inspection.cache.shards.flatMap((/** @type {any} */ shard) => new Array(shard.tensors).fill(shard.path));
  return (inspection.params ?? []).map((/** @type {any} */ each, /** @type {number} */ at) => ({
    ...blank(), name: each.name, unit: -1, start: 0, end: each.bytes, shape: each.shape, type: each.format && each.format !== "raw" ? `${each.dtype}, ${each.format}` : each.dtype, file: files[at] ?? "a shard",
  }));
}

/** Sets names and types from the inspection, which lists the first tensors in the same order. @param {import("./model.js").Model} model @param {TensorPlace[]} found */
function describe(model, found) {
  const give = (/** @type {TensorPlace[]} */ places, /** @type {any[]} */ listed) => {
    for (const [at, place] of places.entries()) {
      const each = listed[at];
      if (!each || each.shape?.join() !== place.shape.join()) return;
      place.name = each.name || place.name;
      place.type = each.dtype ?? place.type;
    }
  };
  const listed = model.inspect?.params ?? model.inspect?.tensor ?? [];
  give(found, listed);
  // The fields of a large parameter file end early. The places of the other records follow from their shapes (TEN-20).
  if (model.units[0]?.left_out_from !== undefined && found.length > 0) {
    for (const each of listed.slice(found.length)) {
      const start = found[found.length - 1].end + RECORD_BYTES + 8 * each.shape.length;
      const [code, bits] = codesOf(each.dtype);
      found.push({ ...blank(), name: each.name, unit: 0, start, end: start + each.bytes, code, bits, shape: each.shape, type: each.dtype });
    }
  }
  for (const { module, unit, start, end } of modules(model)) {
    const places = found.filter((place) => place.unit === unit && place.start >= start && place.end <= end);
    give(places, module.tensors ?? []);
    for (const place of places) {
      const [, number] = /constants\[(\d+)\]$/.exec(place.name) ?? [];
      const type = module.vm?.constants?.[Number(number)]?.type;
      if (typeof type === "string") place.type = type;
    }
  }
}

/** The newest names of the codes. */
const CODES = ["int", "uint", "float", "handle", "bfloat", "complex", "bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
  "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"];

/** Bytes of a record before its data, without its shape: magic number, reserved, device, rank, element type, size of the data. */
const RECORD_BYTES = 40;

/** Returns code and bits of an element type with one lane. @param {string} type @returns {[number, number]} */
function codesOf(type) {
  const small = CODES.indexOf(type, 6);
  if (small >= 0) return [small, type === "bool" ? 8 : Number(/\d/.exec(type)?.[0])];
  const [, name, bits] = /^([a-z]+)(\d+)$/.exec(type) ?? [];
  return [CODES.indexOf(name), Number(bits)];
}

/** Returns the element type of a tensor that the inspection does not list. @param {{code: number, bits: number, lanes: number}} tensor */
function dtype({ code, bits, lanes }) {
  const base = code in CODES ? `${CODES[code]}${code > 5 ? "" : bits}` : `code ${code} with ${bits} bits`;
  return lanes > 1 ? `${base}x${lanes}` : base;
}

/**
 * Shows the list and, above it, the chosen tensor.
 * @param {import("./model.js").Model} model @param {TensorPlace[]} tensors @param {(unit: number, offset: number) => void} go
 */
export function tensorsView(model, tensors, go) {
  const about = element("section", { "aria-live": "polite" });
  const total = tensors.reduce((sum, tensor) => sum + tensor.end - tensor.start, 0);
  const cut = model.inspect?.params ? undefined : model.units.find((unit) => unit.left_out_from !== undefined);
  let chosen = 0;
  /** @param {TensorPlace} tensor */
  async function choose(tensor) {
    chosen += 1;
    const mine = chosen;
    const values = element("div", {}, element("p", { class: "faint" }, "Reading the values"));
    about.replaceChildren(element("h2", {}, tensor.name || "tensor"), element("p", { class: "faint" }, `${tensor.type} [${tensor.shape.join(", ")}], ${size(tensor.end - tensor.start)}`),
      tensor.file ? element("p", {}, "Its bytes are in the file ", element("code", {}, tensor.file), ", which this page does not read.")
        : element("div", { class: "row" }, element("button", { type: "button", onclick: () => go(tensor.unit, tensor.start) }, `Show its bytes at ${hex(tensor.start)}`)),
      tensor.file ? "" : values);
    if (tensor.file) return;
    const view = await histogram(model, tensor).catch((error) => element("p", { class: "note warn" }, error instanceof Error ? error.message : String(error)));
    // The reader may have chosen another tensor.
    if (mine === chosen) values.replaceChildren(view);
  }
  if (tensors[0]) void choose(tensors.find((tensor) => tensor.code !== 0 || tensor.shape.length > 0) ?? tensors[0]);
  return element("div", {},
    element("p", { class: "faint" }, `${counted(tensors.length, "tensor")}, ${size(total)}. Choose one for its ${tensors[0]?.file ? "file" : "histogram"}.`,
      cut ? ` The fields end at ${hex(cut.left_out_from ?? 0)} of ${cut.name}, so that later tensors are missing.` : ""),
    about,
    pagedTable(["name", "type", "shape", "data#"], tensors, (tensor) => [
      element("button", { type: "button", class: "link", onclick: () => void choose(tensor) }, tensor.name || "tensor"),
      tensor.type, `[${tensor.shape.join(", ")}]`, size(tensor.end - tensor.start),
    ], (tensor) => `${tensor.name} ${tensor.type} [${tensor.shape.join(", ")}]`));
}
