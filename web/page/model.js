// The model of an opened file: its answers, and access to its bytes. The page and the report of `inspect --html` each create one.

/**
 * @typedef {{start: number, end: number, field: string, value: string, rule: string}} Field
 * @typedef {{rule: string, offset: number | null, message: string, field?: string, kind?: string}} Problem
 * @typedef {{title: string, level: string, text: string}} RuleText
 * @typedef {{name: string, format: string, offset: number | null, bytes: number, fields: Field[], findings: Problem[],
 *   broken: Problem | null, left_out_from?: number}} Unit
 * @typedef {{name: string, size: number, inspect: any, verify: any, explain: any, units: Unit[], refused: string | null,
 *   rules: Record<string, RuleText>, results?: Results, releases: string[], read: (unit: number, start: number, end: number) => Promise<Uint8Array>,
 *   connection?: any, failed?: string[]}} Model
 * @typedef {{names: string[], rules: Record<string, {judged: number, failing: [number, number, number][]}>}} Results of each rule: the
 *   number of implementations with cases, and for each that fails its index in `names`, its failed cases and all its cases
 */

/**
 * Joins the list of units and the fields of the same units.
 * @param {any[]} places @param {any} dump
 * @returns {Unit[]}
 */
export function unitsOf(places, dump) {
  return places.map((place, index) => ({ fields: [], findings: [], broken: null, ...(dump?.[index] ?? {}), ...place }));
}

/**
 * Adds a unit for the whole file, unless a unit covers it. Rules of containers and of JSON have offsets into the file.
 * @param {string} name @param {number} bytes @param {Unit[]} units @param {any} verify @param {any} [dump]
 */
export function withWholeFile(name, bytes, units, verify, dump) {
  if (units.some((unit) => unit.offset === 0 && unit.bytes === bytes)) return units;
  // Without units, the file has one fault, that of its container or of its JSON.
  const broken = units.length === 0 ? verify?.violations?.[0] ?? dump?.[0]?.broken ?? null : null;
  return [...units, { name, format: units.length === 0 ? dump?.[0]?.format ?? "whole file" : "whole file", offset: 0, bytes, fields: [], findings: [], broken }];
}

/**
 * Finds the unit of a problem of `verify`, whose member `in` is the name of the unit or of the file. Returns -1 for a problem of a file
 * that is not open, such as a shard. Members of an archive may have the same name, so that the problem itself decides.
 * @param {Model} model @param {any} problem
 */
export function unitOf(model, problem) {
  const named = model.units.map((unit, index) => ({ unit, index })).filter(({ unit }) => unit.name === problem.in);
  const is = (/** @type {Problem | null} */ each) => each !== null && each.rule === problem.rule && each.offset === problem.offset && each.message === problem.message;
  const found = named.find(({ unit }) => is(unit.broken) || unit.findings.some(is)) ?? named[named.length - 1];
  return found?.index ?? -1;
}

/**
 * Returns whether reading ended at a kind of module that no release has: no rule is broken there, as far as is known (BLOB-06).
 * @param {Model} model @param {Unit} unit
 */
export function isUnread(model, unit) {
  const { broken } = unit;
  return broken !== null && (model.verify?.unread ?? []).some((/** @type {any} */ each) => each.in === unit.name && each.rule === broken.rule && each.offset === broken.offset);
}

/**
 * Returns the index of the field that contains the offset, or -1. Fields are sorted and do not overlap.
 * @param {Field[]} fields @param {number} offset
 */
export function fieldAt(fields, offset) {
  const at = lastBefore(fields, offset);
  return at >= 0 && offset < fields[at].end ? at : -1;
}

/**
 * Returns the index of the last field that starts at or before the offset, or -1.
 * @param {Field[]} fields @param {number} offset
 */
export function lastBefore(fields, offset) {
  let low = 0;
  let high = fields.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fields[middle].start <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Returns the kind of a field, by the subject of its rule. The kind decides the color.
 * @param {Field} field
 */
export function kindOf(field) {
  const chapter = field.rule.split("-")[0];
  if (chapter === "WIRE" && /\.data$/.test(field.field) && field.end - field.start > 8) return "payload";
  switch (chapter) {
    case "WIRE": return "length";
    case "BLOB": return "library";
    case "TREE": return "tree";
    case "TEN": return "tensor";
    case "VM": return "code";
    case "PAY": return /instr_|\.code$|bytecode/.test(field.field) ? "code" : "payload";
    default: return "other";
  }
}

/** Names of file formats for people, by the names in the inspection. */
const FORMS = /** @type {Record<string, string>} */ ({
  "elf-shared": "ELF shared object", "elf-executable": "ELF executable", "elf-object": "ELF object file", "macho-shared": "Mach-O library", "macho-executable": "Mach-O executable",
  "macho-object": "Mach-O object file", "macho-fat": "Mach-O universal file", "pe-shared": "DLL", "pe-executable": "Windows executable", "coff-object": "COFF object file",
  "wasm-object": "WebAssembly object file", "wasm-module": "WebAssembly module", archive: "ar archive", tar: "tar archive", "gzip-tar": "compressed tar archive", "c-text": "C source",
  "raw-blob": "library binary", params: "parameter file", tensor: "tensor file", "graph-json": "graph JSON", "object-json": "saved objects of 0.20 and before", "ffi-json": "saved objects of 0.21 and later",
  "tensor-cache": "index of a tensor cache", "relax-vm": "Relax VM executable", "relay-vm": "Relay VM code", stackvm: "StackVM module", "module-file": "device module", "rpc": "RPC connection", unknown: "file of an unknown form",
});

/** Returns the name of a file format. @param {string} form its name in the inspection */
export function formTitle(form) {
  return FORMS[form] ?? form;
}

/** The kinds in the order of the legend, with their names. */
export const KINDS = {
  length: "lengths and counts",
  library: "library binary",
  tree: "import tree",
  payload: "payload of a module",
  tensor: "tensor",
  code: "VM code",
  other: "other",
  none: "no field",
};

/**
 * Returns every library binary of an inspection, with its part.
 * @param {Model} model
 * @returns {{part: any, library: any}[]}
 */
export function libraries(model) {
  return (model.inspect?.parts ?? []).flatMap((/** @type {any} */ part) =>
    (part.libraries ?? []).map((/** @type {any} */ library) => ({ part, library })));
}

/**
 * Returns every module with content, with its unit and the offsets of its payload in the unit.
 * @param {Model} model
 * @returns {{module: any, unit: number, start: number, end: number}[]}
 */
export function modules(model) {
  const found = libraries(model).flatMap(({ library }, unit) => (library.modules ?? []).map((/** @type {any} */ module) => ({
    module, unit, start: module.offset ?? 0, end: (module.offset ?? 0) + (module.bytes ?? 0),
  })));
  if (model.inspect?.module) found.push({ module: model.inspect.module, unit: 0, start: 0, end: model.units[0]?.bytes ?? 0 });
  return found;
}
