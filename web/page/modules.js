// The import tree as a drawing, and below it the chosen module: its functions, its fields and its source code.
import { drawing, MOST_NODES } from "./drawing.js";
import { counted, element, hex, pagedTable, size, table } from "./dom.js";
import { highlighted } from "./highlight.js";
import { lastBefore, libraries } from "./model.js";

/** The minimal size of a shown field in bytes. A shorter one is a name or a number. */
const SHORTEST = 40;
/** The number of bytes of a source that are shown, and of a field that are read to find out whether it is text. */
const MOST_SHOWN_BYTES = 1 << 20;
const MOST_TESTED_BYTES = 4096;

/**
 * Shows the modules of each library binary.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} go
 */
export function modulesView(model, go) {
  const found = libraries(model);
  if (found.length === 0 && model.inspect?.module) return moduleView(model, model.inspect.module, 0, 0, model.units[0].bytes, go);
  const views = found.map(({ library }, unit) => () => libraryView(model, library, unit, go));
  if (views.length === 1) return views[0]();
  // The first library is open. The others are drawn when they are opened.
  return element("div", {}, found.map(({ part, library }, unit) => {
    const title = [part.member, library.symbol].filter(Boolean).join(", ") || `library binary ${unit + 1}`;
    const details = element("details", { class: "model", open: unit === 0, ontoggle: () => fill() }, element("summary", {}, title));
    const fill = () => { if (details.open && details.childElementCount === 1) details.append(views[unit]()); };
    fill();
    return details;
  }));
}

/** @param {import("./model.js").Model} model @param {any} library @param {number} unit @param {(unit: number, offset: number) => void} go */
function libraryView(model, library, unit, go) {
  const about = element("section", { "aria-live": "polite" });
  const all = /** @type {any[]} */ (library.modules ?? []);
  const open = (/** @type {any} */ module) => about.replaceChildren(
    moduleView(model, module, unit, module.offset ?? 0, (module.offset ?? 0) + (module.bytes ?? 0), go));
  const nodes = all.slice(0, MOST_NODES).map((module, index) => ({
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
    element("p", { class: "faint" }, `Library binary of layout ${library.layout}: ${counted(all.length, "module")}. An arrow leads to what a module imports; choose one for its content.`),
    nodes.length > 0 ? drawing(nodes, edges, "import tree", all.length) : null, about);
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
    functions.length > 0 ? pagedTable(["function", "arguments", "launch"], functions, (each) =>
      [each.name, (each.arg_types ?? []).join(", "), (each.launch_param_tags ?? []).join(", ")], (each) => each.name) : null,
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
    const bytes = field.end - field.start;
    if (bytes < SHORTEST || field.start < start) continue;
    const name = field.field.replace(/^[^.]*\./, "");
    try {
      const isText = asText(await model.read(unit, field.start, Math.min(field.end, field.start + MOST_TESTED_BYTES))) !== null;
      const source = isText ? asText(await model.read(unit, field.start, Math.min(field.end, field.start + MOST_SHOWN_BYTES))) : null;
      if (source !== null) into.append(...sourceView(model, unit, field, name, source));
      else if (bytes >= 64 && /data|code|text|source|binary/.test(name)) into.append(element("p", { class: "faint" }, `${name}: binary, ${size(bytes)}`));
    } catch (error) {
      into.append(element("p", { class: "note warn" }, error instanceof Error ? error.message : String(error)));
      return;
    }
  }
}

/**
 * Shows a source, or the beginning of a long one. The button copies all of it.
 * @param {import("./model.js").Model} model @param {number} unit @param {import("./model.js").Field} field @param {string} name @param {string} source
 */
function sourceView(model, unit, field, name, source) {
  const bytes = field.end - field.start;
  const isCut = bytes > MOST_SHOWN_BYTES;
  const state = element("span", { class: "faint", role: "status" });
  const copy = element("button", { type: "button", onclick: async () => {
    const done = await copied(isCut ? asText(await model.read(unit, field.start, field.end)) ?? source : source).catch(() => false);
    state.textContent = done ? "Copied." : "The browser does not permit copying.";
  } }, "Copy");
  // A browser would show the first half of CR LF as a letter.
  const shown = source.replace(/\r\n?/g, "\n");
  return [element("div", { class: "row" }, element("h3", {}, name), element("span", { class: "faint" }, `${size(bytes)}, ${isCut ? "more than " : ""}${counted(shown.split("\n").length, "line")}`), copy, state),
    isCut ? element("p", { class: "note" }, `The first ${size(MOST_SHOWN_BYTES)} of ${size(bytes)} are shown. The button copies all.`) : null,
    element("pre", { class: "source", tabindex: 0, "aria-label": `source code, ${name}` }, highlighted(pretty(shown)))].filter((node) => node !== null);
}

/** Copies the text. A page of a server without encryption has no clipboard, but it may copy a selection. @param {string} text */
async function copied(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const area = element("textarea", { class: "sr", "aria-hidden": "true" });
  const before = /** @type {any} */ (document.activeElement);
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus();
  return done;
}

/** Indents JSON that is on one line. @param {string} source */
function pretty(source) {
  if (!/^\s*[{[]/.test(source) || source.split("\n").length > 3 || source.length > 1 << 20) return source;
  try { return JSON.stringify(JSON.parse(source), null, 2); } catch { return source; }
}

/** Returns the text, or null for bytes that are not text. They may end inside a letter. @param {Uint8Array} bytes */
function asText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }).replace(/\0+$/, "");
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}
