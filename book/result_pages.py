"""The page of each implementation, and the table of all results."""

import collections
import json

from frame import escape, plain
from program import CHAPTERS
from results import GROUPS, counted, kind_of, lost_of


class ResultPages:
    def __init__(self, frame, program, results):
        self.frame, self.program, self.results = frame, program, results

    def write(self):
        for result in self.results:
            self.write_result(result)
        self.write_matrix()

    def age(self, results):
        """Returns a note if results are of another suite than the program's."""
        older = sorted({result["suite"] for result in results if result["suite"] != self.program.suite})
        if not older:
            return ""
        names = " and ".join(f"<code>{escape(suite[:12])}</code>" for suite in older)
        some = "Some of these" if len({result["suite"] for result in results}) > 1 else "These"
        return f'<p class="note">{some} results are of an older suite ({names}) than the rules and cases on this site (<code>{self.program.suite[:12]}</code>), so that counts can differ.</p>'

    def write_result(self, result):
        name = f"results/{result['id']}.html"
        self.frame.entries.append([f"results of {result['name']}", name, ""])
        look = {"pass": "good", "unsupported": "faint", "skipped": "faint"}
        words = {"unsupported": "not judged", "skipped": "not run"}
        totals = ", ".join(f'<span class="{look.get(verdict, "bad")}">{count} {escape(words.get(verdict, verdict))}</span>' for verdict, count in result["totals"].items() if verdict != "known")
        known = f'. {result["totals"]["known"]} of the failures are known and have a reason' if result["totals"].get("known") else ""
        asked = " to ".join(dict.fromkeys(result["releases"][:1] + result["releases"][-1:]))
        parts = [
            '<p class="path"><a href="../matrix.html">results</a></p>',
            f"<h1>{escape(result['name'])}</h1>",
            f"<p>{totals}{known}.</p>",
            self.age([result]),
            f'<p>Reported name: <code>{escape(result["says"])}</code>. Judged as {"releases" if " to " in asked else "release"} {escape(asked)} by suite <code>{escape(result["suite"][:12])}</code>. <a href="../matrix.html#impl={escape(result["id"])}">Its results as a table</a></p>',
            f'<pre class="command">{escape(result["command"])}</pre>',
            "" if result["id"] == "builtin" else f'<p><code>book/judge FOLDER {escape(result["id"])}</code> fetches the implementation into a folder and judges it again.</p>',
            self.chapters(result),
            self.broken_rules(result),
            self.failures(result),
        ]
        self.frame.write_page(name, f"Results of {result['name']}", "\n".join(parts), scripts=["failures.js"])

    def chapters(self, result):
        kinds = {chapter: collections.Counter() for chapter in CHAPTERS}
        for name, rule in self.program.rules.items():
            kinds[rule["chapter"]][kind_of(result["rules"].get(name))] += 1
        failed = collections.Counter(map(self.chapter_of, result["failures"]))
        rows = []
        for chapter in CHAPTERS:
            counts = [kinds[chapter][kind] for kind in ("bad", "good", "part", "other", "none")]
            cells = "".join(f'<td class="number{" bad" if at == 0 and count else ""}">{count or ""}</td>' for at, count in enumerate(counts))
            link = f'<a href="#{chapter}">{failed[chapter]}</a>' if failed[chapter] else ""
            rows.append(f'<tr><th scope="row"><a href="../{chapter}.html">{chapter}</a></th>{cells}<td class="number">{link}</td></tr>')
        heads = ["rules broken", "all cases pass", "some not judged", "not judged", "not run", "failed cases"]
        head = '<th scope="col">chapter</th>' + "".join(f'<th scope="col" class="number">{title}</th>' for title in heads)
        return f'<h2>Chapters</h2><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'

    def chapter_of(self, case):
        return case.split("/")[0]

    def broken_rules(self, result):
        rows = []
        for name, rule in self.program.rules.items():
            passed, bad, *_ = result["rules"].get(name, [0, 0])
            if bad:
                rows.append(f'<li>{self.frame.rule_link(name, "../")} {self.frame.inline(rule["title"])}: <a class="bad" href="#words={name}">{bad} of {counted(passed + bad, "case")}</a></li>')
        return f'<h2 id="rules">Rules that it breaks: {len(rows)}</h2><ul>{"".join(rows)}</ul>' if rows else ""

    def failures(self, result):
        if not result["failures"]:
            return "<p>No case fails.</p>"
        by_chapter = collections.defaultdict(list)
        for case, failure in result["failures"].items():
            by_chapter[self.chapter_of(case)].append((case, failure))
        verdicts = sorted({failure["verdict"] for failure in result["failures"].values()})
        options = "".join(f"<option>{escape(verdict)}</option>" for verdict in verdicts)
        parts = [
            f'<h2 id="failures">Failed cases: {len(result["failures"])}</h2>',
            '<form class="filter" id="filter" autocomplete="off"><input type="search" name="words" placeholder="a rule, a case or a word" aria-label="a rule, a case or a word">'
            f'<select name="verdict" aria-label="verdict"><option value="">every verdict</option>{options}</select><button type="reset">reset</button></form><p id="count" role="status" class="faint"></p>',
        ]
        for chapter, failures in by_chapter.items():
            rows = "".join(self.failure(case, failure) for case, failure in failures)
            parts.append(f'<section><h3 id="{escape(chapter)}">{escape(chapter)}: <span>{len(failures)}</span></h3>{rows}</section>')
        return "\n".join(parts)

    def failure(self, case, failure):
        rules = ", ".join(self.frame.rule_link(rule, "../") for rule in failure["rules"])
        rows = "".join(f"<dt>{key}</dt><dd>{escape(failure[key])}</dd>" for key in ("expected", "actual", "known") if failure.get(key))
        again = f'<dt>again</dt><dd><code>tvmspec check --case {escape(case)}</code> with the options above</dd>'
        words = escape(", ".join(failure["rules"]))
        return f'<details id="{escape(case)}" data-verdict="{escape(failure["verdict"])}"><summary><span class="bad">{escape(failure["verdict"])}</span> {escape(case)} <span class="faint">{words}</span></summary><p>{rules}</p><dl>{rows}{again}</dl></details>'

    def write_matrix(self):
        rows = []
        for name, rule in self.program.rules.items():
            cells = []
            for result in self.results:
                passed, bad, unsupported, _ = result["rules"].get(name, [0, 0, 0, 0])
                lost = lost_of(result, name) if bad else 0
                cells.append([passed, bad, unsupported, lost] if lost else [passed, bad, unsupported] if passed + bad + unsupported else 0)
            rows.append([name, plain(rule["title"]), rule["chapter"], cells])
        judged = [[result["id"], result["name"]] for result in self.results]
        data = json.dumps({"implementations": judged, "rules": rows}, ensure_ascii=False, separators=(",", ":"))
        (self.frame.out / "matrix-data.js").write_text(f"globalThis.MATRIX = {data};\n", encoding="utf-8")
        chapters = "".join(f"<option>{chapter}</option>" for chapter in CHAPTERS)
        groups = []
        for group in GROUPS:
            boxes = "".join(f'<label><input type="checkbox" name="impl" value="{escape(result["id"])}"> {escape(result["name"])}</label>' for result in self.results if result["group"] == group)
            if boxes:
                groups.append(f'<fieldset><legend><label><input type="checkbox" class="group"> {escape(group)}</label></legend>{boxes}</fieldset>')
        body = f"""<h1>Results</h1>
<p>The table shows the rules that each implementation follows or breaks. A number counts failed cases; it links to them. The head of a column links to the implementation.</p>
{self.age(self.results)}<form id="filter" class="matrix-filter" autocomplete="off">
<div class="filter">
<input type="search" name="words" placeholder="a rule or words" aria-label="a rule or words">
<select name="chapter" aria-label="chapter"><option value="">all chapters</option>{chapters}</select>
<select name="verdict" aria-label="verdict"><option value="bad" selected>with failures</option><option value="lost">with a crash or hang</option><option value="differ">with different verdicts</option><option value="good">all cases pass</option><option value="other">with cases not judged</option><option value="">every rule</option></select>
<select name="sort" aria-label="order"><option value="">by rule</option><option value="failures">by failures</option></select>
<button type="reset">reset</button>
</div>
<details id="implementations"><summary>Implementations: <span id="chosen">all {len(judged)}</span></summary><div class="groups">{"".join(groups)}</div></details>
</form>
<p class="key"><span id="count" role="status"></span><span><span class="cell good">&#10003;</span> pass</span> <span><span class="cell part">&#10003;</span> partly judged</span> <span><span class="cell bad">3</span> fail</span> <span><span class="cell bad">3!</span> crash or hang</span> <span><span class="cell other">&ndash;</span> not judged</span> <span><span class="cell"></span> not run</span></p>
<div class="scroll tall" id="table"><table id="matrix" class="matrix" role="grid" aria-label="results; arrow keys move between cells"></table></div>
<p class="key">A case is not judged if the implementation does not offer its operation, or may answer differently. It is not run if it is about other releases or optional.</p>
<noscript>{self.without_script()}</noscript>"""
        self.frame.write_page("matrix.html", "Results: which implementations break which rule", body, about="The rules that each judged implementation of the TVM runtime follows or breaks.", scripts=["matrix-data.js", "matrix.js"])

    def without_script(self):
        """Returns the rules with failures and the implementations that fail, for browsers without JavaScript."""
        rows = []
        for name, rule in self.program.rules.items():
            failing = [result for result in self.results if kind_of(result["rules"].get(name)) == "bad"]
            if failing:
                names = ", ".join(escape(result["name"]) for result in failing)
                rows.append(f'<tr><th scope="row"><a href="rules/{name}.html">{name}</a> {self.frame.inline(rule["title"])}</th><td>{names}</td></tr>')
        return f'<table><thead><tr><th scope="col">rule</th><th scope="col">implementations that break it</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
