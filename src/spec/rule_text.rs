//! One rule as its chapter states it, and the parts of its text.

use super::rule;
use crate::release::Releases;
use crate::rule::{Kind, Level, Rule};
use std::fmt;

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
#[non_exhaustive]
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
    /// Every party that `who` may name.
    pub(super) const ALL: [Party; 7] = [
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
        // A label counts at the beginning of a paragraph only: prose may quote the word. It is the first one where a rule has no norm.
        let starts = |label: &str| match self.text.strip_prefix(label) {
            Some(_) => Some(0),
            None => self.text.find(&format!("\n\n{label}")).map(|at| at + 2),
        };
        // The labels may come in either order, and one of them alone.
        let ends = |from: usize| {
            [UPSTREAM, HERE]
                .iter()
                .filter_map(|label| starts(label))
                .filter(|at| *at > from)
                .min()
                .unwrap_or(self.text.len())
        };
        let part = match label {
            // A rule that is only what upstream or this crate does has no norm.
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
        // Rows of a table make no line of prose: they are returned beside it.
        let prose = first.lines().filter(|line| !is_row(line));
        // Paragraphs are wrapped in the file, and one line in a report.
        let words = prose.flat_map(str::split_whitespace).collect::<Vec<_>>();
        // The first paragraph of a rule may be a table and nothing else.
        let line = match words.join(" ") {
            words if words.is_empty() => self.title.clone(),
            words => format!("{}. {words}", self.title),
        };
        // What ends with a colon announces a table, without which the line says nothing.
        let announced = first.ends_with(':').then(|| paragraphs.next()).flatten();
        let text = announced.unwrap_or(first);
        (line, text.lines().filter(is_row).collect())
    }
}

impl Rule {
    /// The rule of this id as the specification states it. `None` only for an id that no chapter has.
    pub fn text(self) -> Option<&'static RuleText> {
        rule(self.id())
    }
}

/// In front of what releases do instead.
const UPSTREAM: &str = "Upstream:";
/// In front of what binds this crate alone.
const HERE: &str = "Here:";
