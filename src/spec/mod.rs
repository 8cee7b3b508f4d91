//! The specification as data: every rule of every chapter, parsed from the embedded prose, and its evidence.
//!
//! A rule is a heading `### BLOB-07 Title`, one line of attributes, and text up to the next heading. Reports print that text with a
//! broken rule, so that nobody has to look it up. `spec/README.md` describes the format.

mod evidence;
mod parse;
mod rule_text;

pub use evidence::Evidence;
pub use parse::parse;
pub(crate) use rule_text::without_links;
pub use rule_text::{Party, RuleText};

use evidence::{JUDGED, parse_evidence, parse_judged};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

// `SPEC`, `EVIDENCE` and `PLACES`, which `build.rs` generates from `spec/` and from the code.
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Returns the evidence for the rule with this id: where it was read or run, or why it is inferred. Returns `None` for an unknown id. A
/// test checks that every rule has evidence.
pub fn evidence(id: &str) -> Option<&'static Evidence> {
    book().evidence.get(id)
}

/// Returns the places in code that name the rule with this id: files below `src/` with lines, without imports. If no code names it,
/// as for a behaviour, returns the comments that do.
pub fn code_locations(id: &str) -> &'static [&'static str] {
    // Sorted by id, because `build.rs` collects the table in a `BTreeMap`.
    PLACES
        .binary_search_by(|(name, _)| (*name).cmp(id))
        .ok()
        .and_then(|at| PLACES.get(at))
        .map_or(&[], |(_, places)| places)
}

/// Returns every rule of every chapter, in the order of the files and of the rules in them.
pub fn rules() -> &'static [RuleText] {
    &book().rules
}

/// Returns the rule with this id, written as `BLOB-07`. Returns `None` for an id that no chapter has.
pub fn rule(id: &str) -> Option<&'static RuleText> {
    let book = book();
    book.by_id.get(id).and_then(|&index| book.rules.get(index))
}

/// Returns the prose of a chapter: the text of `spec/<chapter>.md`. Returns `None` for an unknown chapter.
pub fn chapter(name: &str) -> Option<&'static str> {
    // With so few files, a search is faster than a table.
    SPEC.iter()
        .find(|(file, _)| file.strip_suffix(".md") == Some(name))
        .map(|(_, text)| *text)
}

/// All data parsed from `spec/`, for the lifetime of the process.
struct Book {
    /// The rules of all chapters, in the order of their files.
    rules: Vec<RuleText>,
    /// The index in `rules` by id.
    by_id: HashMap<String, usize>,
    /// The evidence by the id of the rule.
    evidence: BTreeMap<String, Evidence>,
}

/// Returns the parsed data.
fn book() -> &'static Book {
    // Parsed on first use, so that a program that never prints a rule never pays for the prose.
    static BOOK: OnceLock<Book> = OnceLock::new();
    BOOK.get_or_init(|| {
        // `tests/project/spec.rs` fails for a chapter that does not parse, so that a released build has none.
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
            // As for chapters: a test checks the format of every file.
            .flat_map(|(_, text)| parse_evidence(text).unwrap_or_default())
            .collect();
        // Verdicts on a removed rule are ignored. A test compares the table with the rules.
        for (id, judged) in parse_judged(JUDGED).unwrap_or_default() {
            if let Some(evidence) = evidence.get_mut(&id) {
                // They are in separate files, because a script writes verdicts, and people write evidence.
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
