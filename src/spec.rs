//! The specification as data: every rule of every chapter, parsed from the prose that is built in, and its evidence.
//!
//! A rule is a heading `### BLOB-07 Title`, one line of attributes, and text up to the next heading. Reports print that
//! text where a rule is broken, so that no one has to look it up. `spec/README.md` describes the form.

use crate::release::{Release, Releases};
use crate::rule::{Kind, Level, Rule};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A numbered rule as the specification states it.
///
/// ```
/// use tvmspec::rule::Level;
/// use tvmspec::spec::{self, RuleText};
///
/// let musts = spec::rules().iter().filter(|rule| rule.level == Level::Must);
/// assert!(musts.count() > 100);
/// let first: &RuleText = spec::rule("BLOB-01").expect("a rule");
/// assert_eq!((first.chapter.as_str(), tvmspec::blob::BLOB_01.text()), ("blob", Some(first)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The id: `BLOB-07`.
    pub id: String,
    /// The chapter: `blob`.
    pub chapter: String,
    /// The heading behind the id.
    pub title: String,
    /// How strongly it binds.
    pub level: Level,
    /// Who is obliged.
    pub who: Vec<Party>,
    /// The releases in which it holds.
    pub releases: Releases,
    /// What an input that breaks the rule is rejected as; empty where nothing is rejected.
    pub kinds: Vec<Kind>,
    /// The prose below the attributes: the norm, then what is labelled.
    pub text: String,
}

/// Who is obliged by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Party {
    /// Takes bytes apart.
    Reader,
    /// Makes bytes.
    Writer,
    /// Makes modules of a library.
    Loader,
    /// Calls, registers, runs.
    Runtime,
    /// Implements the device API.
    Device,
    /// Compiled code, or any other caller of a function.
    Caller,
    /// A language on top of the C interface.
    Frontend,
}

impl Party {
    const ALL: [Party; 7] = [
        Party::Reader,
        Party::Writer,
        Party::Loader,
        Party::Runtime,
        Party::Device,
        Party::Caller,
        Party::Frontend,
    ];

    /// The word that the specification writes: `reader`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Party::Reader => "reader",
            Party::Writer => "writer",
            Party::Loader => "loader",
            Party::Runtime => "runtime",
            Party::Device => "device",
            Party::Caller => "caller",
            Party::Frontend => "frontend",
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a rule is from, as `spec/evidence/<chapter>.toml` has it. `tests/suite/evidence.rs` reads the probes in the same files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Documents that state it.
    pub documented: Vec<String>,
    /// Where it was read: repository, tag and path.
    pub source: Vec<String>,
    /// The releases that were run, and what they did where that differs from the rule.
    pub observed: Vec<String>,
    /// Why it is taken to hold, where it was neither read nor run: a point that is open.
    pub inferred: Option<String>,
    /// The releases whose runtimes the suite judged, and that do as the rule says.
    pub passed: Vec<Release>,
    /// Those that do otherwise in some case.
    pub failed: Vec<Release>,
}

/// Verdicts on runtimes of releases, which `spec/evidence/judged.py` writes.
const JUDGED: &str = include_str!("../spec/evidence/tables/judged.json");

impl RuleText {
    /// What the rule obliges to.
    pub fn norm(&self) -> &str {
        self.part(None)
    }

    /// What releases do instead, and what happens to a user; empty where they do as the rule says.
    pub fn upstream(&self) -> &str {
        self.part(Some(UPSTREAM))
    }

    /// What this crate decides beyond the norm; empty where it decides nothing.
    pub fn here(&self) -> &str {
        self.part(Some(HERE))
    }

    /// The paragraphs from the one with this label up to the next label.
    fn part(&self, label: Option<&str>) -> &str {
        let starts = |label: &str| match self.text.strip_prefix(label) {
            Some(_) => Some(0),
            None => self.text.find(&format!("\n\n{label}")).map(|at| at + 2),
        };
        let ends = |from: usize| {
            [UPSTREAM, HERE]
                .iter()
                .filter_map(|label| starts(label))
                .filter(|at| *at > from)
                .min()
                .unwrap_or(self.text.len())
        };
        let part = match label {
            None if [UPSTREAM, HERE]
                .iter()
                .any(|label| starts(label) == Some(0)) =>
            {
                None
            }
            None => self.text.get(..ends(0)),
            Some(label) => starts(label).and_then(|at| self.text.get(at + label.len()..ends(at))),
        };
        part.unwrap_or_default().trim()
    }

