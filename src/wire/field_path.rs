//! The names of fields, as violations and dumps show them: `module[1].kind`.

/// Largest number of names before that of a field. Deeper names are left out, so that paths stay short.
// The specification promises (chapter wire, Operations) that the six outermost vectors are named.
pub(super) const DEPTH: usize = 6;

/// A name, and which element of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSegment {
    /// As the grammar has it.
    pub(super) name: &'static str,
    /// Which element; none where the field is no vector.
    pub(super) index: Option<u64>,
}

impl PathSegment {
    /// Prefixes the path of an inner field with this name.
    pub(super) fn join(&self, field: &str) -> String {
        let name = match self.index {
            Some(index) => format!("{}[{index}]", self.name),
            None => self.name.to_owned(),
        };
        // An element whose own read repeats the name of its vector is that element: `tags[0]`, not `tags[0].tags`.
        if field.is_empty() || field == self.name {
            name
        } else {
            format!("{name}.{field}")
        }
    }
}
