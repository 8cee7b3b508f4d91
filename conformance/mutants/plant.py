"""A copy of the project with mutants in it, each enabled by a run-time switch.

A place is a range of bytes of one file and its replacement: text in which SWITCH is the switch of its mutant and
ORIGINAL the original bytes. Places of one copy are nested or disjoint, so one build has thousands of them, and nothing is
compiled again for the next.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field

SWITCH = "MUTATED"
ORIGINAL = "\0"
# The file with the switch; only the copy has it.
MODULE = "src/mutant.rs"
LISTS = pathlib.Path(__file__).resolve().parent
FOLDERS = (".git", "__pycache__")
# The build folder of cargo; the chapter of that name has folders below others.
BUILT = ("target/", "fuzz/target/")
# Checked arithmetic, as developers have it; fast enough that the suite runs in a moment.
PROFILE = {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_INCREMENTAL": "1"}

SOURCE = """//! Planted: which mutant is on, and which of them are executed.
#![allow(missing_docs)]
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

static ON: OnceLock<u32> = OnceLock::new();
static LIST: OnceLock<Option<std::fs::File>> = OnceLock::new();
static LISTED: [AtomicBool; 65536] = [const { AtomicBool::new(false) }; 65536];

/// 0 is no mutant; with u32::MAX those are listed that are executed.
fn chosen() -> u32 {
    *ON.get_or_init(|| {
        let number = std::env::var("TVMSPEC_MUTANT").ok();
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    })
}

pub fn on(number: u32) -> bool {
    let on = chosen();
    if on == u32::MAX && !LISTED[number as usize].swap(true, Ordering::Relaxed) {
        list(number);
    }
    on == number
}