    /// The title and the first paragraph of the text as one line, and the rows of the table in it or right behind it.
    pub(crate) fn gist(&self) -> (String, Vec<&str>) {
        let is_row = |line: &&str| line.starts_with('|');
        let mut paragraphs = self.text.split("\n\n");
        let first = paragraphs.next().unwrap_or_default();
        let prose = first.lines().filter(|line| !is_row(line));
        let words = prose.flat_map(str::split_whitespace).collect::<Vec<_>>();
        let line = match words.join(" ") {
            words if words.is_empty() => self.title.clone(),
            words => format!("{}. {words}", self.title),
        };
        let announced = first.ends_with(':').then(|| paragraphs.next()).flatten();
        let text = announced.unwrap_or(first);
        (line, text.lines().filter(is_row).collect())
    }
}

impl Rule {
    /// What the specification says under this id. `None` only for an id that no chapter has.
    pub fn text(self) -> Option<&'static RuleText> {
        rule(self.id())
    }
}

const UPSTREAM: &str = "Upstream:";
const HERE: &str = "Here:";

/// The evidence for the rule with this id.
pub fn evidence(id: &str) -> Option<&'static Evidence> {
    book().evidence.get(id)
}

/// Where code names the rule with this id: files below `src/` with their lines, outside of rule tables.
pub fn places(id: &str) -> &'static [&'static str] {
    PLACES
        .binary_search_by(|(name, _)| (*name).cmp(id))
        .ok()
        .and_then(|at| PLACES.get(at))
        .map_or(&[], |(_, places)| places)
}

/// Every rule of every chapter, in the order of the chapters' files and of the rules in them.
pub fn rules() -> &'static [RuleText] {
    &book().rules
}

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static RuleText> {
    let book = book();
    book.by_id.get(id).and_then(|&index| book.rules.get(index))
}

/// The prose of a chapter: the text of `spec/<chapter>.md`.
pub fn chapter(name: &str) -> Option<&'static str> {
    SPEC.iter()
        .find(|(file, _)| file.strip_suffix(".md") == Some(name))
        .map(|(_, text)| *text)
}

/// Reads the rules of one chapter out of its prose.
///
/// # Errors
///
/// Says which heading lacks which attribute, or has an unknown one.
pub fn parse(chapter: &str, prose: &str) -> Result<Vec<RuleText>, String> {
    let mut rules: Vec<RuleText> = Vec::new();
    let mut inside = false;
    let mut lines = prose.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.starts_with('#') {
            inside = false;
        }
        if let Some((id, title)) = heading(line) {
            let attributes = lines.next().map_or("", |(_, line)| line);
            let rule = attributes_of(attributes)
                .map_err(|error| format!("spec/{chapter}.md:{}: {id}: {error}", number + 2))?;
            rules.push(RuleText {
                id: id.to_owned(),
                chapter: chapter.to_owned(),
                title: title.to_owned(),
                ..rule
            });
            inside = true;
        } else if inside && let Some(rule) = rules.last_mut() {
            rule.text.push_str(line);
            rule.text.push('\n');
        }
    }
    for rule in &mut rules {
        rule.text = rule.text.trim().to_owned();
    }
    Ok(rules)
}

struct Book {
    rules: Vec<RuleText>,
    by_id: HashMap<String, usize>,
    evidence: BTreeMap<String, Evidence>,
}

fn book() -> &'static Book {
    static BOOK: OnceLock<Book> = OnceLock::new();
    BOOK.get_or_init(|| {
        // A chapter that does not parse fails the test below; a released build has none.
        let rules: Vec<RuleText> = SPEC
            .iter()
            .filter_map(|(file, prose)| Some((file.strip_suffix(".md")?, prose)))
            .flat_map(|(chapter, prose)| parse(chapter, prose).unwrap_or_default())
            .collect();
        let by_id = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| (rule.id.clone(), index))
            .collect();
        let mut evidence: BTreeMap<String, Evidence> = EVIDENCE
            .iter()
            .flat_map(|(_, text)| parse_evidence(text).unwrap_or_default())
            .collect();
        for (id, judged) in parse_judged(JUDGED).unwrap_or_default() {
            if let Some(evidence) = evidence.get_mut(&id) {
                [evidence.passed, evidence.failed] = judged;
            }
        }
        Book {
            rules,
            by_id,
            evidence,
        }
    })
}

