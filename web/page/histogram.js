// The values of a tensor: their distribution as bars, and their extremes.
import { counted, drawn, element } from "./dom.js";

/**
 * @typedef {{start: number, end: number, code: number, bits: number, shape: number[], type: string}} Stored the place, the element type and the shape of a tensor
 * @typedef {{group: number, count: number, most: number, isInteger: boolean, note: string, get: (view: DataView, index: number) => number}} Reader
 *   reads elements: `count` elements are in `group` bytes, and the tensor has at most `most`
 */

/** The maximal number of bytes that are read. A larger tensor is read in pieces at equal distances. */
const MOST_READ_BYTES = 4 << 20;
const PIECES = 64;
const BINS = 48;

/** Small floats: the bits of exponent and mantissa, the bias, and the values that are not numbers, as in `src/cli/small_float.rs`. @type {Record<string, [number, number, number, string]>} */
const SMALL_FLOATS = {
  float8_e3m4: [3, 4, 3, "ieee"], float8_e4m3: [4, 3, 7, "ieee"], float8_e4m3b11fnuz: [4, 3, 11, "zero"], float8_e4m3fn: [4, 3, 7, "ones"], float8_e4m3fnuz: [4, 3, 8, "zero"],
  float8_e5m2: [5, 2, 15, "ieee"], float8_e5m2fnuz: [5, 2, 16, "zero"], float6_e2m3fn: [2, 3, 1, ""], float6_e3m2fn: [3, 2, 3, ""], float4_e2m1fn: [2, 1, 1, ""],
  e4m3_float8: [4, 3, 7, "ones"], e5m2_float8: [5, 2, 15, "ieee"],
};

/** Shows the values of a tensor. @param {import("./model.js").Model} model @param {Stored & {unit: number}} tensor */
export async function histogram(model, tensor) {
  const total = tensor.end - tensor.start;
  const pieces = total > MOST_READ_BYTES ? PIECES : 1;
  const length = pieces > 1 ? MOST_READ_BYTES / PIECES : total;
  /** @type {DataView[]} */
  const views = [];
  // A multiple of 24, so that each piece starts with a whole element of any width.
  const step = pieces > 1 ? Math.floor((total - length) / (pieces - 1) / 24) * 24 : 0;
  for (let piece = 0; piece < pieces; piece += 1) {
    const start = tensor.start + piece * step;
    const part = await model.read(tensor.unit, start, Math.min(start + length, tensor.end));
    views.push(new DataView(part.buffer, part.byteOffset, part.byteLength));
  }
  const read = readerOf(tensor, views);
  if (!read) return element("p", { class: "faint" }, `Values of type ${tensor.type} have no histogram here.`);
  const used = Math.min(Math.ceil(read.most / read.count * read.group), total);
  const kept = views.map((view, piece) => new DataView(view.buffer, view.byteOffset, Math.max(Math.min(view.byteLength, used - piece * step), 0)));
  return summary(kept, read, pieces > 1, Math.min(read.most, Math.floor(used / read.group) * read.count));
}

/** Returns a reader for values of the type, or null. Multi-byte values are little-endian (TEN-32). @param {Stored} tensor @param {DataView[]} views @returns {Reader | null} */
function readerOf(tensor, views) {
  const { code, bits } = tensor;
  const is = { integer: code === 0 || code === 1 || tensor.type.includes("bool"), float: code === 2, bfloat: code === 4 };
  /** @type {Record<string, Reader["get"] | undefined>} */
  const wide = {
    "float 16": (view, at) => half(view.getUint16(at * 2, true)), "float 32": (view, at) => view.getFloat32(at * 4, true), "float 64": (view, at) => view.getFloat64(at * 8, true),
    "bfloat 16": (view, at) => bfloat(view.getUint16(at * 2, true)),
    "int 8": (view, at) => view.getInt8(at), "int 16": (view, at) => view.getInt16(at * 2, true), "int 32": (view, at) => view.getInt32(at * 4, true), "int 64": (view, at) => Number(view.getBigInt64(at * 8, true)),
    "uint 8": (view, at) => view.getUint8(at), "uint 16": (view, at) => view.getUint16(at * 2, true), "uint 32": (view, at) => view.getUint32(at * 4, true), "uint 64": (view, at) => Number(view.getBigUint64(at * 8, true)),
  };
  const name = is.float ? "float" : is.bfloat ? "bfloat" : is.integer ? (code === 0 ? "int" : "uint") : "";
  const get = wide[`${name} ${bits}`];
  if (get) return { group: bits / 8, count: 1, most: Infinity, isInteger: is.integer, note: "", get };
  // The newest name, if a code has several meanings.
  const small = tensor.type.match(/float[468]_e\w+|e[45]m[23]_float8/g)?.pop();
  if (!(is.integer && bits < 8) && !small) return null;
  const value = small ? smallFloat(small) : (/** @type {number} */ raw) => (code === 0 && raw >> (bits - 1) ? raw - 2 ** bits : raw);
  if (!value || bits > 8) return null;
  const values = Array.from({ length: 2 ** bits }, (_, raw) => value(raw));
  if (bits === 8) return { group: 1, count: 1, most: Infinity, isInteger: false, note: small && small !== tensor.type ? `read as ${small}` : "", get: (view, at) => values[view.getUint8(at)] };
  return narrow(tensor, views, bits, values, is.integer);
}

/**
 * Returns a reader for elements of less than a byte. A record has a byte for each (TEN-31), but a tensor that was packed in memory
 * (DEV-15) fills only the first of these bytes. A byte that is no value of the type shows that.
 * @param {Stored} tensor @param {DataView[]} views @param {number} bits @param {number[]} values @param {boolean} isInteger @returns {Reader}
 */
