// The verdict about the rules, and the list of broken rules and oddities, each with its byte and the text of its rule.
import { element, hex, sentence } from "./dom.js";
import { unitOf } from "./model.js";
import { ruleText } from "./rules.js";

/**
 * Returns the verdict in words. `look` is the class of its box; `problem` is the fault or the oddity that decides it.
 * @param {import("./model.js").Model} model
 * @returns {{look: string, title: string, text: string, problem?: any}}
 */
export function verdictOf(model) {
  const { violations = [], findings = [], unread = [], host_only: hostOnly, omitted_findings: omitted = 0 } = model.verify ?? {};
  const rules = new Set(violations.map((/** @type {any} */ each) => each.rule));
  const [first] = violations;
  if (first) return { look: "bad", title: `✗ Breaks ${rules.size === 1 ? first.rule : `${rules.size} rules`}`, text: first.message, problem: first };
  // BLOB-06: such a file is neither good nor broken, because the grammar of the kind is not known.
  if (unread.length > 0) return { look: "warn", title: "? Not read to the end", text: unread[0].message, problem: unread[0] };
  const guessed = findings.find((/** @type {any} */ each) => each.rule === "BLOB-06");
  if (guessed) return { look: "warn", title: "? Has a module of an unknown kind", text: guessed.message, problem: guessed };
  // MOD-01
  if (hostOnly) return { look: "", title: "Nothing to verify", text: "The file has no library binary: it imports no module, and its host code has no fields to read." };
  if (model.inspect?.cache) return { look: "warn", title: "✓ The index breaks no rule", text: "The page has not read the shards, which hold the tensors. `tvmspec verify` reads them too." };
  const odd = findings.length + omitted;
  return { look: "good", title: "✓ Breaks no rule", text: odd > 0 ? `${odd.toLocaleString("en")} ${odd === 1 ? "oddity" : "oddities"} that readers tolerate` : "Everything that was read is valid." };
}

/**
 * Creates the view.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} go shows a byte on the map
 */
export function problemsView(model, go) {
  const { violations = [], findings = [], unread = [], omitted_findings: omitted = 0 } = model.verify ?? {};
  const verdict = verdictOf(model);
  const list = (/** @type {any[]} */ problems, /** @type {string} */ look) => problems.map((problem, index) => {
    const [at, unit] = [problem.offset, unitOf(model, problem)];
    return element("article", { class: `note ${look}` },
      element("div", {}, sentence(problem.message), " ", element("strong", {}, `[${problem.rule}]`)),
      element("div", { class: "row" },
        typeof at === "number" && unit >= 0 ? element("button", { type: "button", onclick: () => go(unit, at) }, `Show byte ${hex(at)}`) : null,
        element("span", { class: "faint" }, [problem.field ? `field ${problem.field}` : "", problem.kind ?? "", problem.in !== model.name ? problem.in ?? "" : ""].filter(Boolean).join(", "))),
      ruleText(model, problem.rule, index === 0));
  });
  return element("div", {},
    violations.length === 0 ? element("div", { class: `note ${verdict.look}` }, element("strong", {}, `${verdict.title}. `), sentence(verdict.text)) : null,
    violations.length > 0 ? element("h2", {}, "Broken rules") : null, list(violations, "bad"),
    unread.length > 0 ? element("h2", {}, "Not read") : null, list(unread, "warn"),
    findings.length > 0 ? element("h2", {}, "Oddities that readers tolerate") : null, list(findings, "warn"),
    omitted > 0 ? element("p", { class: "faint" }, `${omitted.toLocaleString("en")} more are not listed.`) : null);
}