/// `### BLOB-07 Title` as id and title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("### ")?;
    let (id, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let (prefix, number) = id.split_once('-')?;
    let named = prefix.len() > 1 && prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let numbered = number.len() > 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    (named && numbered).then_some((id, title.trim()))
}

/// Reads one file of evidence.
///
/// # Errors
///
/// Says which rule has what in a wrong form.
fn parse_evidence(text: &str) -> Result<BTreeMap<String, Evidence>, String> {
    let file: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let mut all = BTreeMap::new();
    for (id, of) in &file {
        let of = of
            .as_table()
            .ok_or_else(|| format!("{id} is not a table"))?;
        let list = |name: &str| match of.get(name) {
            None => Ok(Vec::new()),
            Some(list) => list
                .as_array()
                .and_then(|list| {
                    list.iter()
                        .map(|one| one.as_str().map(str::to_owned))
                        .collect()
                })
                .ok_or_else(|| format!("{id}: `{name}` is not a list of texts")),
        };
        let evidence = Evidence {
            documented: list("documented")?,
            source: list("source")?,
            observed: list("observed")?,
            passed: Vec::new(),
            failed: Vec::new(),
            inferred: match of.get("inferred") {
                None => None,
                Some(why) => Some(
                    why.as_str()
                        .ok_or_else(|| format!("{id}: `inferred` is not a text"))?
                        .to_owned(),
                ),
            },
        };
        all.insert(id.clone(), evidence);
    }
    Ok(all)
}

/// The releases that pass each rule, and those that fail it.
///
/// # Errors
///
/// Says what is no list of releases.
fn parse_judged(text: &str) -> Result<BTreeMap<String, [Vec<Release>; 2]>, String> {
    let table: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let judged = table.into_iter().map(|(id, of)| {
        let list = |name: &str| -> Result<Vec<Release>, String> {
            let releases = of.get(name).into_iter().flatten();
            releases.map(|release| release.parse()).collect()
        };
        Ok((id, [list("passed")?, list("failed")?]))
    });
    judged.collect()
}

/// Attributes stand four spaces apart; a list has commas.
fn attributes_of(line: &str) -> Result<RuleText, String> {
    let (mut level, mut since, mut until) = (None, None, None);
    let (mut who, mut kinds) = (Vec::new(), Vec::new());
    for attribute in line.split("    ").map(str::trim) {
        let (name, value) = attribute
            .split_once(": ")
            .ok_or_else(|| format!("`{attribute}` is not an attribute"))?;
        match name {
            "level" => level = Some(level_of(value)?),
            "since" => since = Some(value.parse::<Release>()?),
            "until" => until = Some(value.parse::<Release>()?),
            "who" => {
                who = words(value, "somebody who is obliged", &Party::ALL, |party| {
                    party.name()
                })?;
            }
            "kind" => kinds = words(value, "a kind", Kind::ALL, |kind| kind.name())?,
            _ => return Err(format!("there is no attribute `{name}`")),
        }
    }
    if who.is_empty() {
        return Err("no who".to_owned());
    }
    Ok(RuleText {
        id: String::new(),
        chapter: String::new(),
        title: String::new(),
        level: level.ok_or("no level")?,
        who,
        releases: Releases {
            since: since.ok_or("no since")?,
            until: until.unwrap_or(Release::LAST),
        },
        kinds,
        text: String::new(),
    })
}

