//! The names of fields in violations and dumps: `module[1].kind`.

/// Largest number of names before the name of a field. Deeper names are left out, to keep paths short.
// The specification guarantees the six outermost names (chapter wire, Operations).
pub(super) const DEPTH: usize = 6;

/// A name in a path, with the index of an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSegment {
    /// The name from the grammar.
    pub(super) name: &'static str,
    /// The index of the element; `None` for a field that is not an element.
    pub(super) index: Option<u64>,
}

impl PathSegment {
    /// Prefixes the path of an inner field with this name.
    pub(super) fn join(&self, field: &str) -> String {
        let name = match self.index {
            Some(index) => format!("{}[{index}]", self.name),
            None => self.name.to_owned(),
        };
        // If the read of an element repeats the name of its vector, the name is shown once: `tags[0]`, not `tags[0].tags`.
        if field.is_empty() || field == self.name {
            name
        } else {
            format!("{name}.{field}")
        }
    }
}
