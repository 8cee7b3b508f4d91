"""The check of all links of a site."""

import html
import posixpath
import re


def broken_links(out, script_links):
    """Returns the links to a page or an anchor that does not exist. `script_links` are those that scripts create, from the front page."""
    files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    anchors, links = {}, {"search-index.js": set(script_links)}
    for name, path in files.items():
        if name.endswith(".html"):
            found = set(re.findall(r'\b(id|href|src)="([^"]*)"', path.read_text(encoding="utf-8")))
            anchors[name] = {html.unescape(value) for key, value in found if key == "id"}
            links[name] = {html.unescape(value) for key, value in found if key != "id"}
    broken = []
    for name, found in links.items():
        folder = posixpath.dirname(name)
        for link in found:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, part = link.partition("#")
            target = posixpath.normpath(posixpath.join(folder, path)) if path else name
            # A fragment with `=` is a filter.
            if target not in files or part and "=" not in part and part not in anchors.get(target, {part}):
                broken.append(f"{name}: {link}")
    return broken
