// The search, links to folded parts, and the filters of pages. book/build puts web/page/dom.js and theme.js before it.
const up = document.documentElement.dataset.up;
// More hits are shown at a press of a button.
const MOST_HITS = 20;
const box = document.getElementById("search"), hits = document.getElementById("hits"), found = document.getElementById("found");

/** Loads the index when the search is first used, because it is larger than a page. */
let loading;
function loadIndex() {
  loading ??= new Promise((ready, failed) => document.head.append(element("script", { src: `${up}search-index.js`, onload: ready, onerror: failed })));
  return loading;
}

/** Splits a text into words. An id such as `blob7` or `blob 07` becomes `blob-07` if it is one of `ids`. */
function wordsOf(text, ids) {
  const joined = text.toLowerCase().replace(/\b([a-z]{2,5})[ -]?(\d{1,3})\b/g, (written, name, number) => {
    const id = `${name}-${number.padStart(2, "0")}`;
    return ids.has(id) ? id : written;
  });
  return joined.split(/\s+/).filter(Boolean);
}

async function search(most = MOST_HITS) {
  if (!box.value.trim()) { hits.hidden = true; found.textContent = ""; return; }
  await loadIndex();
  INDEX.ids ??= new Set(Object.keys(INDEX.titles = Object.fromEntries(INDEX.entries.map(([title]) => title).filter(title => /^[A-Z]+-\d+ /.test(title)).map(title => [title.split(" ")[0].toLowerCase(), title]))));
  const words = wordsOf(box.value, INDEX.ids);
  const scored = [];
  for (const [title, page, text] of INDEX.entries) {
    const inTitle = title.toLowerCase(), inText = text.toLowerCase();
    if (!words.every(word => inTitle.includes(word) || inText.includes(word))) continue;
    scored.push([words.reduce((sum, word) => sum + (inTitle.startsWith(word) ? 4 : inTitle.includes(word) ? 2 : 0), 0), title, page, excerpt(text, words)]);
  }
  scored.sort((a, b) => b[0] - a[0]);
  for (const [rule, cases] of Object.entries(INDEX.cases)) {
    for (const id of cases) {
      const lower = id.toLowerCase();
      if (words.every(word => lower.includes(word.split("#")[0]))) scored.push([0, id, `rules/${rule}.html#${id}`, `case of ${INDEX.titles[rule.toLowerCase()]}`]);
    }
  }
  hits.replaceChildren(...scored.slice(0, most).map(([, title, page, text]) => element("li", {}, element("a", { href: up + page }, sentence(title), element("small", {}, text)))));
  if (scored.length > most) hits.append(element("li", {}, element("button", { type: "button", class: "link", onclick: async () => { await search(most + 50); hits.querySelectorAll("a")[most].focus(); } }, `${scored.length - most} more`)));
  if (!scored.length) hits.append(element("li", { class: "faint" }, "nothing found"));
  found.textContent = scored.length ? counted(scored.length, "hit") : "nothing found";
  hits.hidden = false;
}

/** Returns the part of a text around the first of the words. */
function excerpt(text, words) {
  const at = Math.min(...words.map(word => text.toLowerCase().indexOf(word)).filter(at => at >= 0), text.length);
  const start = at < 60 || at == text.length ? 0 : text.lastIndexOf(" ", at - 30) + 1;
  return (start ? "… " : "") + text.slice(start, start + 200);
}

box.addEventListener("input", () => search());
let isClosing = false;
box.addEventListener("focus", () => { if (!isClosing) search(); });
const place = box.closest(".search");
place.addEventListener("focusout", event => { if (event.relatedTarget && !event.relatedTarget.closest(".search")) hits.hidden = true; });
// The path, because a button for more hits is already replaced.
document.addEventListener("click", event => { if (!event.composedPath().includes(place)) hits.hidden = true; });
document.addEventListener("keydown", async event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const active = document.activeElement;
  const inSearch = active.closest(".search");
  const links = [...hits.querySelectorAll("a, button")];
  const at = links.indexOf(active);
  if (event.key == "/" && !/INPUT|SELECT|TEXTAREA/.test(active.tagName)) { event.preventDefault(); box.focus(); box.select(); }
  else if (!inSearch) return;
  else if (event.key == "Escape") { event.preventDefault(); isClosing = true; box.focus(); isClosing = false; hits.hidden = true; }
  else if (event.key == "Enter" && active == box) { event.preventDefault(); await search(); hits.querySelector("a")?.click(); }
  else if (event.key == "ArrowDown") { event.preventDefault(); if (hits.hidden) await search(); links[Math.min(at + 1, links.length - 1)]?.focus(); }
  else if (event.key == "ArrowUp") { event.preventDefault(); (links[at - 1] ?? box).focus(); }
});

/** Opens the folded parts around the target of the address. */
function openTarget() {
  if (location.hash.includes("=")) return;
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* The address is not of this site. */ }
  if (!target) return;
  for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", openTarget);
openTarget();

// Everything is printed.
addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach(part => { part.open = true; }));

// The current chapter is in view on a narrow screen.
const chapters = document.getElementById("chapters"), current = chapters.querySelector("[aria-current]");
if (current) chapters.scrollLeft = current.offsetLeft - chapters.clientWidth / 2;

/**
 * Connects the fields of a form with the fragment of the address, so that a view can be shared. Calls `show` at first and after each
 * change of either.
 */
function connectFilter(form, show) {
  const fields = [...form.elements].filter(field => field.name);
  const initial = field => (field.tagName == "SELECT" ? ([...field.options].find(option => option.defaultSelected) ?? field.options[0]).value : field.defaultValue);
  const read = () => {
    const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    for (const field of fields) {
      if (field.type == "checkbox") field.checked = state.getAll(field.name).includes(field.value);
      else field.value = state.get(field.name) ?? initial(field);
      if (field.tagName == "SELECT" && field.selectedIndex < 0) field.value = initial(field);
    }
    show();
  };
  const write = () => {
    const state = new URLSearchParams();
    for (const field of fields) {
      if (field.type == "checkbox" ? field.checked : field.value != initial(field)) state.append(field.name, field.value);
    }
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname + location.search);
    show();
  };
  let waiting;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(write, 120); });
  form.addEventListener("reset", () => setTimeout(write));
  form.addEventListener("submit", event => { event.preventDefault(); write(); });
  addEventListener("hashchange", read);
  read();
}
