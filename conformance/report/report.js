// Shows the cases and rules of DATA, with the functions of web/page/dom.js. A row is built when its list is opened, because a run has
// more than 10,000 cases.
const packed = Uint8Array.from(atob(DATA), letter => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
const data = await new Response(unpacked).json();
const { releases, verdicts, texts, groups, again } = data;
const rules = new Map(data.rules.map(([id, title, norm]) => [id, { id, title, norm, cases: [] }]));
const ruleIds = [...rules.keys()];
const cases = data.cases.map(([id, verdict, group, reason, kind]) => {
  const [of, since, until, why, origin] = groups[group];
  const one = { id, verdict: verdicts[verdict], isNew: kind == 1, isKnown: kind == 2, since, until, why, origin, reason: texts[reason], rules: of.map(at => rules.get(ruleIds[at])) };
  one.words = [id, ...one.rules.flatMap(rule => [rule.id, rule.title])].join(" ").toLowerCase();
  for (const rule of one.rules) rule.cases.push(one);
  return one;
});
const byId = new Map(cases.map(one => [one.id, one]));

const fails = one => one.isNew || one.isKnown;
const kindOf = one => one.isNew ? "bad" : one.isKnown ? "other" : one.verdict == "pass" ? "pass" : "faint";
const tag = (text, kind) => element("b", { class: `tag ${kind}` }, text);
const link = (id, text = id) => element("a", { href: `#${id}` }, text);
const quote = word => /^[\w./:,=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
let isPrinting = false;

/** Builds the content of `details` when it is first opened. */
function buildLater(details, build) {
  details.build = () => { build?.(details); build = null; };
  details.addEventListener("toggle", () => details.open && !isPrinting && details.build());
}

function caseRow(one) {
  const row = element("details", { class: "case" }, element("summary", {}, tag(one.verdict, kindOf(one)), ` ${one.id} `, fails(one) ? element("span", { class: "reason" }, one.reason) : null));
  buildLater(row, () => {
    const list = element("dl", {});
    const add = (name, ...content) => list.append(element("dt", {}, name), element("dd", {}, ...content));
    for (const rule of one.rules) add(link(rule.id), ...sentence(rule.title));
    if (one.reason) add("reason", one.reason);
    add("why", ...sentence(texts[one.why]));
    add("origin", ...sentence(texts[one.origin]));
    add("releases", `${releases[one.since]} to ${releases[one.until]}`);
    add("link", link(one.id, `#${one.id}`));
    row.append(list, element("pre", {}, `${again} --case ${quote(one.id)}`));
  });
  return row;
}

/** Creates the rows of a list that addresses lead to. */
function namedRows(list) {
  const rows = element("div", { class: "rows" }, ...list.map(caseRow));
  list.forEach((one, at) => { rows.children[at].id = one.id; });
  return rows;
}

function ruleRow({ id, title, norm, cases }) {
  const list = cases.toSorted((a, b) => fails(b) - fails(a));
  const bad = list.filter(fails).length;
  const passes = list.filter(one => one.verdict == "pass").length;
  const [text, kind] = bad ? [`${bad} of ${list.length} fail`, "bad"] : passes ? [`${passes} pass`, "pass"] : ["not judged", "faint"];
  const row = element("details", { class: "rule", id }, element("summary", {}, tag(text, kind), ` ${id} `, ...sentence(title)));
  buildLater(row, () => {
    const links = element("p", {}, element("a", { href: `#words=${id}` }, "show these cases"), ": ");
    list.forEach((one, at) => links.append(at ? ", " : "", link(one.id), one.verdict == "pass" ? "" : ` (${one.verdict})`));
    row.append(element("p", {}, ...sentence(norm)), links);
  });
  return row;
}

/** Fills a list whose place in the page states that it needs this script. */
function fillLater(id, build) {
  const details = document.getElementById(id);
  buildLater(details, () => details.querySelector(".unbuilt").replaceWith(build()));
}
const chapterOf = id => id.split("/")[0];
for (const { id } of document.querySelectorAll("details.chapter")) {
  fillLater(id, () => namedRows(cases.filter(one => chapterOf(one.id) == id && !fails(one))));
}
// In the order of the chapters, each of which has ids with one prefix.
const prefixOf = id => id.split("-")[0];
const prefixes = [...new Set(ruleIds.map(prefixOf))];
ruleIds.sort((a, b) => prefixes.indexOf(prefixOf(a)) - prefixes.indexOf(prefixOf(b)) || a.localeCompare(b, "en", { numeric: true }));
fillLater("rules", () => element("div", { class: "rows" }, ...ruleIds.map(id => ruleRow(rules.get(id)))));
// From here on, the address of a rule leads to its row.
for (const explained of document.querySelectorAll("dt[id]")) explained.removeAttribute("id");

/** The failures that are described in the page, each with its entry. */
const described = new Map(Array.from(document.querySelectorAll("details.failure"), entry => [entry.id, entry]));
/** The other failures, each with its list, which states the reasons. */
const listed = new Map();
for (const list of document.querySelectorAll("details.more")) {
  for (const item of list.querySelectorAll("li")) {
    byId.get(item.textContent).reason = item.parentElement.previousElementSibling.querySelector("span").textContent;
    listed.set(item.textContent, list);
  }
  buildLater(list, () => {
    for (const items of list.querySelectorAll("ul")) items.replaceWith(namedRows(Array.from(items.children, item => byId.get(item.textContent))));
  });
  list.matching = element("div", { class: "rows" });
  list.after(list.matching);
}
/** The headings of the failures, each with the ids below it. */
const sections = Array.from(document.querySelectorAll("section:not(#whole)"), section => {
  const ids = [...section.querySelectorAll("details.failure")].map(entry => entry.id);
  const items = [...section.querySelectorAll("li")].map(item => item.textContent);
  return { section, count: section.querySelector("h2 span, h3 span"), ids: ids.concat(items) };
});

const form = document.querySelector("form.filter");
const { words, verdict, release } = form.elements;
const clear = form.querySelector("button");
const fields = [words, verdict, release];
/** The choices of the field of verdicts, with their conditions. */
const choices = new Map([["failures", one => one.isNew], ["known failures", one => one.isKnown]]);
for (const name of verdicts) choices.set(name, one => one.verdict == name);
for (const [name, holds] of choices) {
  const count = cases.filter(holds).length;
  if (count) verdict.append(element("option", { value: name }, `${name} (${count})`));
}
for (const name of releases) release.append(element("option", { value: name }, `release ${name}`));
const [found, whole, count] = ["found", "whole", "count"].map(id => document.getElementById(id));
/** The number of rows that a filter shows of each of two kinds: failures without a description, and cases that do not fail. */
const MOST = 500;

function matchingCases() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = choices.get(verdict.value) ?? (() => true);
  const at = releases.indexOf(release.value);
  return cases.filter(one => holds(one) && (at < 0 || one.since <= at && at <= one.until) && wanted.every(word => one.words.includes(word)));
}

/** Shows the cases that match the fields. Failures are shown where they are. */
function filter() {
  const isFiltered = fields.some(field => field.value.trim());
  const matching = isFiltered ? matchingCases() : cases;
  const ids = new Set(matching.map(one => one.id));
  for (const [id, entry] of described) entry.hidden = !ids.has(id);
  for (const { section, count, ids: all } of sections) {
    const left = all.filter(id => ids.has(id)).length;
    section.hidden = !left;
    count.textContent = left < all.length ? `${left} of ${all.length}` : left;
  }
  const failing = matching.filter(one => listed.has(one.id));
  const others = matching.filter(one => !fails(one));
  const shown = failing.slice(0, isFiltered ? MOST : 0);
  for (const list of new Set(listed.values())) {
    list.hidden = isFiltered;
    list.matching.replaceChildren(...shown.filter(one => listed.get(one.id) == list).map(caseRow));
  }
  found.replaceChildren(...others.slice(0, isFiltered ? MOST : 0).map(caseRow));
  whole.hidden = isFiltered;
  clear.hidden = !isFiltered;
  const left = Math.max(failing.length - MOST, 0) + Math.max(others.length - MOST, 0);
  const more = left ? `. ${left} of them are not shown` : "";
  count.textContent = isFiltered ? `${matching.length} of ${cases.length} cases, ${matching.filter(fails).length} of them fail${more}` : "";
}

/** Writes the filter into the address, so that a link to it can be passed on. */
function writeAddress() {
  const parts = new URLSearchParams();
  for (const field of fields) if (field.value.trim()) parts.set(field.name, field.value.trim());
  history.replaceState(null, "", `#${parts}`);
}

let wait;
const update = () => { clearTimeout(wait); filter(); writeAddress(); };
form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(update, 150); });
form.addEventListener("submit", event => { event.preventDefault(); update(); });
clear.addEventListener("click", () => { setFields(new URLSearchParams()); update(); words.focus(); });

