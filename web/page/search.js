// The search of rules, by id or by words, in a dialog.
import { counted, element } from "./dom.js";
import { ruleText } from "./rules.js";

/** Rules that are listed. */
const MOST_RULES = 40;

/**
 * Finds rules: the one with this id, or all whose id, title and text contain each word. Words in the title come first.
 * @param {Record<string, import("./model.js").RuleText>} rules @param {string} text
 * @returns {string[]}
 */
function rulesWith(rules, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (/** @type {string} */ place) => words.every((word) => place.toLowerCase().includes(word));
  const all = Object.entries(rules);
  const inTitle = all.filter(([id, rule]) => has(`${id} ${rule.title}`));
  const inText = all.filter((each) => !inTitle.includes(each) && has(`${each[0]} ${each[1].title} ${each[1].text}`));
  return [...inTitle, ...inText].map(([id]) => id);
}

/**
 * Opens the dialog. `load` reads the rules and the results.
 * @param {() => Promise<Pick<import("./model.js").Model, "rules" | "results">>} load
 */
export async function openSearch(load) {
  const list = element("div", { class: "found" });
  const count = element("p", { class: "faint", role: "status" }, "Reading the rules");
  const input = element("input", { type: "text", role: "searchbox", placeholder: "BLOB-07, or words such as import tree", "aria-label": "search for a rule", autocomplete: "off", spellcheck: "false" });
  const dialog = element("dialog", { class: "search", "aria-label": "rules", onclose: () => dialog.remove(), onclick: (/** @type {MouseEvent} */ event) => { if (event.target === dialog) dialog.close(); } },
    element("div", {}, element("form", { method: "dialog", class: "row" }, input, element("button", {}, "Close")), count, list));
  // Enter opens the first rule instead of closing the dialog.
  input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = list.querySelector("details");
    if (first) { first.open = true; first.querySelector("summary").focus(); }
  });
  document.body.append(dialog);
  dialog.showModal();
  const known = await load();
  const show = () => {
    const found = rulesWith(known.rules, input.value);
    const shown = found.slice(0, MOST_RULES);
    count.textContent = `${counted(found.length, "rule")}${shown.length < found.length ? `, of which ${shown.length} are listed` : ""}`;
    list.replaceChildren(...shown.map((id) => ruleText(known, id, found.length === 1)));
  };
  input.addEventListener("input", show);
  show();
}
