// The search, and the table of results. book/build puts web/page/dom.js and theme.js before it.
const up = document.documentElement.dataset.up;

// The search: entries that have all words, those with a word in the title first.
const box = document.getElementById("search"), hits = document.getElementById("hits");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = [];
  for (const [title, page, text] of words.length ? ENTRIES : []) {
    const inTitle = title.toLowerCase(), inText = text.toLowerCase();
    if (!words.every(word => inTitle.includes(word) || inText.includes(word))) continue;
    scored.push([words.reduce((sum, word) => sum + (inTitle.startsWith(word) ? 4 : inTitle.includes(word) ? 2 : 0), 0), title, page, text]);
  }
  scored.sort((a, b) => b[0] - a[0]);
  hits.replaceChildren(...scored.slice(0, 20).map(([, title, page, text]) => element("li", {}, element("a", { href: up + page }, sentence(title), element("small", {}, text)))));
  if (words.length && !scored.length) hits.append(element("li", {}, "nothing found"));
  hits.hidden = !words.length;
});
document.addEventListener("keydown", event => {
  const links = [...hits.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key == "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { box.focus(); event.preventDefault(); }
  else if (event.key == "Escape") { hits.hidden = true; box.blur(); }
  else if (event.key == "Enter" && document.activeElement == box && links.length) location.href = links[0].href;
  else if (!hits.hidden && event.key == "ArrowDown") { links[Math.min(at + 1, links.length - 1)]?.focus(); event.preventDefault(); }
  else if (!hits.hidden && event.key == "ArrowUp") { (links[at - 1] ?? box).focus(); event.preventDefault(); }
});
document.addEventListener("click", event => { if (!event.target.closest(".search")) hits.hidden = true; });

// Opens the failure that the address names.
const openNamed = () => { const one = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (one?.tagName == "DETAILS") { one.open = true; one.scrollIntoView(); } };
addEventListener("hashchange", openNamed);
openNamed();

if (typeof MATRIX != "undefined") showMatrix();

function showMatrix() {
  const form = document.getElementById("filter"), table = document.getElementById("matrix");
  const [words, chapter, implementation, verdict] = form.elements;
  // The filter is in the address, so that a view can be shared.
  const names = ["words", "chapter", "implementation", "verdict"];
  new URLSearchParams(location.hash.slice(1)).forEach((value, name) => { if (names.includes(name)) form.elements[names.indexOf(name)].value = value; });
  const head = element("tr", {}, element("th", {}, "rule"));
  const show = () => {
    const text = words.value.trim().toLowerCase();
    const columns = MATRIX.implementations.map((_, at) => at).filter(at => !implementation.value || at == implementation.value);
    const rows = MATRIX.rules.filter(([rule, title, of, counts]) =>
      (!text || `${rule} ${title}`.toLowerCase().includes(text)) && (!chapter.value || of == chapter.value)
      && (!verdict.value || columns.some(at => counts[at] && counts[at][1])));
    head.replaceChildren(element("th", {}, "rule"), ...columns.map(at => element("th", { scope: "col" }, element("a", { href: `results/${MATRIX.implementations[at][0]}.html` }, MATRIX.implementations[at][1]))));
    const body = rows.map(([rule, title, , counts]) => element("tr", {}, element("th", { scope: "row", title }, element("a", { href: `rules/${rule}.html` }, rule), " ", sentence(title)), ...columns.map(at => cell(rule, counts[at], MATRIX.implementations[at][1]))));
    table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
    document.getElementById("count").textContent = `${rows.length} of ${MATRIX.rules.length} judged rules`;
    const state = new URLSearchParams();
    names.forEach((name, at) => { const value = form.elements[at].value; if (value != (name == "verdict" ? "bad" : "")) state.set(name, value); });
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname + location.search);
  };
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", show);
  show();
}

function cell(rule, counts, name) {
  if (!counts) return element("td", {});
  const [passed, bad] = counts;
  const [kind, text, words] = bad ? ["bad", bad, `${bad} of ${passed + bad} cases fail`] : passed ? ["good", "✓", `${passed} cases pass`] : ["other", "–", "not judged"];
  return element("td", { class: kind }, element("a", { href: `rules/${rule}.html#results`, title: `${name}, ${rule}: ${words}` }, String(text)));
}
