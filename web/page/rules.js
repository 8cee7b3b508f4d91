// Rules: the id as a button, and the text below it.
import { element, sentence } from "./dom.js";

/** The address of the site, when the page is a part of it. */
const site = document.documentElement.dataset.site;

/**
 * A folded text of a rule.
 * @param {import("./model.js").Model} model @param {string} id @param {boolean} [open]
 */
export function ruleText(model, id, open = false) {
  const rule = model.rules[id];
  if (!rule) return element("p", { class: "faint" }, `Rule ${id}: its text is in the specification, chapter of ${id.split("-")[0]}.`);
  return element("details", { class: "rule", open },
    element("summary", {}, element("strong", {}, id), ` ${rule.title} `, element("span", { class: "faint" }, rule.level)),
    site === undefined ? null : element("p", {}, element("a", { href: `${site}rules/${id}.html` }, `${id} with its evidence, and who breaks it`)),
    rule.text.split("\n\n").map((paragraph) => element("p", {}, sentence(plainText(paragraph)))));
}

/** Removes the marks of Markdown except those of code, and references to other pages, which are not here. @param {string} text */
function plainText(text) {
  const joined = /^(\||[*-] )/m.test(text) ? text : text.replace(/\n/g, " ");
  return joined.replace(/ ?\(\[decision\]\([^)]*\)\)/g, "").replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\*\*([^*]+)\*\*/g, "$1");
}
