//! A broken rule: which one, of what class, at which byte, in which field.

use super::Rule;
use std::fmt;

/// The class of a violation. A rule states which classes breaking it may have (attribute `kind`), and cases compare them; texts are
/// free to differ between implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The input ends before the value does, or a count or length promises more than there is.
    Truncated,
    /// Bytes follow where none may.
    Trailing,
    /// The bytes are there but say something that the rule forbids.
    Malformed,
    /// Well-formed, but of a form that cannot be handled or expressed here.
    Unsupported,
    /// Beyond a named limit of this implementation.
    Limit,
    /// A module kind, type key, opcode or tag without a meaning.
    UnknownKind,
    /// Something required is absent.
    Missing,
    /// Something is there twice that may be there once.
    Duplicate,
    /// A cycle where there must be none.
    Cycle,
    /// A value has the wrong type, or an argument is wrong.
    Type,
}

impl Kind {
    /// Every kind that a case can name.
    pub const ALL: &[Kind] = &[
        Kind::Truncated,
        Kind::Trailing,
        Kind::Malformed,
        Kind::Unsupported,
        Kind::Limit,
        Kind::UnknownKind,
        Kind::Missing,
        Kind::Duplicate,
        Kind::Cycle,
        Kind::Type,
    ];

    /// The word that cases, JSON and reports use: `truncated`, `unknown-kind`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Truncated => "truncated",
            Kind::Trailing => "trailing",
            Kind::Malformed => "malformed",
            Kind::Unsupported => "unsupported",
            Kind::Limit => "limit",
            Kind::UnknownKind => "unknown-kind",
            Kind::Missing => "missing",
            Kind::Duplicate => "duplicate",
            Kind::Cycle => "cycle",
            Kind::Type => "type",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule: which one, at which byte, and how.
///
/// [`Display`](fmt::Display) writes it for people: `WIRE-01: kind needs 3 bytes, 1 remain (at byte 0x8, kind)`. It is one word
/// wide, because every function that reads returns a `Result` of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(Box<BrokenRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct BrokenRule {
    rule: Rule,
    offset: Option<u64>,
    kind: Kind,
    message: String,
    /// `None` where no field was named: the fields around it do not name it either.
    field: Option<String>,
}

impl Violation {
    /// The only maker; [`Rule`] has the public ones.
    pub(super) fn new(rule: Rule, kind: Kind, offset: Option<u64>, message: String) -> Violation {
        Violation(Box::new(BrokenRule {
            rule,
            offset,
            kind,
            message: shortened(message),
            field: None,
        }))
    }

    /// The rule that was broken.
    pub fn rule(&self) -> Rule {
        self.0.rule
    }

    /// Byte offset of the field that breaks the rule, from the start of the input. What exactly that is where a count, a length or
    /// a text is at fault, chapter `wire` of the specification says under *Operations*.
    ///
    /// `None` for a value that was never bytes, and for what has no place in the file, such as a symbol without a section.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The class.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What is wrong, for people: at most about 2,000 bytes. It may change in any release: compare [`Violation::kind`].
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the field, such as `module[1].kind`, in the names of the chapter's grammar; empty where there is none.
    pub fn field(&self) -> &str {
        self.0.field.as_deref().unwrap_or_default()
    }

    /// The same violation, of the field `path`.
    #[must_use]
    pub(crate) fn in_field(mut self, path: impl Into<String>) -> Violation {
        self.0.field = Some(shortened(path.into()));
        self
    }

    /// Returns the violation with its field, if it has one, replaced by the result of `outer`.
    pub(crate) fn map_field(mut self, outer: impl FnOnce(&str) -> String) -> Violation {
        if let Some(field) = &mut self.0.field {
            *field = outer(field);
        }
        self
    }

    /// The same violation with `base` added to its offset: what was found in a part, as one of the whole that has the part at
    /// `base`. Without an offset it stays without.
    #[must_use]
    pub fn shifted(mut self, base: u64) -> Violation {
        // Saturating: format code may not panic, and the rule and the field still say what is wrong where a place overflows.
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.rule, self.0.message)?;
        match (self.0.offset, self.field()) {
            (Some(offset), "") => write!(f, " (at byte {offset:#x})"),
            (Some(offset), field) => write!(f, " (at byte {offset:#x}, {field})"),
            (None, "") => Ok(()),
            (None, field) => write!(f, " ({field})"),
        }
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.0.kind)
    }
}

impl std::error::Error for Violation {}

/// The text, or its beginning: a message quotes names of the input, which may be as long as the input.
pub(super) fn shortened(mut text: String) -> String {
    const LONGEST: usize = 2_000;
    if text.len() > LONGEST {
        // `truncate` panics inside a letter, and names of the input may have letters of several bytes.
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
        // The capacity is still that of the whole text, and findings keep thousands of messages.
        text.shrink_to_fit();
    }
    text
}
