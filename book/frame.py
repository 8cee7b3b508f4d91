"""The frame of every page of the site, and the rendering of Markdown."""

import html
import json
import pathlib
import posixpath
import re

from markdown_it import MarkdownIt

from program import CHAPTERS, ROOT

RULE = re.compile(r"\b[A-Z]{2,5}-\d{2,3}\b")
# Sets the stored colours before the first paint.
THEME = '<script>try { const stored = localStorage.getItem("theme"); if (stored) document.documentElement.dataset.theme = stored; } catch {}</script>'


class Frame:
    def __init__(self, out, rules, has_look):
        self.out, self.rules, self.has_look = out, rules, has_look
        self.markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        # Entries of the search: title, page, text.
        self.entries = []
        # Files that pages link: Markdown, which becomes a page, and sources with the linked lines.
        self.documents, self.sources = [], {}
        self.broken = []

    def write_page(self, name, title, body, about="", chapter="", scripts=()):
        """Writes a page with the navigation, the search, and the switch of the colours."""
        up = up_of(name)
        here = lambda each: ' aria-current="page"' if name == f"{each}.html" else ' aria-current="true"' if each == chapter else ""
        look = f' <a href="{up}look.html">inspect a file</a>' if self.has_look else ""
        chapters = "".join(f'<a href="{up}{each}.html"{here(each)}>{each}</a>' for each in CHAPTERS)
        scripts = "".join(f'<script src="{up}{script}"></script>' for script in ["site.js", *scripts])
        about = f'<meta name="description" content="{escape(shortened(about, 160))}">\n' if about else ""
        page = f"""<!doctype html>
<html lang="en" data-up="{up}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(plain(title))} - tvmspec</title>
{about}<link rel="icon" href="data:,">
<link rel="stylesheet" href="{up}site.css">
{THEME}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="name" href="{up}index.html">tvmspec</a>
<a href="{up}matrix.html">results</a> <a href="{up}spec-index.html">all rules</a>{look}
<search class="search"><input id="search" type="search" placeholder="search: a rule, a case, a word ( / )" aria-label="search" autocomplete="off"><span id="found" role="status" class="hidden"></span><ul id="hits" hidden></ul></search>
<button id="theme" type="button" aria-label="change between light and dark">&#9680;</button>
</header>
<nav id="chapters" aria-label="chapters">{chapters}</nav>
<main id="main" tabindex="-1">
{body}
</main>
{scripts}
</body>
</html>
"""
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")

    def text(self, markdown, name, folder="spec", anchors=""):
        """Renders Markdown of a file in `folder` for the page `name`. A link to an anchor leads into the page `anchors`."""
        tokens = self.markdown.parse(markdown)
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                words = tokens[at + 1].content
                rule = token.tag == "h3" and RULE.match(words)
                token.attrSet("id", rule.group() if rule else anchor(words))
            for child in token.children or []:
                if child.type == "link_open":
                    link = child.attrGet("href")
                    child.attrSet("href", anchors + link if link.startswith("#") else self.target(link, name, folder))
        rendered = self.markdown.renderer.render(tokens, self.markdown.options, {})
        rendered = rendered.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
        return self.link_rules(rendered, up_of(name))

    def inline(self, markdown):
        return self.markdown.renderInline(markdown)

    def link_rules(self, rendered, up):
        """Adds links to rule ids that are outside of links, code blocks and headings."""
        out, closed = [], 0
        for part in re.split(r"(<[^>]*>)", rendered):
            tag = re.match(r"<(/?)(a|pre|h[1-6])\b", part)
            if tag:
                closed += -1 if tag.group(1) else 1
            elif not closed and not part.startswith("<"):
                part = RULE.sub(lambda match: self.rule_link(match.group(), up), part)
            out.append(part)
        return "".join(out)

    def rule_link(self, rule, up):
        if rule not in self.rules:
            return escape(rule)
        return f'<a href="{up}rules/{rule}.html" title="{escape(plain(self.rules[rule]["title"]))}">{rule}</a>'

    def target(self, link, name, folder):
        """Returns the address of the target of a Markdown link. Files that are linked become pages of the site."""
        if re.match(r"[a-z]+:", link):
            return link
        path, _, part = link.partition("#")
        file = posixpath.normpath(f"{folder}/{path}")
        if not (ROOT / file).is_file():
            self.broken.append(f"{name}: {link}")
            return link
        if file.endswith(".md"):
            if file not in self.documents:
                self.documents.append(file)
            return up_of(name) + page_of(file) + (f"#{part}" if part else "")
        return self.source_address(file, part, name)

    def source_address(self, file, part, name):
        self.sources.setdefault(file, set()).add(part)
        return f"{up_of(name)}{file}.html" + (f"#{part}" if part else "")

    def source_link(self, place, name):
        """Returns a link to FILE:LINE."""
        file, _, line = place.partition(":")
        return f'<a href="{self.source_address(file, f"L{line}" if line else "", name)}"><code>{escape(place)}</code></a>'

    def write_sources(self):
        """Writes a page for each linked source. Only linked lines have an anchor."""
        for file, parts in self.sources.items():
            name = f"{file}.html"
            rows = []
            for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1):
                part = f' id="L{number}"' if f"L{number}" in parts else ""
                rows.append(f"<i{part}></i>{RULE.sub(lambda match: self.rule_link(match.group(), up_of(name)), escape(line))}")
            code = "\n".join(rows)
            self.write_page(name, file, f'<h1>{escape(file)}</h1>\n<pre class="source">{code}</pre>')

    def write_search_index(self, cases):
        """Writes the entries of the search, and the ids of cases by the rule whose page has them."""
        index = json.dumps({"entries": self.entries, "cases": cases}, ensure_ascii=False, separators=(",", ":"))
        (self.out / "search-index.js").write_text(f"globalThis.INDEX = {index};\n", encoding="utf-8")


def up_of(name):
    return "../" * name.count("/")


def page_of(file):
    """Returns the page of a Markdown file. Two names of spec/ would collide with pages of the site."""
    name = file.removeprefix("spec/").removeprefix("conformance/")
    return {"index.md": "spec-index.html", "README.md": "spec-README.html"}.get(name, name.removesuffix(".md") + ".html")


def without_comments(markdown):
    return re.sub(r"<!--.*?-->\n?", "", markdown, flags=re.S)


def anchor(heading):
    """Returns the anchor that GitHub gives a heading, because the links of the specification use it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def plain(markdown):
    """Returns the words of Markdown, without links and marks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").replace("**", "")
    text = re.sub(r"(?<!\w)\*([^*\s][^*]*)\*(?!\w)", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def shortened(text, length):
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0] + " …"


def escape(text):
    return html.escape(str(text))