#[cold]
fn list(number: u32) {
    let file = LIST.get_or_init(|| {
        let path = std::env::var_os("TVMSPEC_MUTANTS_EXECUTED")?;
        std::fs::OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref() {
        let _ = file.write_all(format!("{number}\\n").as_bytes());
    }
}
"""


@dataclass
class Place:
    """One edit: `src[start:end]` of `file`, and `text` instead."""

    file: str
    start: int
    end: int
    text: str


@dataclass
class Mutant:
    """Replacements that are active together. `number` is the value of the switch; 0 until it is planted."""

    places: list
    number: int = 0
    facts: dict = field(default_factory=dict)


def written(copy, chapters):
    """Returns the mutants of conformance/mutants/<chapter>.toml, whose form a test of the crate checks."""
    mutants = []
    for path in sorted(LISTS.glob("*.toml")):
        if path.stem not in chapters:
            continue
        for entry in tomllib.loads(path.read_text()).get("mutant", []):
            places = [place_of(copy, entry["id"], edit) for edit in entry["edit"]]
            facts = {"id": entry["id"], "rule": entry["rule"], "wrong": entry["wrong"]}
            mutants.append(Mutant(places, facts=facts))
    return mutants


def place_of(copy, name, edit):
    source, find = copy.sources.get(edit["file"], b""), edit["find"].encode()
    if source.count(find) != 1:
        raise SystemExit(f"{name}: {edit['file']} has {source.count(find)} times: {edit['find']}")
    start = source.index(find)
    return Place(edit["file"], start, start + len(find), edit["put"])


def files_of(project):
    """Returns the files of git, or all files without git (the package)."""
    if (project / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=project, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(project)) for path in project.rglob("*")]
    names = (name for name in names if name and not name.startswith(BUILT) and not set(pathlib.Path(name).parts) & set(FOLDERS))
    return sorted(name for name in names if (project / name).is_file())


class Copy:
    """The copy, in a folder that the next run finds again."""

    def __init__(self, project, work, target):
        self.project, self.work, self.target = project, work, target
        self.sources = {}
        names = files_of(project)
        for name in files_of(work) if work.exists() else []:
            if name not in names and name != MODULE:
                (work / name).unlink()
        for name in names:
            data = (project / name).read_bytes()
            if name.startswith("src/") and name.endswith(".rs"):
                self.sources[name] = data
            else:
                self.write(name, data)
                (work / name).chmod((project / name).stat().st_mode)

    def write(self, name, data):
        """Writes only files that differ, because cargo goes by the modification time."""
        path = self.work / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def plant(self, mutants):
        """Writes all files with `mutants` in them; returns the mutant of each range of bytes."""
        places, owned = {}, {}
        for mutant in mutants:
            for place in mutant.places:
                places.setdefault(place.file, []).append((place, mutant))
        for name, source in self.sources.items():
            text, owned[name] = render(source, places.pop(name, []))
            if name == "src/lib.rs":
                text, times = re.subn(rb"(?m)^pub mod release;$", b"#[doc(hidden)]\npub mod mutant;\n\\g<0>", text)
                if times != 1:
                    raise SystemExit("src/lib.rs has no line `pub mod release;` to plant the switch before")
            self.write(name, text)
        if places:
            raise SystemExit(f"no file of the product: {', '.join(places)}")
        self.write(MODULE, SOURCE.encode())
        return owned

    def build(self, mutants):
        """Plants and builds. Mutants that do not compile are left out, with the message of the compiler, and the rest is built.

        Returns the mutants of the build, and the command line that was built.
        """
        alive = list(mutants)
        for number, mutant in enumerate(alive, 1):
            mutant.number = number
        if len(alive) > 65000:
            raise SystemExit("more mutants than switches")
        for _ in range(100):
            owned = self.plant(alive)
            result = subprocess.run(
                ["cargo", "build", "--message-format=json", "--bin", "tvmspec"],
                cwd=self.work, capture_output=True, env={**os.environ, **PROFILE, "CARGO_TARGET_DIR": str(self.target)},
            )
            messages = [json.loads(line) for line in result.stdout.splitlines() if line.startswith(b"{")]
            if result.returncode == 0:
                return alive, next(one["executable"] for one in messages if one.get("executable"))
            wrong = culprits(messages, owned, {mutant.number for mutant in alive if "rule" in mutant.facts})
            if not wrong:
                raise SystemExit(errors_of(messages) or result.stderr.decode()[-4000:])
            for mutant in alive:
                if mutant.number in wrong:
                    mutant.facts["error"] = wrong[mutant.number]
            alive = [mutant for mutant in alive if mutant.number not in wrong]
            print(f"  {len(wrong)} do not compile, {len(alive)} left", file=sys.stderr, flush=True)
        raise SystemExit("it does not compile")


def render(source, places):
    """`source` with the text of all `places`, and the ranges of the result that belong to each mutant, inner ones apart."""
    order = sorted(range(len(places)), key=lambda at: (places[at][0].start, -places[at][0].end, at))
    out, spans = bytearray(), []

    def within(at, low, high):
        """Renders source[low:high] with the places from `at` on that lie in it; returns the first that does not."""
        done = low
        while at < len(order):
            place, mutant = places[order[at]]
            if place.start >= high or place.end > high:
                break
            out.extend(source[done : place.start])
            before, inside, after = place.text.replace(SWITCH, f"crate::mutant::on({mutant.number})").partition(ORIGINAL)
            start = len(out)
            out.extend(before.encode())
            opened = len(out)
            if inside:
                at = within(at + 1, place.start, place.end)
            else:
                at = at + 1
                while at < len(order) and places[order[at]][0].start < place.end:
                    raise SystemExit(f"{place.file}: two mutants change the same text")
            closed = len(out)
            out.extend(after.encode())
            spans.append((mutant.number, start, opened, closed, len(out)))
            done = place.end
        out.extend(source[done:high])
        return at

    within(0, 0, len(source))
    return bytes(out), spans


def errors(messages):
    return [one["message"] for one in messages if one.get("reason") == "compiler-message" and one["message"]["level"] == "error"]


def errors_of(messages):
    return "\n".join(error["rendered"] for error in errors(messages))[:4000]


def culprits(messages, owned, written):
    """Returns the mutants that cause the errors of the compiler, each with the error; a `written` one only if no other can be the cause.

    An error outside every mutant usually follows from an error inside one, in another file: the nearest mutant is the cause only if
    there are no other errors.
    """
    for nearest in (False, True):
        found = {}
        for error in errors(messages):
            for span in sorted(error["spans"], key=lambda span: not span["is_primary"]):
                if numbers := whose(outermost(span), owned, nearest):
                    found.update(dict.fromkeys(numbers - written or numbers, error["message"]))
                    break
        if found:
            return found
    return {}


def outermost(span):
    while span.get("expansion") and not re.match(r"(\./)?src/", span["file_name"]):
        span = span["expansion"]["span"]
    return span


def whose(span, owned, nearest):
    """Returns the mutant whose own text contains `span`, otherwise the innermost around it, otherwise those in it.

    With `nearest`, the last resort is the nearest mutant of the file.
    """
    spans = owned.get(os.path.normpath(span["file_name"]))
    if not spans:
        return None
    low, high = span["byte_start"], span["byte_end"]
    own = [end - start for _, start, *_, end in spans]
    by_size = [spans[at] for at in sorted(range(len(spans)), key=own.__getitem__)]
    for number, start, opened, closed, end in by_size:
        if start <= low and high <= opened or closed <= low and high <= end:
            return {number}
    for number, start, _, _, end in by_size:
        if start <= low and high <= end:
            return {number}
    inside = {number for number, start, _, _, end in spans if low <= start and end <= high}
    if inside or not nearest:
        return inside
    near = min(spans, key=lambda one: min(abs(one[1] - low), abs(one[4] - low)))
    return {near[0]}
