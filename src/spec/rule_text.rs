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
/// assert_eq!((first.chapter.as_str(), tvmspec::blob::rules::BLOB_01.text()), ("blob", Some(first)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleText {
    /// The id: `BLOB-07`.
    pub id: String,
    /// The chapter: `blob`.
    pub chapter: String,
    /// The heading after the id.
    pub title: String,
    /// The level of obligation.
    pub level: Level,
    /// The obliged parties.
    pub who: Vec<Party>,
    /// The releases in which it holds.
    pub releases: Releases,
    /// The possible classes of a violation; empty if nothing is rejected.
    pub kinds: Vec<Kind>,
    /// The prose below the attributes: the norm, then the labelled parts.
    pub text: String,
}

/// A party that a rule obliges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Party {
    /// Parses bytes.
    Reader,
    /// Produces bytes.
    Writer,
    /// Creates the modules of a library.
    Loader,
    /// Calls and registers functions, and runs programs.
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

    /// Returns the word of the specification: `reader`, ...
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
    /// Returns the norm: the obligation itself.
    pub fn norm(&self) -> &str {
        self.labelled_paragraphs(None)
    }

    /// Returns the text on releases that differ from the rule, and the effect on a user; empty if none differs.
    pub fn upstream(&self) -> &str {
        self.labelled_paragraphs(Some(UPSTREAM))
    }

    /// Returns the decisions of this crate beyond the norm, or an empty text.
    pub fn decisions(&self) -> &str {
        self.labelled_paragraphs(Some(HERE))
    }

    /// Returns the paragraphs from the one with this label up to the next label.
    fn labelled_paragraphs(&self, label: Option<&str>) -> &str {
        // A label counts only at the start of a paragraph, because prose may quote the word. If a rule has no norm, the text starts
        // with a label.
        let starts = |label: &str| match self.text.strip_prefix(label) {
            Some(_) => Some(0),
            None => self.text.find(&format!("\n\n{label}")).map(|at| at + 2),
        };
        // The labels may come in either order, and one of them may be missing.
        let ends = |from: usize| {
            [UPSTREAM, HERE]
                .iter()
                .filter_map(|label| starts(label))
                .filter(|at| *at > from)
                .min()
                .unwrap_or(self.text.len())
        };
        let part = match label {
            // A rule that describes only upstream or this crate has no norm.
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

    /// Returns the title and the first paragraph of the text as one line, and the rows of a table in that paragraph or directly after
    /// it.
    pub(crate) fn title_and_first_paragraph(&self) -> (String, Vec<&str>) {
        let is_row = |line: &&str| line.starts_with('|');
        let mut paragraphs = self.text.split("\n\n");
        let first = paragraphs.next().unwrap_or_default();
        // Rows of a table cannot be part of a line of prose, and are returned separately.
        let prose = first.lines().filter(|line| !is_row(line));
        // Paragraphs are wrapped in the file, but are one line in a report.
        let words = prose.flat_map(str::split_whitespace).collect::<Vec<_>>();
        // The first paragraph of a rule may be only a table.
        let line = match words.join(" ") {
            words if words.is_empty() => self.title.clone(),
            words => format!("{}. {}", self.title, without_links(&words)),
        };
        // A paragraph that ends with a colon announces a table, without which it means nothing.
        let announced = first.ends_with(':').then(|| paragraphs.next()).flatten();
        let text = announced.unwrap_or(first);
        (line, text.lines().filter(is_row).collect())
    }
}

/// Replaces each Markdown link by its text, and a link to a decision by the place of the decision: `(spec/decisions.md#blob-06)`.
pub(crate) fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let target = link.split_once("](").and_then(|(label, after)| {
            let (target, after) = after.split_once(')')?;
            (!label.contains('[')).then_some((label, target, after))
        });
        let Some((label, target, after)) = target else {
            plain.push('[');
            rest = link;
            continue;
        };
        if label == "decision" {
            plain.push_str("spec/");
            plain.push_str(target);
        } else {
            plain.push_str(label);
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}

impl Rule {
    /// Returns the text of this rule in the specification. Returns `None` only for an id that no chapter has.
    pub fn text(self) -> Option<&'static RuleText> {
        rule(self.id())
    }
}

/// The label before the behaviour of releases.
const UPSTREAM: &str = "Upstream:";
/// The label before the decisions of this crate.
const HERE: &str = "Here:";
