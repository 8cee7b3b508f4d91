//! The names of fields, as violations and dumps show them: `module[1].kind`.

use std::fmt;

/// Where in the structure a cursor is, without allocation: deeper segments than it holds are left out of names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldPath {
    /// The outermost first; only the first `length` count.
    segments: [PathSegment; FieldPath::DEPTH],
    /// How many are in use. Setting it back leaves a level.
    pub(super) length: usize,
}

/// A name, and which element of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathSegment {
    /// As the grammar has it.
    pub(super) name: &'static str,
    /// Which element; none where the field is no vector.
    pub(super) index: Option<u64>,
}

impl FieldPath {
    // What the specification promises (chapter wire, Operations): the six outermost vectors are named. A fixed number keeps
    // a cursor free of allocation: it is cloned for every window.
    const DEPTH: usize = 6;

    /// Goes one deeper.
    pub(super) fn push(&mut self, segment: PathSegment) {
        // Deeper ones are left out: names get shorter, and reading goes on.
        if let Some(slot) = self.segments.get_mut(self.length) {
            *slot = segment;
            self.length = self.length.saturating_add(1);
        }
    }

    /// The path of `field` here, names with dots between.
    pub(super) fn join(&self, field: &str) -> String {
        let mut names: Vec<String> = self
            .segments
            .iter()
            .take(self.length)
            .map(PathSegment::to_string)
            .collect();
        // An element whose own read repeats the name of its vector is that element: `tags[0]`, not `tags[0].tags`.
        let repeats = self
            .segments
            // At depth 0 this is no index, and nothing repeats.
            .get(self.length.wrapping_sub(1))
            .is_some_and(|last| last.name == field);
        if !field.is_empty() && !repeats {
            names.push(field.to_owned());
        }
        names.join(".")
    }
}

impl fmt::Display for PathSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}
