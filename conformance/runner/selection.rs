//! The selection of cases.

use crate::conformance::case::{Case, Suite};
use crate::conformance::known_failures;
use crate::release::{ParseError, Release};

/// A selection of cases. Empty fields select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// The names of chapters.
    pub chapters: Vec<String>,
    /// Globs for ids.
    pub cases: Vec<String>,
    /// The release in which the cases must hold.
    pub release: Option<Release>,
}

impl Selection {
    /// Returns whether the case is selected.
    pub fn takes(&self, case: &Case) -> bool {
        let chapter = self.chapters.is_empty() || self.chapters.contains(&case.chapter);
        let named = self.cases.is_empty()
            || self
                .cases
                .iter()
                .any(|glob| known_failures::glob(glob, &case.id));
        chapter
            && named
            && self
                .release
                .is_none_or(|release| case.releases.contains(release))
    }
}

/// Returns the selected cases, in order.
///
/// # Errors
///
/// No case is selected; the message names the part of the selection that matches nothing.
pub fn select<'a>(suite: &'a Suite, selection: &Selection) -> Result<Vec<&'a Case>, ParseError> {
    let all = suite.cases.iter();
    let selected: Vec<&Case> = all.filter(|case| selection.takes(case)).collect();
    if selected.is_empty() {
        Err(explain_empty(suite, selection).into())
    } else {
        Ok(selected)
    }
}

/// Explains why a selection is empty: a part of it matches nothing, or no case matches all parts.
fn explain_empty(suite: &Suite, selection: &Selection) -> String {
    let ids = || suite.cases.iter().map(|case| case.id.as_str());
    for chapter in &selection.chapters {
        if !suite.cases.iter().any(|case| case.chapter == *chapter) {
            let mut chapters: Vec<&str> = suite
                .cases
                .iter()
                .map(|case| case.chapter.as_str())
                .collect();
            // Cases are sorted by chapter, so equal names are neighbours.
            chapters.dedup();
            let chapters = chapters.join(", ");
            return format!("no chapter `{chapter}` has cases: there are {chapters}");
        }
    }
    for glob in &selection.cases {
        if ids().any(|id| known_failures::glob(glob, id)) {
            continue;
        }
        let near: Vec<&str> = ids()
            .filter(|id| {
                glob.split(['/', '*', '-'])
                    // Parts of one or two letters occur in almost every id.
                    .any(|part| part.len() > 2 && id.contains(part))
            })
            .take(5)
            .collect();
        return if near.is_empty() {
            format!("no case matches `{glob}`")
        } else {
            format!("no case matches `{glob}`; near are {}", near.join(", "))
        };
    }
    let mut parts = Vec::new();
    if !selection.cases.is_empty() {
        parts.push(format!("matches `{}`", selection.cases.join("` or `")));
    }
    if !selection.chapters.is_empty() {
        parts.push(format!("is in chapter {}", selection.chapters.join(" or ")));
    }
    if let Some(release) = selection.release {
        parts.push(format!("holds in {release}"));
    }
    format!("no case {}", parts.join(" and "))
}
