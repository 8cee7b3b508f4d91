// The page of an opened file: one line for each answer, and a tab for each view.
import { bytesView } from "./bytes.js";
import { counted, element, hex, sentence, size } from "./dom.js";
import { drawnModels, graphView } from "./graph.js";
import { formTitle, modules, unitOf } from "./model.js";
import { modulesView } from "./modules.js";
import { hasParts, partsView } from "./parts.js";
import { problemsView, verdictOf } from "./problems.js";
import { connectionView } from "./connection.js";
import { releasesWith, releasesView, worstOf } from "./releases.js";
import { tensorsOf, tensorsView } from "./tensors.js";

/**
 * @typedef {{id: string, title: string, badge?: string, bad?: boolean, view: () => Node}} Tab
 */

/**
 * Shows a model. A view is created when its tab is opened. Returns a function that shows the place that the address names.
 * @param {any} into @param {import("./model.js").Model} model @param {AbortSignal} signal ends the listeners of the views, so that the
 * model can be freed
 */
export function showModel(into, model, signal) {
  const bytes = bytesView(model, remember, signal);
  const go = (/** @type {number} */ unit, /** @type {number} */ offset) => { open("bytes"); bytes.show(unit, offset, true); };
  const { violations = [], findings = [], unread = [] } = model.verify ?? {};
  const problems = violations.length + findings.length + unread.length;
  const held = modules(model);
  const tensors = tensorsOf(model);
  const code = held.filter(({ module }) => module.vm?.code);
  /** @type {Tab[]} */
  const tabs = [];
  if (model.connection) tabs.push({ id: "messages", title: "Messages", view: () => connectionView(model.connection, go) });
  tabs.push({ id: "bytes", title: "Bytes", view: () => bytes.node });
  if (model.explain?.length) tabs.push({ id: "releases", title: "Releases", view: () => releasesView(model) });
  if (model.verify) tabs.push({ id: "rules", title: "Rules", badge: String(problems), bad: violations.length > 0, view: () => problemsView(model, go) });
  if (hasParts(model)) tabs.push({ id: "parts", title: "Content", view: () => partsView(model) });
  if (held.length > 0) tabs.push({ id: "modules", title: "Modules", badge: String(held.length), view: () => modulesView(model, go) });
  if (mayBeDrawn(model, code.length > 0)) tabs.push({ id: "graph", title: "Graph", view: () => drawnLater(model) });
  if (code.length > 0) tabs.push({ id: "code", title: "VM code", view: () => element("div", {}, code.map(({ module }) => element("section", {}, element("h2", {}, `Module ${module.index ?? ""} ${module.kind}`), element("pre", { tabindex: 0 }, module.vm.code.join("\n"))))) });
  if (tensors.length > 0) tabs.push({ id: "tensors", title: "Tensors", badge: String(tensors.length), view: () => tensorsView(model, tensors, go) });
  tabs.push({ id: "json", title: "JSON", view: () => jsonView(model) });

  const panels = new Map(tabs.map((tab) => [tab.id, element("div", { role: "tabpanel", id: `panel-${tab.id}`, "aria-labelledby": `tab-${tab.id}`, hidden: true })]));
  const buttons = new Map(tabs.map((tab) => [tab.id, element("button", {
    role: "tab", id: `tab-${tab.id}`, "aria-controls": `panel-${tab.id}`, "aria-selected": "false", tabindex: -1, type: "button", onclick: () => open(tab.id),
  }, tab.title, tab.badge && tab.badge !== "0" ? element("span", { class: tab.bad ? "badge bad" : "badge" }, tab.badge) : null)]));
  const list = element("div", { role: "tablist", "aria-label": "views", onkeydown: (/** @type {KeyboardEvent} */ event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.id === state.get("tab"));
    const next = tabs[(at + by + tabs.length) % tabs.length];
    open(next.id);
    buttons.get(next.id).focus();
  } }, [...buttons.values()]);
  let state = new URLSearchParams();
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));

  into.replaceChildren(...headOf(model, go, (id) => { open(id); buttons.get(id)?.focus(); }), list, ...panels.values());
  showPlace();
  return showPlace;

  /** Shows the tab and the byte of the address. By default the first tab, and the byte that breaks a rule. */
  function showPlace() {
    state = new URLSearchParams(location.hash.slice(1));
    state.set("file", model.name);
    const wanted = state.get("tab") ?? "";
    const broken = violations.find((/** @type {any} */ each) => typeof each.offset === "number" && unitOf(model, each) >= 0);
    const offset = state.has("offset") ? Number(state.get("offset")) : NaN;
    open(buttons.has(wanted) ? wanted : state.has("offset") ? "bytes" : tabs[0].id);
    if (Number.isInteger(offset)) bytes.show(Number(state.get("unit") ?? 0) || 0, offset);
    else if (broken) bytes.show(unitOf(model, broken), broken.offset);
    else bytes.show(0, 0);
  }

  /** @param {string} id */
  function open(id) {
    for (const tab of tabs) {
      const chosen = tab.id === id;
      const panel = panels.get(tab.id);
      const button = buttons.get(tab.id);
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      panel.hidden = !chosen;
      if (chosen && panel.childElementCount === 0) panel.append(tab.view());
      if (chosen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    state.set("tab", id);
    write();
  }

  /** Writes a pinned byte into the address. @param {number} unit @param {number} at */
  function remember(unit, at) {
    state.set("offset", hex(at));
    if (unit > 0) state.set("unit", String(unit));
    else state.delete("unit");
    write();
  }

  /** Writes the address after a pause, because browsers limit how often a page may do so. */
  function write() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      try { history.replaceState(null, "", `#${state}`); } catch { /* The limit is reached. The next write has the newest place. */ }
    }, 200);
  }
}

