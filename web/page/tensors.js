// The list of tensors, from the fields of a dump, and a histogram of the selected tensor.
import { counted, drawn, element, hex, size, table } from "./dom.js";
import { modules } from "./model.js";

/** The maximal number of bytes that a histogram reads. For a larger tensor it reads pieces at equal distances. */
const MOST_READ_BYTES = 16 << 20;
const PIECES = 64;
const BINS = 48;
/** Rows of the list. */
const MOST_ROWS = 2000;

/**
 * @typedef {{name: string, unit: number, start: number, end: number, code: number, bits: number, lanes: number, shape: number[]}} TensorPlace
 */

/**
 * Finds the tensors: each is a run of fields `X.dtype.code`, `X.shape[0]`, ..., `X.data`.
 * @param {import("./model.js").Model} model
 * @returns {TensorPlace[]}
 */
export function tensorsOf(model) {
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
        found.push({ ...tensor, name: prefix, unit: index, start: field.start, end: field.end });
        [prefix, tensor] = ["", blank()];
      }
    }
  });
  name(model, found);
  return found;
}

function blank() {
  return { code: -1, bits: 0, lanes: 1, shape: /** @type {number[]} */ ([]) };
}

/** Sets the names of tensors from the inspection, which lists them in the same order. @param {import("./model.js").Model} model @param {TensorPlace[]} found */
function name(model, found) {
  const give = (/** @type {TensorPlace[]} */ places, /** @type {any[]} */ named) => {
    if (named.length === places.length) named.forEach((each, at) => { places[at].name = each.name || places[at].name; });
  };
  give(found, model.inspect?.params ?? model.inspect?.tensor ?? []);
  for (const { module, unit, start, end } of modules(model)) {
    give(found.filter((place) => place.unit === unit && place.start >= start && place.end <= end), module.tensors ?? []);
  }
}

const CODES = ["int", "uint", "float", "handle", "bfloat", "complex", "bool"];

/** @param {TensorPlace} tensor */
function dtype(tensor) {
  const base = `${CODES[tensor.code] ?? `type ${tensor.code} of `}${tensor.code === 6 ? "" : tensor.bits}`;
  return tensor.lanes > 1 ? `${base}x${tensor.lanes}` : base;
}

/**
 * @param {import("./model.js").Model} model @param {TensorPlace[]} tensors @param {(unit: number, offset: number) => void} go
 */
export function tensorsView(model, tensors, go) {
  const about = element("section", { "aria-live": "polite" });
  const total = tensors.reduce((sum, tensor) => sum + tensor.end - tensor.start, 0);
  const rows = tensors.slice(0, MOST_ROWS).map((tensor) => [
    element("button", { type: "button", class: "link", onclick: () => void choose(tensor) }, tensor.name || "tensor"),
    dtype(tensor), `[${tensor.shape.join(", ")}]`, size(tensor.end - tensor.start),
  ]);
  /** @param {TensorPlace} tensor */
  async function choose(tensor) {
    about.replaceChildren(element("h2", {}, tensor.name), element("div", { class: "row" },
      element("button", { type: "button", onclick: () => go(tensor.unit, tensor.start) }, `Show its bytes at ${hex(tensor.start)}`)), await histogram(model, tensor));
  }
  if (tensors[0]) void choose(tensors.find((tensor) => tensor.code !== 0 || tensor.shape.length > 0) ?? tensors[0]);
  return element("div", {},
    element("p", { class: "faint" }, `${counted(tensors.length, "tensor")}, ${size(total)}. Choose one for its histogram.`),
    about,
    table(["name", "type", "shape", "data#"], rows),
    tensors.length > rows.length ? element("p", { class: "faint" }, `The first ${rows.length} are listed.`) : null);
}

/** @param {import("./model.js").Model} model @param {TensorPlace} tensor */
async function histogram(model, tensor) {
  const read = readerOf(tensor);
  if (!read) return element("p", { class: "faint" }, `Values of type ${dtype(tensor)} have no histogram here.`);
  const bytes = tensor.end - tensor.start;
  const pieces = bytes > MOST_READ_BYTES ? PIECES : 1;
  const length = Math.floor(Math.min(bytes, MOST_READ_BYTES) / pieces / read.size) * read.size;
  /** @type {number[][]} */
  const all = [];
  for (let piece = 0; piece < pieces; piece += 1) {
    const start = tensor.start + Math.floor((bytes - length) / Math.max(pieces - 1, 1) * piece / read.size) * read.size;
    let part;
    try {
      part = await model.read(tensor.unit, start, start + length);
    } catch {
      return element("p", { class: "faint" }, "The bytes of this tensor are not in this page.");
    }
    all.push(read.values(new DataView(part.buffer, part.byteOffset, part.byteLength - part.byteLength % read.size)));
  }
  return summary(all.flat(), bytes / read.size, pieces > 1);
}

