// The model of an opened file: its answers, and access to its bytes. The page and the report of `inspect --html` each create one.

/**
 * @typedef {{start: number, end: number, field: string, value: string, rule: string}} Field
 * @typedef {{rule: string, offset: number | null, message: string, field?: string, kind?: string}} Problem
 * @typedef {{title: string, level: string, text: string}} RuleText
 * @typedef {{name: string, format: string, offset: number | null, bytes: number, fields: Field[], findings: Problem[],
 *   broken: Problem | null, left_out_from?: number}} Unit
 * @typedef {{name: string, size: number, inspect: any, verify: any, explain: any, units: Unit[], refused: string | null,
 *   rules: Record<string, RuleText>, releases: string[], read: (unit: number, start: number, end: number) => Promise<Uint8Array>,
 *   connection?: any}} Model
 */

/**
 * Joins the list of units and the dump of the same units. A file without units has one that covers it and has no fields, so that its
 * bytes and its broken rules have a place.
 * @param {string} name @param {number} bytes @param {any[]} places @param {any} dump @param {any} verify
 * @returns {Unit[]}
 */
export function unitsOf(name, bytes, places, dump, verify) {
  if (places.length > 0) {
    return places.map((place, index) => ({ fields: [], findings: [], broken: null, ...(dump?.[index] ?? {}), ...place }));
  }
  const broken = verify?.violations?.[0] ?? dump?.[0]?.broken ?? null;
  return [{ name, format: dump?.[0]?.format ?? "whole file", offset: 0, bytes, fields: [], findings: [], broken }];
}

/**
 * Finds the unit of a problem of `verify`, whose member `in` is the unit's name.
 * @param {Model} model @param {any} problem
 */
export function unitOf(model, problem) {
  const found = model.units.findIndex((unit) => unit.name === problem.in);
  return Math.max(found, 0);
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