/// A list of words out of `all`, each once.
fn words<T: Copy + PartialEq>(
    list: &str,
    what: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, String> {
    let mut found = Vec::new();
    for word in list.split(", ") {
        let one = all
            .iter()
            .copied()
            .find(|one| name(*one) == word)
            .ok_or_else(|| format!("`{word}` is not {what}"))?;
        if found.contains(&one) {
            return Err(format!("`{word}` stands twice"));
        }
        found.push(one);
    }
    Ok(found)
}

fn level_of(word: &str) -> Result<Level, String> {
    match word {
        "MUST" => Ok(Level::Must),
        "LIMIT" => Ok(Level::Limit),
        "SHOULD" => Ok(Level::Should),
        "MAY" => Ok(Level::May),
        "DISPUTED" => Ok(Level::Disputed),
        _ => Err(format!("`{word}` is not a level")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_chapter_parses_and_no_id_is_there_twice() {
        let mut seen = HashSet::new();
        for (file, prose) in SPEC {
            let chapter = file.strip_suffix(".md").unwrap();
            for rule in parse(chapter, prose).unwrap() {
                assert!(seen.insert(rule.id.clone()), "{} is there twice", rule.id);
            }
        }
        assert!(rule("WIRE-01").is_some());
    }

    #[test]
    fn every_rule_has_evidence_and_nothing_else_has() {
        let mut with: Vec<String> = Vec::new();
        for (file, text) in EVIDENCE {
            let chapter = file.strip_suffix(".toml").unwrap();
            for (id, evidence) in parse_evidence(text).unwrap_or_else(|why| panic!("{file}: {why}"))
            {
                assert_eq!(
                    rule(&id).map(|rule| rule.chapter.as_str()),
                    Some(chapter),
                    "{file}: {id}"
                );
                assert_ne!(
                    evidence,
                    Evidence::default(),
                    "{file}: {id} names no evidence"
                );
                with.push(id);
            }
        }
        let bare: Vec<&str> = rules()
            .iter()
            .map(|rule| rule.id.as_str())
            .filter(|id| !with.iter().any(|known| known == id))
            .collect();
        assert!(bare.is_empty(), "no evidence for {bare:?}");
    }

    #[test]
    fn what_was_judged_is_rules_in_releases_that_have_them() {
        let judged = parse_judged(JUDGED).unwrap();
        assert!(judged.len() > 200, "{} rules", judged.len());
        for (id, lists) in judged {
            let releases = rule(&id).unwrap_or_else(|| panic!("{id}")).releases;
            for release in lists.iter().flatten() {
                assert!(releases.contains(*release), "{id} in {release}");
            }
        }
    }

    #[test]
    fn every_rule_that_binds_has_a_text() {
        let bare: Vec<&str> = rules()
            .iter()
            .filter(|rule| rule.level.binds() && rule.norm().is_empty())
            .map(|rule| rule.id.as_str())
            .collect();
        assert!(bare.is_empty(), "a title alone obliges nobody: {bare:?}");
    }

    #[test]
    fn a_rule_has_all_its_attributes_or_is_rejected() {
        let good = "### ABC-07 Title here\nlevel: MUST    who: reader, writer    since: 0.7    until: 0.20    kind: truncated, limit\n\nText.\nMore.\n\nUpstream: reads on.\n\nAnd on.\n\nHere: a limit.\n\n## Next\nno text";
        let rules = parse("abc", good).unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].title, "Title here");
        assert_eq!(rules[0].who, [Party::Reader, Party::Writer]);
        assert_eq!(rules[0].kinds, [Kind::Truncated, Kind::Limit]);
        assert_eq!(rules[0].releases, Releases::between(7, 20));
        assert_eq!(rules[0].norm(), "Text.\nMore.");
        assert_eq!(rules[0].upstream(), "reads on.\n\nAnd on.");
        assert_eq!(rules[0].here(), "a limit.");
        let bare = parse(
            "abc",
            "### ABC-08 T\nlevel: LIMIT    who: reader    since: 0.2\n\nHere: x",
        )
        .unwrap();
        assert_eq!(
            (bare[0].norm(), bare[0].upstream(), bare[0].here()),
            ("", "", "x")
        );
        for bad in [
            "### ABC-07 T\nwho: reader    since: 0.7",
            "### ABC-07 T\nlevel: MUST    who: reader",
            "### ABC-07 T\nlevel: MUST    since: 0.7",
            "### ABC-07 T\nlevel: OUGHT    who: reader    since: 0.7",
            "### ABC-07 T\nlevel: MUST    who: somebody    since: 0.7",
            "### ABC-07 T\nlevel: MUST    who: reader, reader    since: 0.7",
            "### ABC-07 T\nlevel: MUST    who: reader    since: 0.7    kind: wrong",
            "### ABC-07 T\nlevel: MUST    who: reader    since: 0.7    evidence: x",
            "### ABC-07 T\n",
        ] {
            assert!(parse("abc", bad).is_err(), "{bad}");
        }
    }
}
