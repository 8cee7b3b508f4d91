// The table of results: its filter, its cells, and the movement between them by arrow keys.
{
  const form = document.getElementById("filter"), table = document.getElementById("matrix");
  const { words, chapter, verdict, sort } = form.elements;
  // One box for each implementation, in the same order.
  const boxes = [...form.querySelectorAll("[name=impl]")], groups = [...form.querySelectorAll(".group")];
  // The table is one stop of the Tab key.
  let stop = null;
  const escapeText = text => text.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
  const implementations = MATRIX.implementations.map(([id, name], at) => ({ id: escapeText(id), name: escapeText(name), isFirst: at > 0 && boxes[at].closest("fieldset") != boxes[at - 1].closest("fieldset") }));
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
    const columns = chosen.length ? chosen : boxes.map((_, at) => at);
    const wanted = wordsOf(words.value, ids);
    const rows = MATRIX.rules.filter(row => {
      const text = `${row[0]} ${row[1]}`.toLowerCase();
      return wanted.every(word => text.includes(word)) && (!chapter.value || row[2] == chapter.value) && FILTERS[verdict.value](row, columns);
    }).map(row => {
      const failing = columns.filter(at => row[3][at]?.[1]);
      return { row, failing: failing.length, failed: failing.reduce((sum, at) => sum + row[3][at][1], 0) };
    });
    if (sort.value) rows.sort((a, b) => b.failing - a.failing || b.failed - a.failed);
    const heads = columns.map(at => `<th scope="col"${classOf("", at)}><a tabindex="-1" href="results/${implementations[at].id}.html" title="${implementations[at].name}">${implementations[at].name}</a></th>`);
    const body = rows.map(({ row: [rule, title, , cells], failing }) => `<tr><th scope="row" title="${escapeText(title)}"><a tabindex="-1" href="rules/${rule}.html">${rule}</a><span> ${escapeText(title)}</span></th><td class="sum">${failing || ""}</td>${columns.map(at => cell(rule, cells[at], at)).join("")}</tr>`);
    // As text, because thousands of cells take too long one by one.
    table.innerHTML = `<thead><tr><th scope="col">rule</th><th scope="col" class="sum"><span title="implementations that fail">failing</span></th>${heads.join("")}</tr></thead><tbody>${body.join("")}</tbody>`;
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
    if (kind == "none") return `<td${classOf("", at)}></td>`;
    const { id, name } = implementations[at];
    return `<td${classOf(kind, at)}><a tabindex="-1" href="rules/${rule}.html#${id}" aria-label="${name}, ${rule}: ${meaning}">${text}</a></td>`;
  }

  function classOf(kind, at) {
    const words = [kind, implementations[at].isFirst && "first"].filter(Boolean);
    return words.length ? ` class="${words.join(" ")}"` : "";
  }

  // A mouse shows the words of a cell.
  table.addEventListener("mouseover", event => { const link = event.target.closest("td a"); if (link) link.title = link.getAttribute("aria-label"); });

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
