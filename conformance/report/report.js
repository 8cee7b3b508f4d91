// Shows the cases and rules of DATA, with the functions of web/page/dom.js. A row is built when its list is opened, because a run has
// more than 10,000 cases.
const { releases, verdicts, texts, groups, rules, again } = DATA;
const chapters = Array.from(document.querySelectorAll("details.chapter"), one => one.id);
const cases = DATA.cases.map(([id, verdict, group, reason]) => {
  const [of, since, until, why, origin] = groups[group];
  return { id, verdict: verdicts[verdict], rules: of.map(at => rules[at][0]), since, until, why, origin, reason };
});
const byId = new Map(cases.map(one => [one.id, one]));
/** The failures, whose entries are in the page itself. */
const failures = new Set(Array.from(document.querySelectorAll("details.failure"), one => one.id));
const byRule = new Map(rules.map(([id]) => [id, []]));
for (const one of cases) for (const id of one.rules) byRule.get(id).push(one);

const tag = (text, kind) => element("span", { class: `tag ${kind}` }, text);
const isBad = one => !["pass", "unsupported", "skipped"].includes(one.verdict);
const kindOf = one => one.verdict == "pass" ? "pass" : isBad(one) ? "bad" : "faint";
const prefixOf = id => id.split("-")[0];
const link = id => element("a", { href: `#${id}` }, id);
const quote = word => /^[\w./:,=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** Builds the content of `details` when it is first opened. */
function lazy(details, build) {
  details.build = () => { if (build) details.append(build()); build = null; };
  details.addEventListener("toggle", () => details.open && details.build());
  return details;
}

function caseRow(one) {
  // It is among the failures above.
  if (failures.has(one.id)) return element("p", {}, tag(one.verdict, "bad"), " ", link(one.id));
  const row = element("details", { class: "case" }, element("summary", {}, tag(one.verdict, kindOf(one)), ` ${one.id}`));
  return lazy(row, () => {
    const list = element("dl", {});
    const add = (name, ...content) => list.append(element("dt", {}, name), element("dd", {}, ...content));
    for (const id of one.rules) add("rule", link(id), " ", ...sentence(rules.find(rule => rule[0] == id)[1]));
    add("releases", `${releases[one.since]} to ${releases[one.until]}`);
    if (one.reason != null) add("reason", texts[one.reason]);
    add("why", ...sentence(texts[one.why]));
    add("origin", ...sentence(texts[one.origin]));
    return element("div", {}, list, element("pre", {}, `${again} --case ${quote(one.id)}`));
  });
}

const rowsOf = list => element("div", { class: "rows" }, ...list.map(caseRow));

/** Builds the rows of a chapter, which are the ones that an address can name. */
function chapterRows(chapter) {
  const list = cases.filter(one => one.id.startsWith(`${chapter}/`) && !failures.has(one.id));
  const shown = rowsOf(list);
  list.forEach((one, at) => shown.children[at].id = one.id);
  return shown;
}

function ruleRow([id, title, norm]) {
  const list = byRule.get(id).toSorted((a, b) => isBad(b) - isBad(a));
  const bad = list.filter(isBad).length;
  const passes = list.filter(one => one.verdict == "pass").length;
  const [text, kind] = bad ? [`${bad} of ${list.length} fail`, "bad"] : passes ? [`${passes} pass`, "pass"] : ["not judged", "faint"];
  const row = element("details", { class: "rule", id }, element("summary", {}, tag(text, kind), ` ${id} `, ...sentence(title)));
  return lazy(row, () => {
    const links = element("p", {});
    list.forEach((one, at) => links.append(at ? ", " : "", link(one.id), one.verdict == "pass" ? "" : ` (${one.verdict})`));
    return element("div", {}, element("p", {}, ...sentence(norm)), links);
  });
}

for (const chapter of chapters) lazy(document.getElementById(chapter), () => chapterRows(chapter));
// In the order of the chapters, each of which has ids with one prefix.
const prefixes = [...new Set(chapters.flatMap(chapter => cases.filter(one => one.id.startsWith(`${chapter}/`)).flatMap(one => one.rules.map(prefixOf))))];
const sorted = rules.toSorted(([a], [b]) => prefixes.indexOf(prefixOf(a)) - prefixes.indexOf(prefixOf(b)) || a.localeCompare(b, "en", { numeric: true }));
lazy(document.getElementById("rules"), () => element("div", { class: "rows" }, ...sorted.map(ruleRow)));

const form = document.querySelector("form.filter");
const [words, verdict, release] = form.elements;
for (const name of verdicts) if (cases.some(one => one.verdict == name)) verdict.append(element("option", {}, name));
releases.forEach((name, at) => release.append(element("option", { value: at }, `release ${name}`)));
form.hidden = false;
form.addEventListener("submit", event => event.preventDefault());
const [found, whole, count] = ["found", "whole", "count"].map(id => document.getElementById(id));
const MOST = 500;
function filter() {
  const text = words.value.trim().toLowerCase();
  const isFiltered = Boolean(text || verdict.value || release.value);
  whole.hidden = isFiltered;
  count.hidden = !isFiltered;
  found.replaceChildren();
  const matching = cases.filter(one =>
    (!text || one.id.toLowerCase().includes(text) || one.rules.some(id => id.toLowerCase().includes(text)))
    && (!verdict.value || one.verdict == verdict.value)
    && (!release.value || (one.since <= release.value && release.value <= one.until)));
  // The failures are filtered where they are.
  const named = new Set(matching.map(one => one.id));
  for (const section of document.querySelectorAll("section")) {
    for (const one of section.querySelectorAll("details.failure")) one.hidden = !named.has(one.id);
    section.hidden = !section.querySelector("details.failure:not([hidden])");
  }
  if (!isFiltered) return;
  const others = matching.filter(one => !failures.has(one.id));
  const more = others.length > MOST ? `; of ${others.length} that do not fail, the first ${MOST} are shown` : "";
  count.textContent = `${matching.length} of ${cases.length} cases, ${matching.filter(isBad).length} of them fail${more}`;
  found.append(rowsOf(others.slice(0, MOST)));
}
form.addEventListener("input", filter);

/** Opens the case or rule that the address names. */
function openNamed() {
  const id = decodeURIComponent(location.hash.slice(1));
  const list = byRule.has(id) ? "#rules" : byId.has(id) && !failures.has(id) && `#${id.split("/")[0]}`;
  if (list) {
    const details = document.querySelector(list);
    details.open = true;
    details.build();
  }
  const one = document.getElementById(id);
  if (!one) return;
  // The filter may hide it.
  if (one.closest("[hidden]")) { form.reset(); filter(); }
  if (one.tagName == "DETAILS") { one.open = true; one.build?.(); }
  one.scrollIntoView();
}
addEventListener("hashchange", openNamed);
// On paper, every failure is open.
let folded = [];
addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details.failure:not([open])")]; for (const one of folded) one.open = true; });
addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
openNamed();