/** Returns whether the file has a graph, or code with calls. The text of a graph is read when its tab is opened. @param {import("./model.js").Model} model @param {boolean} hasCode */
function mayBeDrawn(model, hasCode) {
  return hasCode || model.inspect?.form === "graph-json" || model.units.some((unit) => unit.fields.some((field) => /graph_json$/.test(field.field) && field.end - field.start > 8));
}

/** @param {import("./model.js").Model} model */
function drawnLater(model) {
  const view = element("div", {}, element("p", { class: "faint", role: "status" }, "Reading the graph"));
  drawnModels(model).then((drawings) => view.replaceChildren(drawings.length > 0 ? graphView(drawings) : element("p", { class: "faint" }, "The file has no graph that can be drawn.")),
    (error) => view.replaceChildren(element("p", { class: "faint" }, String(error.message))));
  return view;
}

/**
 * Creates the name of the file and the answers. Some answers may still be missing while the file is examined.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} [go] @param {(tab: string) => void} [open]
 */
export function headOf(model, go, open) {
  return [
    element("header", { class: "head" }, element("h1", { tabindex: -1, title: model.name }, model.name.replace(/^.*[/\\](?=.)/, "")), element("p", { class: "faint", style: "margin:.2rem 0" }, summaryOf(model))),
    element("div", { class: "answers" }, answersOf(model, go, open)),
  ];
}

/** @param {import("./model.js").Model} model */
function summaryOf(model) {
  const parts = model.inspect?.parts ?? [];
  const machine = parts[0]?.machine?.architecture;
  return [formTitle(model.inspect?.form ?? "file"), size(model.size), machine ? `for ${machine}` : "", parts.length > 1 ? `${parts.length} parts` : ""].filter(Boolean).join(", ");
}

/**
 * Shows the answers to the two main questions: is the file valid, and which releases load it. Buttons need `go` and `open`.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} [go] @param {(tab: string) => void} [open]
 */
function answersOf(model, go, open) {
  const out = [];
  const more = (/** @type {string} */ text, /** @type {string} */ tab) => (open ? element("button", { type: "button", class: "link", onclick: () => open(tab) }, text) : null);
  if (model.refused) out.push(element("div", { class: "note warn" }, element("strong", {}, "Not a file that TVM wrote"), sentence(model.refused)));
  for (const message of model.failed ?? []) out.push(element("div", { class: "note warn", role: "alert" }, element("strong", {}, "An answer is missing"), sentence(message)));
  if (model.verify) {
    const { look, title, text, problem } = verdictOf(model);
    const at = problem?.offset;
    const unit = problem && model.units.length > 0 ? unitOf(model, problem) : -1;
    out.push(element("div", { class: `note ${look}` }, element("strong", {}, title), element("div", {}, sentence(text)),
      element("div", { class: "row" }, go && typeof at === "number" && unit >= 0 ? element("button", { type: "button", onclick: () => go(unit, at) }, `Show byte ${hex(at)}`) : null,
        problem || model.verify.findings?.length ? more(problem ? "rule" : "all of them", "rules") : null)));
  }
  const accounts = /** @type {any[]} */ (model.explain ?? []);
  if (accounts.length > 0) {
    const last = model.releases[model.releases.length - 1];
    const [ranges, silent] = ["loads", "silent"].map((outcome) => releasesWith(model, accounts, outcome));
    const newest = worstOf(accounts, last);
    const refused = accounts.find((account) => account.as_it_is?.loadable === false);
    const loads = newest?.outcome === "loads";
    const them = accounts.length > 1 ? `all ${accounts.length} libraries` : "it";
    const title = ranges === "" ? `✗ No release loads ${them}${silent ? `; ${silent} open it and are silently wrong` : ""}`
      : refused ? `✓ Loads in tvm ${ranges}, but not as it is` : `✓ Loads in tvm ${ranges}`;
    out.push(element("div", { class: `note ${ranges === "" ? "bad" : loads && !refused ? "good" : "warn"}` },
      element("strong", {}, title),
      refused ? element("div", {}, "Not loadable as it is: ", sentence(refused.as_it_is.why)) : null,
      loads ? null : element("div", {}, `Not in ${last}: `, sentence(newest?.why)),
      accounts.length > 1 ? element("div", { class: "faint" }, `The file has ${accounts.length} libraries. The verdict counts the releases that load each of them.`) : null,
      more("every release, with its reason", "releases")));
  }
  const limited = model.units.filter((unit) => unit.left_out_from === 0);
  if (limited.length > 0) {
    out.push(element("div", { class: "note" }, element("strong", {}, "Fields are left out"), sentence(`${counted(limited.length, "part")} of the file ${limited.length === 1 ? "is" : "are"} too large for this page, which has neither fields nor tensors nor graphs of ${limited.length === 1 ? "it" : "them"}. \`tvmspec dump\` lists the fields.`)));
  }
  return out;
}

/** Shows the answers as the command line prints them. @param {import("./model.js").Model} model */
function jsonView(model) {
  const answers = Object.entries({ "inspect --code": model.inspect, verify: model.verify, "explain --elsewhere": model.explain, "rpc-decode": model.connection }).filter(([, value]) => value);
  return element("div", {}, answers.map(([command, value]) => {
    const text = JSON.stringify(value, null, 2);
    return element("details", {}, element("summary", {}, element("code", {}, `tvmspec ${command} --json`), ` ${size(text.length)}`),
      element("pre", { tabindex: 0, class: "source" }, text.length > 2_000_000 ? `${text.slice(0, 2_000_000)}\n…` : text));
  }));
}
