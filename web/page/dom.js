// Elements, and texts of numbers. Everything that a file states reaches the page as text nodes, never as markup.

/**
 * Creates an element. Properties that begin with `on` are listeners; a null one is left out.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | number | null | undefined | (Node | string | null)[])} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/**
 * Creates an element of a drawing.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...any} children
 * @returns {any}
 */
export function drawn(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/** @param {any} made @param {Record<string, any>} properties @param {any[]} children */
function filled(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : visible(String(child)));
  }
  return made;
}

/**
 * Replaces characters that a reader cannot see, or that turn the text around, by their code: a name in a file may contain them.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu, (letter) =>
    `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}

/** Returns the text, or its beginning and `…` if it has more letters. @param {string} text @param {number} most */
export function clipped(text, most) {
  return text.length > most ? `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…` : text;
}

/**
 * Creates the nodes of a sentence: words between backticks become code, and *words* are emphasized.
 * @param {string | null | undefined} text
 * @returns {any[]}
 */
export function sentence(text) {
  const parts = (text ?? "").split(/(`[^`]+`|(?<![^\s(])\*[^*`\s](?:[^*`]*[^*`\s])?\*(?!\w))/);
  return parts.map((part, at) => (at % 2 === 1 ? element(part.startsWith("`") ? "code" : "em", {}, part.slice(1, -1)) : part));
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** @param {number} offset */
export function hex(offset) {
  return `0x${offset.toString(16)}`;
}

/** @param {number} count @param {string} noun */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Creates a table. A cell is a text or a node; a column whose title ends in `#` is right-aligned.
 * @param {string[]} titles
 * @param {any[][]} rows
 */
export function table(titles, rows) {
  const numeric = titles.map((title) => title.endsWith("#"));
  const kind = (/** @type {number} */ at) => (numeric[at] ? { class: "number" } : {});
  // Only a word that is wider than a narrow column is broken inside.
  const look = (/** @type {any} */ cell) => (/\S{16}/.test([cell].flat().map((part) => (part instanceof Node ? part.textContent : part)).join("")) ? "long" : null);
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, titles.map((title, at) => element("th", { scope: "col", ...kind(at) }, title.replace(/#$/, ""))))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell, at) => element("td", { class: look(cell), ...kind(at) }, cell)))))));
}

/** Returns the color of a variable of the style sheet, for a canvas. @param {string} name */
export function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Rows of a page of a long table. */
const PAGE = 200;

/**
 * Creates a table of any length. A long one has pages and a filter. Only the rows of the shown page are created.
 * @template T
 * @param {string[]} titles @param {T[]} items @param {(item: T) => any[]} rowOf @param {(item: T) => string} textOf the text that the filter searches
 */
export function pagedTable(titles, items, rowOf, textOf) {
  if (items.length <= PAGE) return table(titles, items.map(rowOf));
  let chosen = items;
  let first = 0;
  const place = element("div");
  const state = element("span", { class: "faint", role: "status" });
  const filter = element("input", { type: "search", "aria-label": "filter", placeholder: "Filter", oninput: () => {
    const wanted = filter.value.toLowerCase();
    chosen = items.filter((item) => textOf(item).toLowerCase().includes(wanted));
    show(0);
  } });
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {number} */ by) => element("button", { type: "button", "aria-label": title, onclick: () => show(first + by) }, text);
  const [before, after] = [button("‹", "previous page", -PAGE), button("›", "next page", PAGE)];
  /** @param {number} at */
  function show(at) {
    if (at < 0 || (at > 0 && at >= chosen.length)) return;
    first = at;
    const end = Math.min(first + PAGE, chosen.length);
    const number = (/** @type {number} */ value) => value.toLocaleString("en");
    state.textContent = chosen.length === 0 ? "No row contains this text." : `${number(first + 1)} to ${number(end)} of ${number(chosen.length)}`;
    // Not `disabled`, because a button loses the focus with it.
    before.setAttribute("aria-disabled", String(first === 0));
    after.setAttribute("aria-disabled", String(end === chosen.length));
    place.replaceChildren(table(titles, chosen.slice(first, end).map(rowOf)));
  }
  show(0);
  return element("div", {}, element("div", { class: "row tools" }, filter, before, after, state), place);
}
