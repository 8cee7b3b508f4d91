// The page of an opened file: one line for each answer, and a tab for each view.
import { bytesView } from "./bytes.js";
import { element, hex, sentence, size } from "./dom.js";
import { drawnModels, graphView } from "./graph.js";
import { modules, unitOf } from "./model.js";
import { modulesView } from "./modules.js";
import { problemsView } from "./problems.js";
import { connectionView } from "./connection.js";
import { outcomeOf, releasesWith, releasesView } from "./releases.js";
import { tensorsOf, tensorsView } from "./tensors.js";

/**
 * @typedef {{id: string, title: string, badge?: string, bad?: boolean, view: () => Node}} Tab
 */

/**
 * Shows a model. A view is created when its tab is opened.
 * @param {any} into @param {import("./model.js").Model} model
 */
export async function showModel(into, model) {
  const drawings = await drawnModels(model);
  const bytes = bytesView(model, remember);
  const go = (/** @type {number} */ unit, /** @type {number} */ offset) => { open("bytes"); bytes.show(unit, offset, true); };
  const problems = (model.verify?.violations ?? []).length + (model.verify?.findings ?? []).length;
  const held = modules(model);
  const tensors = tensorsOf(model);
  const code = held.filter(({ module }) => module.vm?.code);
  /** @type {Tab[]} */
  const tabs = [];
  if (model.connection) tabs.push({ id: "messages", title: "Messages", view: () => connectionView(model.connection, go) });
  tabs.push({ id: "bytes", title: "Bytes", view: () => bytes.node });
  if (model.explain?.length) tabs.push({ id: "releases", title: "Releases", view: () => releasesView(model) });
  if (model.verify) tabs.push({ id: "rules", title: "Rules", badge: String(problems), bad: (model.verify.violations ?? []).length > 0, view: () => problemsView(model, go) });
  if (held.length > 0) tabs.push({ id: "modules", title: "Modules", badge: String(held.length), view: () => modulesView(model, go) });
  if (drawings.length > 0) tabs.push({ id: "graph", title: "Graph", view: () => graphView(drawings) });
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
  const state = new URLSearchParams(location.hash.slice(1));

  into.replaceChildren(
    element("header", { class: "head" }, element("h1", { tabindex: -1, title: model.name }, model.name.replace(/^.*[/\\](?=.)/, "")), element("p", { class: "faint", style: "margin:.2rem 0" }, summaryOf(model))),
    element("div", { class: "answers" }, answersOf(model, go, (id) => { open(id); buttons.get(id)?.focus(); })), list, ...panels.values());
  const wanted = state.get("tab") ?? "";
  const broken = model.verify?.violations?.find((/** @type {any} */ each) => typeof each.offset === "number");
  const first = buttons.has(wanted) ? wanted : state.has("offset") ? "bytes" : tabs[0].id;
  open(first);
  const offset = Number(state.get("offset") ?? NaN);
  if (Number.isInteger(offset)) bytes.show(Number(state.get("unit") ?? 0) || 0, offset);
  else if (broken) bytes.show(unitOf(model, broken), broken.offset);
  else bytes.show(0, 0);

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

  function write() {
    history.replaceState(null, "", `#${state}`);
  }
}

/** @param {import("./model.js").Model} model */
function summaryOf(model) {
  const parts = model.inspect?.parts ?? [];
  const machine = parts[0]?.machine?.architecture;
  return [FORMS[model.inspect?.form] ?? model.inspect?.form ?? "file", size(model.size), machine ? `for ${machine}` : "", parts.length > 1 ? `${parts.length} parts` : ""].filter(Boolean).join(", ");
}

/** Names of file formats for people, by the names in the inspection. */
const FORMS = /** @type {Record<string, string>} */ ({
  "elf-shared": "ELF shared object", "elf-executable": "ELF executable", "elf-object": "ELF object file", "macho-shared": "Mach-O library", "macho-executable": "Mach-O executable",
  "macho-object": "Mach-O object file", "macho-fat": "Mach-O universal file", "pe-shared": "DLL", "pe-executable": "Windows executable", "coff-object": "COFF object file",
  "wasm-object": "WebAssembly object file", "wasm-module": "WebAssembly module", archive: "ar archive", tar: "tar archive", "gzip-tar": "compressed tar archive", "c-text": "C source",
  "raw-blob": "library binary", params: "parameter file", tensor: "tensor file", "graph-json": "graph JSON", "object-json": "saved objects of 0.20 and before", "ffi-json": "saved objects of 0.21 and later",
  "tensor-cache": "index of a tensor cache", "relax-vm": "Relax VM executable", "relay-vm": "Relay VM code", stackvm: "StackVM module", "module-file": "device module", "rpc": "RPC connection", unknown: "file of an unknown form",
});

/**
 * Shows the answers to the two main questions: is the file valid, and which releases load it.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} go @param {(tab: string) => void} open
 */
function answersOf(model, go, open) {
  const out = [];
  if (model.refused) out.push(element("div", { class: "note warn" }, element("strong", {}, "Nothing of TVM"), sentence(model.refused)));
  const violations = model.verify?.violations ?? [];
  const more = (/** @type {string} */ text, /** @type {string} */ tab) => element("button", { type: "button", class: "link", onclick: () => open(tab) }, text);
  if (model.verify) {
    const [first] = violations;
    // Such a file is neither good nor broken: the grammar of the kind is not known.
    const unknown = model.verify.findings?.find((/** @type {any} */ each) => each.rule === "BLOB-06");
    out.push(!first && unknown
      ? element("div", { class: "note warn" }, element("strong", {}, "? Has a module of an unknown kind"), sentence(unknown.message), element("div", {}, more("rule", "rules")))
      : first
      ? element("div", { class: "note bad" }, element("strong", {}, `✗ Breaks ${violations.length === 1 ? first.rule : `${violations.length} rules`}`), sentence(first.message),
        element("div", { class: "row" }, typeof first.offset === "number" ? element("button", { type: "button", onclick: () => go(unitOf(model, first), first.offset) }, `Show byte ${hex(first.offset)}`) : null, more("rule", "rules")))
      : element("div", { class: "note good" }, element("strong", {}, "✓ Breaks no rule"), model.verify.findings?.length ? more(`${model.verify.findings.length} oddities that readers tolerate`, "rules") : "Every byte is where the specification wants it."));
  }
  if (model.explain?.length) {
    const [account] = model.explain;
    const last = model.releases[model.releases.length - 1];
    const [ranges, silent] = ["loads", "silent"].map((outcome) => releasesWith(model, account, outcome));
    const verdict = outcomeOf(account, last);
    const [loads, asItIs] = [verdict?.outcome === "loads", account.as_it_is?.loadable !== false];
    const title = ranges === "" ? `✗ No release loads it${silent ? `; ${silent} open it and are silently wrong` : ""}` : asItIs ? `✓ Loads in tvm ${ranges}` : `✓ A library made of it loads in tvm ${ranges}`;
    out.push(element("div", { class: `note ${ranges === "" ? "bad" : loads && asItIs ? "good" : "warn"}` },
      element("strong", {}, title),
      asItIs ? null : element("div", {}, "Not loadable as it is: ", sentence(account.as_it_is.why)),
      loads ? null : element("div", {}, `Not in ${last}: `, sentence(verdict?.why)),
      more("every release, with its reason", "releases"),
      model.explain.length > 1 ? element("div", { class: "faint" }, `This is about the first of ${model.explain.length} libraries.`) : null));
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