function narrow(tensor, views, bits, values, isInteger) {
  const count = tensor.shape.reduce((product, extent) => product * extent, 1);
  const isByte = (/** @type {number} */ byte) => byte < 2 ** bits || (tensor.code === 0 && byte >= 256 - 2 ** (bits - 1));
  const isPacked = bits > 1 && (tensor.end - tensor.start < count || views.some((view) => {
    for (let at = 0; at < view.byteLength; at += 1) if (!isByte(view.getUint8(at))) return true;
    return false;
  }));
  if (!isPacked) return { group: 1, count: 1, most: Infinity, isInteger, note: bits > 1 ? "each element in a byte" : "", get: (view, at) => values[view.getUint8(at) & (2 ** bits - 1)] };
  return {
    group: bits, count: 8, most: count, isInteger, note: `packed, ${bits} bits for each element`,
    get: (view, at) => {
      const [byte, shift] = [Math.floor(at * bits / 8), at * bits % 8];
      const next = byte + 1 < view.byteLength ? view.getUint8(byte + 1) : 0;
      return values[((view.getUint8(byte) | (next << 8)) >> shift) & (2 ** bits - 1)];
    },
  };
}

/** Returns a function from the bits of a small float to its value, or null. @param {string} name @returns {((raw: number) => number) | null} */
function smallFloat(name) {
  if (name === "float8_e8m0fnu") return (raw) => (raw === 255 ? NaN : 2 ** (raw - 127));
  const format = SMALL_FLOATS[name];
  if (!format) return null;
  const [exponentBits, mantissaBits, bias, specials] = format;
  return (raw) => {
    const [sign, highest] = [raw >> (exponentBits + mantissaBits) & 1, 2 ** exponentBits - 1];
    const [exponent, mantissa] = [raw >> mantissaBits & highest, raw & (2 ** mantissaBits - 1)];
    if (specials === "ieee" && exponent === highest) return mantissa ? NaN : sign ? -Infinity : Infinity;
    if (specials === "ones" && exponent === highest && mantissa === 2 ** mantissaBits - 1) return NaN;
    if (specials === "zero" && sign && exponent === 0 && mantissa === 0) return NaN;
    const value = ((exponent > 0 ? 2 ** mantissaBits : 0) + mantissa) * 2 ** (Math.max(exponent, 1) - bias - mantissaBits);
    return sign ? -value : value;
  };
}

/** @param {number} bits */
function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const word = new DataView(new ArrayBuffer(4));
/** @param {number} bits */
function bfloat(bits) {
  word.setUint16(0, bits);
  return word.getFloat32(0);
}

/** @param {DataView[]} views @param {Reader} read @param {boolean} isSampled @param {number} total the number of elements of the tensor */
function summary(views, read, isSampled, total) {
  const each = (/** @type {(value: number) => void} */ use) => {
    for (const view of views) {
      const end = Math.floor(view.byteLength / read.group) * read.count + Math.floor(view.byteLength % read.group * 8 / (read.group * 8 / read.count));
      for (let at = 0; at < end; at += 1) use(read.get(view, at));
    }
  };
  let [count, finite, low, high, mean, zeros, nans, infinite] = [0, 0, Infinity, -Infinity, 0, 0, 0, 0];
  each((value) => {
    count += 1;
    if (Number.isNaN(value)) { nans += 1; return; }
    if (!Number.isFinite(value)) { infinite += 1; return; }
    finite += 1;
    if (value < low) low = value;
    if (value > high) high = value;
    mean += (value - mean) / finite;
    if (value === 0) zeros += 1;
  });
  const number = (/** @type {number} */ value) => value.toLocaleString("en");
  const pairs = [["values", [isSampled ? `${number(total)}, of which ${number(count)} were read` : number(count), read.note].filter(Boolean).join("; ")]];
  if (finite > 0) pairs.push(["smallest, mean, largest", `${short(low)}, ${short(mean)}, ${short(high)}`]);
  pairs.push(["zeros", `${number(zeros)} (${(count ? zeros / count * 100 : 0).toFixed(1)} %)`]);
  if (!read.isInteger || nans + infinite > 0) pairs.push(["NaN, infinite", `${number(nans)}, ${number(infinite)}`]);
  const list = element("dl", { class: "pairs" }, pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  if (finite === 0) return list;
  // A bar for each integer, if they are few. Halves are subtracted, because the difference of two finite numbers may be infinite.
  const isFew = read.isInteger && high - low < BINS;
  const bins = new Array(isFew ? high - low + 1 : BINS).fill(0);
  const width = isFew ? 1 : high / BINS - low / BINS || 1;
  each((value) => { if (Number.isFinite(value)) bins[Math.min(Math.floor(value / width - low / width), bins.length - 1)] += 1; });
  let most = 0;
  for (const bin of bins) most = Math.max(most, bin);
  const title = (/** @type {number} */ at) => (isFew ? `${low + at}` : `${short(low + at * width)} to ${short(low + (at + 1) * width)}`);
  return element("div", {}, list, element("div", { class: "histogram" },
    drawn("svg", { viewBox: `0 0 ${bins.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `histogram from ${short(low)} to ${short(high)}` },
      bins.map((bin, at) => drawn("rect", { x: at + 0.04, y: 100 - bin / most * 100, width: 0.92, height: bin / most * 100 },
        drawn("title", {}, `${title(at)}: ${number(bin)}`)))),
    element("div", { class: "row" }, element("span", {}, short(low)), element("span", {}, `highest bar: ${counted(most, "value")}`), element("span", {}, short(high)))));
}

/** @param {number} value */
function short(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en") : Number(value.toPrecision(5)).toString();
}
