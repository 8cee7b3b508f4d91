// The table of results: its filter, its cells, and the movement between them by arrow keys.
{
  const form = document.getElementById("filter"), table = document.getElementById("matrix");
  const { words, chapter, verdict, sort } = form.elements;
  const boxes = [...form.querySelectorAll("[name=impl]")], groups = [...form.querySelectorAll(".group")];
  // The table is one stop of the Tab key.
  let stop = null;
  const ids = new Set(MATRIX.rules.map(([rule]) => rule.toLowerCase()));

  /** Returns the kind of a cell, as in book/results.py, and its words. */
  const describe = counts => {
    if (!counts) return ["none", "", "not run"];
    const [passed, bad, unsupported, lost] = counts;
    if (bad) return ["bad", lost ? `${bad}!` : String(bad), `${bad} of ${counted(passed + bad, "case")} ${bad == 1 ? "fails" : "fail"}${lost ? `, ${lost} by a crash or hang` : ""}`];
    if (!passed) return ["other", "–", "not judged"];
    return unsupported ? ["part", "✓", `${passed} pass, ${unsupported} not judged`] : ["good", "✓", counted(passed, "case") + (passed == 1 ? " passes" : " pass")];
  };
  const kinds = new Map(MATRIX.rules.map(([rule, , , cells]) => [rule, cells.map(counts => describe(counts)[0])]));

  const FILTERS = {
    "": () => true,
    bad: (row, columns) => columns.some(at => kinds.get(row[0])[at] == "bad"),
    lost: (row, columns) => columns.some(at => row[3][at]?.[3]),
    good: (row, columns) => columns.some(at => kinds.get(row[0])[at] == "good") && columns.every(at => ["good", "none"].includes(kinds.get(row[0])[at])),
    other: (row, columns) => columns.some(at => ["part", "other"].includes(kinds.get(row[0])[at])),
    // A rule that is not judged is not different.
    differ: (row, columns) => new Set(columns.map(at => kinds.get(row[0])[at]).filter(kind => !["other", "none"].includes(kind)).map(kind => kind == "bad")).size > 1,
  };

  connectFilter(form, () => {
    const chosen = boxes.flatMap((field, at) => (field.checked ? [at] : []));
    const columns = chosen.length ? chosen.map(at => MATRIX.implementations.findIndex(([id]) => id == boxes[at].value)) : MATRIX.implementations.map((_, at) => at);
    const wanted = wordsOf(words.value, ids);
    const rows = MATRIX.rules.filter(row => {
      const text = `${row[0]} ${row[1]}`.toLowerCase();
      return wanted.every(word => text.includes(word)) && (!chapter.value || row[2] == chapter.value) && FILTERS[verdict.value](row, columns);
    }).map(row => {
      const failing = columns.filter(at => row[3][at]?.[1]);
      return { row, failing: failing.length, failed: failing.reduce((sum, at) => sum + row[3][at][1], 0) };
    });
    if (sort.value) rows.sort((a, b) => b.failing - a.failing || b.failed - a.failed);
    const heads = columns.map(at => element("th", { scope: "col", class: isFirst(at) }, element("a", { href: `results/${MATRIX.implementations[at][0]}.html`, title: MATRIX.implementations[at][1] }, MATRIX.implementations[at][1])));
    const head = element("tr", {}, element("th", { scope: "col" }, "rule"), element("th", { scope: "col", class: "sum" }, element("span", { title: "implementations that fail" }, "failing")), heads);
    const body = rows.map(({ row: [rule, title, , cells], failing }) => element("tr", {},
      element("th", { scope: "row", title }, element("a", { href: `rules/${rule}.html` }, rule), element("span", {}, ` ${title}`)),
      element("td", { class: "sum" }, failing || ""),
      columns.map(at => cell(rule, cells[at], at))));
    table.replaceChildren(element("thead", {}, head), element("tbody", {}, body));
    for (const link of table.querySelectorAll("a")) link.tabIndex = -1;
    stopAt(table.querySelector("tbody a"));
    document.getElementById("table").hidden = !rows.length;
    document.getElementById("count").textContent = rows.length ? `${rows.length} of ${counted(MATRIX.rules.length, "rule")}` : "No rule matches the filter.";
    document.getElementById("chosen").textContent = chosen.length ? `${chosen.length} of ${boxes.length}` : `all ${boxes.length}`;
    for (const group of groups) {
      const members = membersOf(group), checked = members.filter(field => field.checked).length;
      group.checked = checked == members.length;
      group.indeterminate = checked > 0 && !group.checked;
    }
  });

  function cell(rule, counts, at) {
    const [kind, text, meaning] = describe(counts);
    if (kind == "none") return element("td", { class: isFirst(at) });
    const [id, name] = MATRIX.implementations[at];
    const label = `${name}, ${rule}: ${meaning}`;
    return element("td", { class: [kind, isFirst(at)].filter(Boolean).join(" ") }, element("a", { href: `rules/${rule}.html#${id}`, title: label, "aria-label": label }, text));
  }

  /** Returns the class of the first column of a group. */
  function isFirst(at) {
    const groupOf = place => boxes.find(field => field.value == MATRIX.implementations[place]?.[0])?.closest("fieldset");
    return at && groupOf(at) != groupOf(at - 1) ? "first" : null;
  }

  function membersOf(group) {
    return [...group.closest("fieldset").querySelectorAll("[name=impl]")];
  }

  for (const group of groups) group.addEventListener("input", () => membersOf(group).forEach(field => { field.checked = group.checked; }));

  function stopAt(target) {
    if (stop) stop.tabIndex = -1;
    stop = target;
    if (stop) stop.tabIndex = 0;
  }
  table.addEventListener("focusin", event => stopAt(event.target));
  table.addEventListener("keydown", event => {
    const here = event.target.closest("th, td"), row = here?.parentElement;
    if (!here || event.ctrlKey || event.altKey || event.metaKey) return;
    const rows = [...table.rows], at = rows.indexOf(row), column = here.cellIndex;
    const next = {
      ArrowLeft: () => row.cells[column - 1],
      ArrowRight: () => row.cells[column + 1],
      ArrowUp: () => rows[at - 1]?.cells[column],
      ArrowDown: () => rows[at + 1]?.cells[column],
      Home: () => row.cells[0],
      End: () => row.cells[row.cells.length - 1],
      PageUp: () => rows[Math.max(at - 15, 1)].cells[column],
      PageDown: () => rows[Math.min(at + 15, rows.length - 1)].cells[column],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const target = next();
    if (!target) return;
    const focused = target.querySelector("a") ?? target;
    focused.tabIndex = 0;
    focused.focus();
  });
}