/** Returns a reader for values of the type, or null. Multi-byte values are little-endian (TEN-32). @param {TensorPlace} tensor */
function readerOf(tensor) {
  const { code, bits } = tensor;
  const step = bits / 8;
  /** @type {((view: DataView, at: number) => number) | null} */
  let one = null;
  if (code === 2 && bits === 32) one = (view, at) => view.getFloat32(at, true);
  if (code === 2 && bits === 64) one = (view, at) => view.getFloat64(at, true);
  if (code === 2 && bits === 16) one = (view, at) => half(view.getUint16(at, true));
  if (code === 4 && bits === 16) one = (view, at) => bfloat(view.getUint16(at, true));
  if (code === 0 && bits === 8) one = (view, at) => view.getInt8(at);
  if (code === 0 && bits === 16) one = (view, at) => view.getInt16(at, true);
  if (code === 0 && bits === 32) one = (view, at) => view.getInt32(at, true);
  if (code === 0 && bits === 64) one = (view, at) => Number(view.getBigInt64(at, true));
  if ((code === 1 || code === 6) && bits <= 8) one = (view, at) => view.getUint8(at);
  if (code === 1 && bits === 16) one = (view, at) => view.getUint16(at, true);
  if (code === 1 && bits === 32) one = (view, at) => view.getUint32(at, true);
  if (code === 1 && bits === 64) one = (view, at) => Number(view.getBigUint64(at, true));
  // Elements of less than a byte are packed in different ways by different releases.
  if (one === null || (bits < 8 && bits !== 1)) return null;
  const get = one;
  const bytes = Math.max(step, 1);
  return {
    size: bytes,
    /** @param {DataView} view */
    values(view) {
      const values = [];
      for (let at = 0; at + bytes <= view.byteLength; at += bytes) values.push(get(view, at));
      return values;
    },
  };
}

/** @param {number} bits */
function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** @param {number} bits */
function bfloat(bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits << 16);
  return view.getFloat32(0);
}

/** @param {number[]} values @param {number} count @param {boolean} sampled */
function summary(values, count, sampled) {
  let [low, high, sum, zeros, bad] = [Infinity, -Infinity, 0, 0, 0];
  for (const value of values) {
    if (!Number.isFinite(value)) { bad += 1; continue; }
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
    if (value === 0) zeros += 1;
  }
  const good = values.length - bad;
  const pairs = [["values", `${count.toLocaleString("en")}${sampled ? `, of which ${values.length.toLocaleString("en")} were read` : ""}`]];
  if (good > 0) pairs.push(["smallest, mean, largest", `${short(low)}, ${short(sum / good)}, ${short(high)}`]);
  pairs.push(["zeros", `${zeros.toLocaleString("en")} (${(values.length ? zeros / values.length * 100 : 0).toFixed(1)} %)`]);
  if (bad > 0) pairs.push(["NaN or infinite", bad.toLocaleString("en")]);
  const list = element("dl", { class: "pairs" }, pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  if (good === 0) return list;
  const width = (high - low) / BINS || 1;
  const bins = new Array(BINS).fill(0);
  for (const value of values) if (Number.isFinite(value)) bins[Math.min(Math.floor((value - low) / width), BINS - 1)] += 1;
  const most = Math.max(...bins);
  return element("div", {}, list, element("div", { class: "histogram" },
    drawn("svg", { viewBox: `0 0 ${BINS} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `histogram from ${short(low)} to ${short(high)}` },
      bins.map((bin, at) => drawn("rect", { x: at + 0.04, y: 100 - bin / most * 100, width: 0.92, height: bin / most * 100 },
        drawn("title", {}, `${short(low + at * width)} to ${short(low + (at + 1) * width)}: ${bin}`)))),
    element("div", { class: "row" }, element("span", {}, short(low)), element("span", {}, `highest bar: ${counted(most, "value")}`), element("span", {}, short(high)))));
}

/** @param {number} value */
function short(value) {
  return Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(5)).toString();
}
