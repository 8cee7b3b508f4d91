// Rules: the title, and below it the text and the implementations that break it.
import { element, sentence } from "./dom.js";

/** The address of the site, when the page is a part of it. */
const site = document.documentElement.dataset.site;

/**
 * Creates the folded text of a rule.
 * @param {Pick<import("./model.js").Model, "rules" | "results">} model @param {string} id @param {boolean} [open]
 */
export function ruleText(model, id, open = false) {
  const rule = model.rules[id];
  if (!rule) return element("p", { class: "faint" }, `Rule ${id}: its text is in the specification, chapter of ${id.split("-")[0]}.`);
  return element("details", { class: "rule", open },
    element("summary", {}, element("strong", {}, id), " ", sentence(rule.title), " ", element("span", { class: "faint" }, rule.level)),
    site === undefined ? null : element("p", {}, element("a", { href: `${site}rules/${id}.html` }, `${id} with its evidence, and each failed case`)),
    rule.text === "" ? element("p", { class: "faint" }, "Its text is in the specification.") : rule.text.split("\n\n").map((paragraph) => element("p", {}, sentence(plainText(paragraph)))),
    resultsOf(model, id));
}

/** Lists the implementations that break a rule. @param {Pick<import("./model.js").Model, "results">} model @param {string} id */
function resultsOf(model, id) {
  if (!model.results) return null;
  const { names, rules } = model.results;
  const { judged, failing } = rules[id] ?? { judged: 0, failing: [] };
  if (judged === 0) return element("p", { class: "faint" }, "No implementation was judged by it.");
  if (failing.length === 0) return element("p", { class: "faint" }, judged === 1 ? "The one judged implementation keeps it." : `All ${judged} judged implementations keep it.`);
  return element("div", {}, element("p", {}, element("strong", { class: "bad" }, `${failing.length} of ${judged} judged implementations break it:`)),
    element("ul", {}, failing.map(([at, bad, all]) => element("li", {}, `${names[at]}: ${bad} of ${all} ${all === 1 ? "case" : "cases"}`))));
}

/** Removes the marks of Markdown except those of code, and references to other pages, which are not here. @param {string} text */
function plainText(text) {
  const joined = /^(\||[*-] )/m.test(text) ? text : text.replace(/\n/g, " ");
  return joined.replace(/ ?\(\[decision\]\([^)]*\)\)/g, "").replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\*\*([^*]+)\*\*/g, "$1");
}
