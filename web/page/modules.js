// The import tree as a drawing, and below it the chosen module: its functions, its fields and its source code.
import { drawing } from "./drawing.js";
import { counted, element, hex, size, table } from "./dom.js";
import { highlighted } from "./highlight.js";
import { lastBefore, libraries } from "./model.js";

/** The minimal size of a shown field in bytes. A shorter one is a name or a number. */
const SHORTEST = 40;
/** The number of bytes of a field that are shown. */
const LONGEST = 4 << 20;

/**
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} go
 */
export function modulesView(model, go) {
  const found = libraries(model);
  if (found.length === 0 && model.inspect?.module) return moduleView(model, model.inspect.module, 0, 0, model.units[0].bytes, go);
  return element("div", {}, found.map(({ part, library }, unit) => {
    const about = element("section", { "aria-live": "polite" });
    const all = /** @type {any[]} */ (library.modules ?? []);
    const open = (/** @type {any} */ module) => about.replaceChildren(
      moduleView(model, module, unit, module.offset ?? 0, (module.offset ?? 0) + (module.bytes ?? 0), go));
    const nodes = all.map((module, index) => ({
      id: String(index),
      lines: [`${module.index ?? index} ${module.kind}`, module.kind === "_lib" ? "the host code" : module.bytes === undefined ? "" : size(module.bytes)].filter(Boolean),
      fill: module.kind === "_lib" ? "var(--k-library)" : "var(--k-payload)",
      open: () => open(module),
    }));
    const edges = all.flatMap((module, index) => (module.imports ?? []).map((/** @type {number} */ to) => ({ from: String(index), to: String(to) })));
    // A module with content is more informative than the host code.
    const first = all.find((module) => module.bytes !== undefined) ?? all[0];
    if (first) open(first);
    return element("section", {},
      found.length > 1 ? element("h2", {}, [part.member, library.symbol].filter(Boolean).join(", ") || `library binary ${unit + 1}`) : null,
      element("p", { class: "faint" }, `Library binary of layout ${library.layout}: ${counted(all.length, "module")}. An arrow leads to what a module imports; choose one for its content.`),
      nodes.length > 0 ? drawing(nodes, edges, "import tree") : null, about);
  }));
}

/**
 * @param {import("./model.js").Model} model @param {any} module @param {number} unit @param {number} start @param {number} end
 * @param {(unit: number, offset: number) => void} go
 */
function moduleView(model, module, unit, start, end, go) {
  const functions = /** @type {any[]} */ (module.functions ?? []);
  const fields = Object.entries(module.fields ?? {}).map(([name, value]) => [name, text(value)]);
  const sources = element("div");
  if (module.bytes !== undefined || model.inspect?.module) void addSources(model, unit, start, end, sources);
  return element("section", {},
    element("h2", {}, `Module ${module.index ?? ""} ${module.kind}`),
    module.kind === "_lib" ? element("p", {}, "The functions that the library file itself exports.") : element("div", { class: "row" },
      element("button", { type: "button", onclick: () => go(unit, start) }, `Show its bytes at ${hex(start)}`),
      element("span", { class: "faint" }, [module.format ? `format ${module.format}` : "", module.form ? `grammar of ${module.form}` : ""].filter(Boolean).join(", "))),
    functions.length > 0 ? table(["function", "arguments", "launch"], functions.slice(0, 500).map((each) =>
      [each.name, (each.arg_types ?? []).join(", "), (each.launch_param_tags ?? []).join(", ")])) : null,
    fields.length > 0 ? table(["field", "value"], fields) : null,
    sources);
}

/** @param {any} value */
function text(value) {
  if (value && typeof value === "object" && Object.keys(value).length === 1 && typeof value.bytes === "number") return size(value.bytes);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Adds every long field of the payload that is text. The bytes decide, because each kind has its own names of fields.
 * @param {import("./model.js").Model} model @param {number} unit @param {number} start @param {number} end @param {any} into
 */
async function addSources(model, unit, start, end, into) {
  const { fields } = model.units[unit];
  for (let at = Math.max(lastBefore(fields, start), 0); at < fields.length && fields[at].start < end; at += 1) {
    const field = fields[at];
    if (field.end - field.start < SHORTEST || field.start < start) continue;
    let bytes;
    try {
      bytes = await model.read(unit, field.start, Math.min(field.end, field.start + LONGEST));
    } catch { return; }
    const source = asText(bytes);
    const name = field.field.replace(/^[^.]*\./, "");
    if (source === null) {
      if (field.end - field.start >= 64 && /data|code|text|source|binary/.test(name)) into.append(element("p", { class: "faint" }, `${name}: ${size(field.end - field.start)} that are not text`));
      continue;
    }
    const copy = element("button", { type: "button", onclick: () => navigator.clipboard?.writeText(source) }, "Copy");
    into.append(element("div", { class: "row" }, element("h3", {}, name), element("span", { class: "faint" }, `${size(field.end - field.start)}, ${counted(source.split("\n").length, "line")}`), copy),
      element("pre", { class: "source", tabindex: 0, "aria-label": `source code, ${name}` }, highlighted(pretty(source))));
  }
}

/** Indents JSON that is on one line. @param {string} source */
function pretty(source) {
  if (!/^\s*[{[]/.test(source) || source.split("\n").length > 3 || source.length > 1 << 20) return source;
  try { return JSON.stringify(JSON.parse(source), null, 2); } catch { return source; }
}

/** Returns the text, or null for bytes that are not text. @param {Uint8Array} bytes */
function asText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replace(/\0+$/, "");
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}
