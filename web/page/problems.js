// Broken rules and oddities, each with its byte and the text of its rule.
import { element, hex, sentence } from "./dom.js";
import { unitOf } from "./model.js";
import { ruleText } from "./rules.js";

/**
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} go shows a byte on the map
 */
export function problemsView(model, go) {
  const { violations = [], findings = [] } = model.verify ?? {};
  const list = (/** @type {any[]} */ problems, /** @type {string} */ look) => problems.map((problem, index) => {
    const at = problem.offset;
    return element("article", { class: `note ${look}` },
      element("div", {}, sentence(problem.message), " ", element("strong", {}, `[${problem.rule}]`)),
      element("div", { class: "row" },
        typeof at === "number" ? element("button", { type: "button", onclick: () => go(unitOf(model, problem), at) }, `Show byte ${hex(at)}`) : null,
        element("span", { class: "faint" }, [problem.field ? `field ${problem.field}` : "", problem.kind ?? "", problem.in !== model.name ? problem.in ?? "" : ""].filter(Boolean).join(", "))),
      ruleText(model, problem.rule, index === 0));
  });
  return element("div", {},
    violations.length === 0 ? element("div", { class: "note good" }, element("strong", {}, "✓ No rule is broken.")) : null,
    violations.length > 0 ? element("h2", {}, "Broken rules") : null, list(violations, "bad"),
    findings.length > 0 ? element("h2", {}, "Oddities that readers tolerate") : null, list(findings, "warn"),
    model.verify?.omitted ? element("p", { class: "faint" }, `${model.verify.omitted} more are not listed.`) : null);
}
