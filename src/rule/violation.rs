//! A broken rule: its id, its class, the byte and the field.

use super::Rule;
use std::fmt;

/// The class of a violation. A rule states its possible classes (attribute `kind`), and cases compare them. Texts may differ between
/// implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The input ends before the value does, or a count or a length exceeds the input.
    Truncated,
    /// There are bytes after the end.
    Trailing,
    /// The bytes are present, but contradict the rule.
    Malformed,
    /// The value is well-formed, but has a form that cannot be handled or expressed here.
    Unsupported,
    /// A named limit of this implementation is exceeded.
    Limit,
    /// A module kind, type key, opcode or tag has no meaning.
    UnknownKind,
    /// A required part is missing.
    Missing,
    /// A part occurs twice that may occur once.
    Duplicate,
    /// There is a cycle, which is not allowed.
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

    /// Returns the word for cases, JSON and reports: `truncated`, `unknown-kind`, ...
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

/// A distinction that neither the rule nor the class makes, for code of this crate. Without it, that code would have to parse messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// BLOB-06: the unknown kind has the form of a name, so that a vendor may have it.
    VendorKind,
    /// PAY-62, PAY-82, PAY-83: a release after the last known one may have written the header.
    LaterRelease,
    /// TEN-52: the number of bytes is an integer below 0.
    Negative,
    /// TEN-56: a tensor of this shape has no size.
    NoSize,
}

/// A broken rule, with the byte and a description.
///
/// [`Display`](fmt::Display) formats it for people: `kind needs 3 bytes, 1 remain (at byte 0x8, kind) [WIRE-01]`. It has the size of
/// one pointer, because every function that reads returns a `Result` with it.
///
/// ```
/// use tvmspec::blob::Blob;
/// use tvmspec::release::Layout;
///
/// let broken = Blob::read(&[9, 0, 0, 0, 0, 0, 0, 0], Layout::V0_22).unwrap_err();
/// assert_eq!((broken.rule().id(), broken.offset(), broken.field()), ("BLOB-01", Some(0), "nbytes"));
/// assert_eq!(broken.to_string(), format!("{} (at byte 0x0, nbytes) [BLOB-01]", broken.message()));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(Box<BrokenRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct BrokenRule {
    rule: Rule,
    offset: Option<u64>,
    kind: Kind,
    message: String,
    /// `None` if no field was named. An enclosing field then adds no name either.
    field: Option<String>,
    detail: Option<Detail>,
}

impl Violation {
    /// Creates a violation. This is the only constructor; [`Rule`] has the public ones.
    pub(super) fn new(rule: Rule, kind: Kind, offset: Option<u64>, message: String) -> Violation {
        Violation(Box::new(BrokenRule {
            rule,
            offset,
            kind,
            message: shortened(message),
            field: None,
            detail: None,
        }))
    }

    /// Returns the broken rule.
    pub fn rule(&self) -> Rule {
        self.0.rule
    }

    /// Returns the byte offset of the field that breaks the rule, from the start of the input. Chapter `wire` of the specification
    /// defines the exact byte for counts, lengths and texts, under *Operations*.
    ///
    /// Returns `None` for a value that was never bytes, and for an object without a place in the file, such as a symbol without a
    /// section.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the class.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns a description for people, of at most about 2,000 bytes. It may change in any release: compare [`Violation::kind`]
    /// instead.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path of the field, such as `module[1].kind`, in the names of the chapter's grammar; empty if no field is known.
    pub fn field(&self) -> &str {
        self.0.field.as_deref().unwrap_or_default()
    }

    /// Returns the distinction within the rule and the class, if there is one.
    pub(crate) fn detail(&self) -> Option<Detail> {
        self.0.detail
    }

    /// Sets the distinction within the rule and the class; `None` if this violation has none.
    #[must_use]
    pub(crate) fn with_detail(mut self, detail: Option<Detail>) -> Violation {
        self.0.detail = detail;
        self
    }

    /// Sets the field to `path`.
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

    /// Adds `base` to the offset. This turns the violation of a part into one of the whole that has the part at `base`. A violation
    /// without an offset stays without one.
    #[must_use]
    pub fn shifted(mut self, base: u64) -> Violation {
        // Saturating, because format code must not panic. If the offset overflows, the rule and the field still describe the fault.
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match (self.0.offset, self.field()) {
            (Some(offset), "") => write!(f, " (at byte {offset:#x})")?,
            (Some(offset), field) => write!(f, " (at byte {offset:#x}, {field})")?,
            (None, "") => {}
            (None, field) => write!(f, " ({field})")?,
        }
        write!(f, " [{}]", self.0.rule)
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.kind)
    }
}

impl std::error::Error for Violation {}

/// Cuts a long text. A message quotes names of the input, which may be as long as the input.
pub(super) fn shortened(mut text: String) -> String {
    const LONGEST: usize = 2_000;
    if text.len() > LONGEST {
        // `truncate` panics inside a character, and names may contain characters of several bytes.
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
        // The capacity is that of the whole text, and findings store thousands of messages.
        text.shrink_to_fit();
    }
    text
}
