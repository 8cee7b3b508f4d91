//! The specification as data: every rule of every chapter, parsed from the prose that is built in, and its evidence.
//!
//! A rule is a heading `### BLOB-07 Title`, one line of attributes, and text up to the next heading. Reports print that
//! text where a rule is broken, so that no one has to look it up. `spec/README.md` describes the form.

mod evidence;
mod parse;
mod rule_text;

pub use evidence::Evidence;
pub use parse::parse;
pub use rule_text::{Party, RuleText};

use evidence::{JUDGED, parse_evidence, parse_judged};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

// `SPEC`, `EVIDENCE` and `PLACES`: what `build.rs` makes of `spec/` and of the code.
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The evidence for the rule with this id: where it was read or run, or why it is inferred. `None` for an unknown id; a test holds
/// every rule to have some.
pub fn evidence(id: &str) -> Option<&'static Evidence> {
    book().evidence.get(id)
}

/// Where code names the rule with this id: files below `src/` with their lines, outside of rule tables. Where no line of code does,
/// as for a behaviour, the comments that name it.
pub fn places(id: &str) -> &'static [&'static str] {
    // `build.rs` collects the table in a `BTreeMap`, so it is sorted by id.
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

/// The rule with this id, written as `BLOB-07`. `None` for an id that no chapter has.
pub fn rule(id: &str) -> Option<&'static RuleText> {
    let book = book();
    book.by_id.get(id).and_then(|&index| book.rules.get(index))
}

/// The prose of a chapter: the text of `spec/<chapter>.md`.
/// `None` for a name that is no chapter.
pub fn chapter(name: &str) -> Option<&'static str> {
    // Few files: a search takes less than a table of them.
    SPEC.iter()
        .find(|(file, _)| file.strip_suffix(".md") == Some(name))
        .map(|(_, text)| *text)
}

/// Everything parsed out of `spec/`, for the life of the process.
struct Book {
    /// Of all chapters, in the order of their files.
    rules: Vec<RuleText>,
    /// Where in `rules` each id is.
    by_id: HashMap<String, usize>,
    /// By the id of the rule.
    evidence: BTreeMap<String, Evidence>,
}

/// What is built in, parsed.
fn book() -> &'static Book {
    // Parsed at the first use: a program that rejects a file without printing the rule never pays for the prose.
    static BOOK: OnceLock<Book> = OnceLock::new();
    BOOK.get_or_init(|| {
        // A chapter that does not parse fails `tests/project/spec.rs`; a released build has none.
        let rules: Vec<RuleText> = SPEC
            .iter()
            .filter_map(|(file, prose)| Some((file.strip_suffix(".md")?, prose)))
            .flat_map(|(chapter, prose)| parse(chapter, prose).unwrap_or_default())
            .collect();
        // A report looks up the text of each rule that it names.
        let by_id = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| (rule.id.clone(), index))
            .collect();
        let mut evidence: BTreeMap<String, Evidence> = EVIDENCE
            .iter()
            // As for chapters: a test holds every file to its form.
            .flat_map(|(_, text)| parse_evidence(text).unwrap_or_default())
            .collect();
        // Verdicts of a rule that has gone since are left out: a test holds the table to the rules.
        for (id, judged) in parse_judged(JUDGED).unwrap_or_default() {
            if let Some(evidence) = evidence.get_mut(&id) {
                // They are in files of their own, because a script writes verdicts and a person evidence.
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
