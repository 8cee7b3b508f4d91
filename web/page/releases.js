// The verdict of every release, with the reason on click.
import { element, sentence, table } from "./dom.js";

/** The mark, the word and the class of each outcome of `explain`. */
const OUTCOMES = /** @type {Record<string, [string, string, string]>} */ ({
  loads: ["✓", "loads", "loads"],
  fails: ["✗", "fails", "fails"],
  silent: ["!", "silently wrong", "other"],
  unknown: ["?", "unknown", "other"],
});

/**
 * Returns the outcome of a release in an account.
 * @param {any} account @param {string} release
 */
function outcomeOf(account, release) {
  return account.loads.find((/** @type {any} */ load) => contains(load.releases, release)) ?? null;
}

/** Returns whether a range such as `0.7..0.20`, `..0.6` or `0.22..` contains a release. @param {string} range @param {string} release */
function contains(range, release) {
  const minor = (/** @type {string} */ text) => Number(text.split(".")[1]);
  const [since, until] = range.includes("..") ? range.split("..") : [range, range];
  return (!since || minor(since) <= minor(release)) && (!until || minor(release) <= minor(until));
}

/** The outcomes from the worst to the best. A file is as good as the worst of its libraries. */
const WORST = ["fails", "unknown", "silent", "loads"];

/**
 * Returns the worst outcome of a release in several accounts.
 * @param {any[]} accounts @param {string} release
 */
export function worstOf(accounts, release) {
  const rank = (/** @type {any} */ load) => WORST.indexOf(load?.outcome ?? "unknown");
  return accounts.map((account) => outcomeOf(account, release)).sort((one, other) => rank(one) - rank(other))[0] ?? null;
}

/**
 * Lists the releases whose worst outcome is this one, in words: `0.7 to 0.12`.
 * @param {import("./model.js").Model} model @param {any[]} accounts @param {string} outcome
 */
export function releasesWith(model, accounts, outcome) {
  const good = model.releases.map((release) => worstOf(accounts, release)?.outcome === outcome);
  const ranges = [];
  for (let at = 0; at < good.length; at += 1) {
    if (!good[at]) continue;
    let last = at;
    while (good[last + 1]) last += 1;
    ranges.push(at === last ? model.releases[at] : `${model.releases[at]} to ${model.releases[last]}`);
    at = last;
  }
  return ranges.join(", ");
}

/** Returns a range such as `0.7..0.20` in words. @param {string} releases */
export function rangeText(releases) {
  const [since, until] = releases.split("..");
  if (since === until) return since;
  if (!since) return `up to ${until}`;
  return until ? `${since} to ${until}` : `${since} and later`;
}

/**
 * Creates the view: for each library binary a button for each release, the reason of the chosen one, and the table of all ranges.
 * @param {import("./model.js").Model} model
 */
export function releasesView(model) {
  const accounts = /** @type {any[]} */ (model.explain ?? []);
  return element("div", {}, accounts.map((account) => accountView(model, account, accounts.length > 1)));
}

/** @param {import("./model.js").Model} model @param {any} account @param {boolean} titled */
function accountView(model, account, titled) {
  const reason = element("div", { "aria-live": "polite" });
  const last = model.releases[model.releases.length - 1];
  const buttons = model.releases.map((release) => {
    const [mark, word, look] = OUTCOMES[outcomeOf(account, release)?.outcome ?? "unknown"];
    return element("button", { type: "button", class: look, "aria-pressed": "false", "data-release": release, onclick: () => choose(release) },
      `${mark} ${release}`, element("small", {}, word));
  });
  /** @param {string} release */
  function choose(release) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.release === release));
    const load = outcomeOf(account, release);
    const [mark, word, look] = OUTCOMES[load?.outcome ?? "unknown"];
    reason.replaceChildren(element("div", { class: `note ${look === "loads" ? "good" : look === "fails" ? "bad" : "warn"}` },
      element("strong", {}, `${mark} tvm ${release} ${word === "loads" ? "loads it" : word}: `), sentence(load?.why || "nothing is missing")));
  }
  const rows = account.loads.map((/** @type {any} */ load) => {
    const [mark, word, look] = OUTCOMES[load.outcome] ?? OUTCOMES.unknown;
    return [rangeText(load.releases), element("span", { class: look === "loads" ? "good" : look === "fails" ? "bad" : "warn" }, `${mark} ${word}`), sentence(load.why)];
  });
  const form = account.as_it_is ?? {};
  const needs = (account.needs ?? []).map((/** @type {any} */ need) => [
    need.module ?? "", need.kind, need.about, need.registered_by ?? "",
    [need.renamed, ...(need.code ?? []).map((/** @type {string[]} */ fact) => fact.join(": "))].filter(Boolean).join("; "),
  ]);
  const titles = ["module", "kind", "what it is", "provided by", "more"].slice(0, needs.some((/** @type {string[]} */ need) => need[4]) ? 5 : 4);
  choose(last);
  return element("section", {},
    titled ? element("h2", {}, account.title) : null,
    form.loadable === false ? element("div", { class: "note warn" }, element("strong", {}, "Not as it is: "), sentence(form.why)) : null,
    element("div", { class: "releases", role: "group", "aria-label": "releases of TVM" }, buttons),
    reason,
    element("h3", {}, "All reasons"), table(["releases", "verdict", "why"], rows),
    needs.length > 0 ? element("h3", {}, "What the modules need") : null,
    needs.length > 0 ? table(titles, needs.map((/** @type {string[]} */ need) => need.slice(0, titles.length))) : null,
    (account.remarks ?? []).map((/** @type {string} */ remark) => element("div", { class: "note" }, sentence(remark))),
    account.looked_at ? element("p", { class: "faint" }, `Judged: ${account.looked_at}.`) : null);
}