function setFields(parts) {
  for (const field of fields) {
    field.value = parts.get(field.name) ?? "";
    // No option has this value.
    if (field.selectedIndex < 0) field.selectedIndex = 0;
  }
}

/** Applies the filter of the address, or opens the case or rule that it names. */
function followAddress() {
  const text = location.hash.slice(1);
  if (text.includes("=")) {
    setFields(new URLSearchParams(text));
    filter();
    return;
  }
  let id;
  try { id = decodeURIComponent(text); } catch { return; /* No case or rule has this address. */ }
  const list = listed.get(id) ?? document.getElementById(rules.has(id) ? "rules" : byId.has(id) && !described.has(id) ? chapterOf(id) : "");
  if (list) {
    list.open = true;
    list.build();
  }
  const one = document.getElementById(id);
  if (!one) return;
  if (one.closest("[hidden]")) {
    setFields(new URLSearchParams());
    filter();
  }
  if (one.tagName == "DETAILS") {
    one.open = true;
    one.build?.();
  }
  one.scrollIntoView();
}

// On paper, every failure is open. Rows are not built for it, because the lists are complete without them.
let folded = [];
addEventListener("beforeprint", () => {
  isPrinting = true;
  folded = [...document.querySelectorAll("details.failure:not([open]), details.more:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
  isPrinting = false;
});

for (const part of [form, document.getElementById("theme")]) part.hidden = false;
clear.hidden = true;
addEventListener("hashchange", followAddress);
followAddress();
