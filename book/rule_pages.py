"""The pages of the rules."""

import collections

from frame import escape, plain, shortened
from program import LATEST, LONGEST
from results import counted, kind_of, lost_of

# More failed cases of one implementation are on its page, and more cases are folded.
MOST_FAILED = 6
MOST_OPEN = 12


class RulePages:
    def __init__(self, frame, program, examples, results):
        self.frame, self.program, self.examples, self.results = frame, program, examples, results
        self.order = list(program.rules)
        # The failures of each case, with the implementation.
        self.failures = collections.defaultdict(list)
        for result in results:
            for case, failure in result["failures"].items():
                self.failures[case].append((result, failure))
        # The cases of each rule. Cases that are derived from another one, such as `ID#encode`, follow it.
        self.cases = {rule: {} for rule in self.order}
        for case in program.cases.values():
            base = case["case"].split("#")[0]
            for rule in case["rules"]:
                key = base if base in self.cases[rule] else case["case"]
                self.cases[rule].setdefault(key, []).append(case["case"])

    def write(self):
        for at, (name, rule) in enumerate(self.program.rules.items()):
            self.page = f"rules/{name}.html"
            self.write_rule(name, rule, self.order[at - 1] if at else None, self.order[at + 1] if at + 1 < len(self.order) else None)

    def write_rule(self, name, rule, previous, following):
        chapter = rule["chapter"]
        self.frame.entries.append([f"{name} {plain(rule['title'])}", self.page, plain(" ".join(rule[key] for key in ("norm", "upstream", "here")))])
        facts = [rule["level"], "for " + ", ".join(rule["who"]), releases(rule)]
        if rule["kinds"]:
            facts.append("rejected as " + ", ".join(rule["kinds"]))
        parts = [
            f'<p class="path"><a href="../{chapter}.html">{chapter}</a> / <a href="../{chapter}.html#{name}">{name}</a></p>',
            f"<h1>{name} {self.frame.inline(rule['title'])}</h1>",
            f'<p class="facts">{escape(" · ".join(facts))}</p>',
            badge(self.results, name, "#results"),
            self.text(rule["norm"], chapter),
        ]
        for title, key in [("Upstream", "upstream"), ("This crate", "here")]:
            if rule[key]:
                parts.append(f"<h2>{title}</h2>{self.text(rule[key][:1].upper() + rule[key][1:], chapter)}")
        parts += [self.example(rule), self.results_of(name), self.cases_of(name), self.evidence(name, rule), self.code(rule)]
        steps = [f'<a rel="prev" href="{previous}.html">&larr; {previous} {self.frame.inline(self.program.rules[previous]["title"])}</a>' if previous else "<span></span>"]
        if following:
            steps.append(f'<a rel="next" href="{following}.html">{following} {self.frame.inline(self.program.rules[following]["title"])} &rarr;</a>')
        parts.append(f'<nav class="steps" aria-label="previous and next rule">{"".join(steps)}</nav>')
        self.frame.write_page(self.page, f"{name} {rule['title']}", "\n".join(filter(None, parts)), about=plain(rule["norm"]), chapter=chapter)

    def text(self, markdown, chapter):
        return self.frame.text(markdown, self.page, anchors=f"../{chapter}.html")

    def example(self, rule):
        found = self.examples.example(rule)
        if not found:
            return ""
        caption, rows = found
        lines = []
        for row in rows:
            if row is None:
                lines.append('<tr><td colspan="5">&hellip;</td></tr>')
                continue
            start, data, field, value, of, mark = row
            cells = [f"{start:04x}", hex_bytes(data), escape(field), escape(shortened(value, LONGEST)), self.frame.rule_link(of, "../") if of and of != rule["rule"] else of]
            lines.append(f'<tr class="{mark}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        head = "".join(f'<th scope="col">{title}</th>' for title in ("offset", "bytes", "field", "value", "rule"))
        return f'<h2 id="example">Example</h2><p>{self.frame.inline(caption)}</p><div class="scroll"><table class="bytes"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'

    def results_of(self, name):
        """Returns the implementations that fail, each with its failed cases, and then the others by kind."""
        kinds = collections.defaultdict(list)
        for result in self.results:
            kinds[kind_of(result["rules"].get(name))].append(result)
        parts = []
        if kinds["bad"]:
            rows = []
            for result in kinds["bad"]:
                passed, bad, *_ = result["rules"][name]
                failed, lost = result["failed"][name], lost_of(result, name)
                links = ", ".join(f'<a href="../results/{result["id"]}.html#{escape(case)}">{escape(case)}</a>' for case in failed[:MOST_FAILED])
                if len(failed) > MOST_FAILED:
                    links += f', <a href="../results/{result["id"]}.html#words={name}">all {len(failed)}</a>'
                rows.append(f'<tr id="{escape(result["id"])}"><td>{self.result_link(result)}</td><td class="bad">{bad} of {passed + bad} {"fails" if bad == 1 else "fail"}{f", {lost} by a crash or hang" if lost else ""}</td><td>{links}</td></tr>')
            head = "".join(f'<th scope="col">{title}</th>' for title in ("implementation", "judged cases", "failed"))
            parts.append(f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>')
        for kind, title in [("good", "All cases pass"), ("part", "Some cases pass, and the others are not judged"), ("other", "Not judged")]:
            if kinds[kind]:
                names = ", ".join(f'<span id="{escape(result["id"])}">{self.result_link(result)}{part_of(result, name, kind)}</span>' for result in kinds[kind])
                parts.append(f'<p><strong class="{kind}">{title}:</strong> {names}</p>')
        return f'<h2 id="results">Results</h2>{"".join(parts)}' if parts else ""

    def result_link(self, result):
        older = "" if result["suite"] == self.program.suite else ' <span class="faint" title="Its counts can differ from the cases on this page.">(older suite)</span>'
        return f'<a href="../results/{escape(result["id"])}.html">{escape(result["name"])}</a>{older}'

    def cases_of(self, name):
        cases = self.cases[name]
        if not cases:
            return ""
        rows = "".join(self.case(self.program.cases[case], derived) for case, derived in cases.items())
        first = next(iter(cases))
        count = sum(map(len, cases.values()))
        listed = f'<ul class="cases">{rows}</ul>'
        if len(cases) > MOST_OPEN:
            listed = f"<details><summary>{counted(count, 'case')}</summary>{listed}</details>"
        return f'<h2 id="cases">Cases: {count}</h2>{listed}<p><code>tvmspec check --show --case {escape(first)}</code> prints the request and the expected answer.</p>'

    def case(self, case, derived):
        facts = [f"<code>{escape(case['op'])}</code>"]
        if case["releases"] != "..":
            facts.append(releases_of(case["releases"]))
        if len(case["input"]) <= LONGEST:
            facts.append(f"input <code>{escape(case['input'])}</code>")
        facts.append(f"expected: {escape(case['answer'])}")
        also = [each.split("#")[1] for each in derived if each != case["case"]]
        if also:
            facts.append("also " + " and ".join({"encode": "encoded", "truncated": "without its last bytes"}.get(each, each) for each in also))
        failed = ""
        found = [each for case_id in derived for each in self.failures[case_id]]
        if found:
            reasons = dict.fromkeys(failure["known"] for _, failure in found if failure.get("known"))
            count = len({result["id"] for result, _ in found})
            failed = f'<br><a class="bad" href="#results">{counted(count, "implementation")} {"fails" if count == 1 else "fail"}</a> {escape("; ".join(reasons))}'
        return f'<li id="{escape(case["case"])}"><strong>{escape(case["case"])}</strong>: {self.frame.link_rules(escape(case["why"]), "../")}<br><small>{", ".join(facts)}</small>{failed}</li>'

    def evidence(self, name, rule):
        # A release that the results judge is left out, because its builds may differ in a case.
        judged = {release for result in self.results if result["id"] != "builtin" and sum(result["rules"].get(name, [])[:2]) for release in result["releases"]}
        rows = []
        for key, value in rule["evidence"].items():
            if key in ("passed", "failed"):
                value = [release for release in value if release not in judged]
            if value:
                title = {"passed": "other builds that pass", "failed": "other builds that fail"}.get(key, key)
                rows.append((title, value if isinstance(value, str) else ", ".join(value)))
        if rule["eras"]:
            rows.append(("explains bytes of", "files that " + ", ".join(rule["eras"]) + " wrote"))
        if not rows:
            return ""
        return "<h2>Evidence</h2><dl>" + "".join(f"<dt>{key}</dt><dd>{self.frame.link_rules(escape(value), '../')}</dd>" for key, value in rows) + "</dl>"

    def code(self, rule):
        parts = []
        if rule["code"]:
            places = "".join(f"<li>{self.frame.source_link(place, self.page)}</li>" for place in rule["code"])
            parts.append(f'<h2>Code</h2><ul class="columns">{places}</ul>')
        if rule["files"]:
            files = "".join(f"<li><code>golden/{escape(file)}</code></li>" for file in rule["files"])
            parts.append(f"<h2>Files</h2><details><summary>{counted(len(rule['files']), 'file')} that its cases read</summary><ul class=\"columns\">{files}</ul></details>")
        return "".join(parts)


def badge(results, rule, address):
    """Returns a line about the results of a rule, which links to them; empty if only this crate is judged by it."""
    kinds = collections.Counter(kind_of(result["rules"].get(rule)) for result in results if result["id"] != "builtin")
    judged = kinds["bad"] + kinds["good"] + kinds["part"]
    if not judged:
        return ""
    kind, words = ("bad", f"{kinds['bad']} of {counted(judged, 'judged implementation')} {'fails' if kinds['bad'] == 1 else 'fail'}") if kinds["bad"] else ("good", f"No failure in {counted(judged, 'judged implementation')}")
    return f'<p class="badge"><a class="{kind}" href="{address}">{words}</a></p>'


def part_of(result, rule, kind):
    passed, _, unsupported, _ = result["rules"][rule]
    return f" ({passed} of {passed + unsupported})" if kind == "part" else ""


def hex_bytes(data):
    if data is None:
        return ""
    more = f" <span class=\"faint\">+{len(data) - 8}</span>" if len(data) > 8 else ""
    return data[:8].hex(" ") + more


def releases(rule):
    """Returns the releases of a rule in words."""
    since, until = rule["since"], rule["until"]
    if since == until:
        return f"release {since}"
    return "every release" if (since, until) == ("0.2", LATEST) else f"releases {since} to {until}"


def releases_of(limits):
    """Returns a range such as `0.7..0.20` in words."""
    since, _, until = limits.partition("..")
    if not until:
        return f"from {since} on"
    return f"up to {until}" if not since else f"{since} to {until}" if since != until else since
