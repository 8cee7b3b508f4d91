//! What a rule is, and what a violation of one holds.
//!
//! A [`Rule`] is the id of a heading in `spec/<chapter>.md`. Code enforces it through [`Rule::require`], [`Rule::demand`] or
//! [`Findings::note`], which the rule-off check of the suite switches off. Where there is nothing to go on with,
//! [`Rule::broken`] and [`Rule::refused`] make the violation, and what careless code takes instead is a mutant of the suite
//! (`conformance/mutants/`). Nothing else makes a [`Violation`], so no rule can be enforced without a name.

use std::fmt;

/// How strongly a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Breaking it is a violation.
    Must,
    /// A limit of this crate, which no release has: breaking it is a violation here, and nothing of the format.
    Limit,
    /// Breaking it is a finding.
    Should,
    /// A permission.
    May,
    /// Released implementations disagree; the text says how, and which side this crate takes.
    Disputed,
}

impl Level {
    /// Whether breaking a rule of this level is a violation, and not a finding.
    pub const fn binds(self) -> bool {
        matches!(self, Level::Must | Level::Limit)
    }

    /// The word that the specification writes: `MUST`, `LIMIT`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::Limit => "LIMIT",
            Level::Should => "SHOULD",
            Level::May => "MAY",
            Level::Disputed => "DISPUTED",
        }
    }
}

/// The id of a numbered rule, such as `BLOB-07`. Each chapter has a constant for each of its rules, with the rule's title; the
/// text is in `spec/`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(&'static str);

impl Rule {
    /// Names a rule; chapters do this through their rule table.
    pub const fn new(id: &'static str) -> Rule {
        Rule(id)
    }

    /// The id as the specification writes it: `BLOB-07`.
    pub const fn id(self) -> &'static str {
        self.0
    }

    /// Holds the rule: when `kept` is false, a violation of kind [`Kind::Malformed`] at byte `offset`.
    ///
    /// # Errors
    ///
    /// The violation, unless `kept` or the rule-off check has switched the rule off.
    pub fn require(
        self,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        self.require_as(Kind::Malformed, kept, offset, message)
    }

    /// [`Rule::require`] with another kind.
    // Loops over the words of a file hold each of them to a rule: a call each would be half of what they cost.
    #[inline(always)]
    pub(crate) fn require_as(
        self,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept || self.is_off() {
            Ok(())
        } else {
            Err(self.broken(kind, offset, message()))
        }
    }

    /// `Rule::require_as` of a value that was never bytes: the violation has no offset.
    ///
    /// # Errors
    ///
    /// The violation of `kind`, unless `kept` or the rule-off check has switched the rule off.
    pub fn demand(
        self,
        kind: Kind,
        kept: bool,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept || self.is_off() {
            Ok(())
        } else {
            Err(self.refused(kind, message()))
        }
    }

    /// The violation for a place where reading cannot go on.
    #[cold]
    pub fn broken(self, kind: Kind, offset: u64, message: impl Into<String>) -> Violation {
        self.violation(kind, Some(offset), message.into())
    }

    /// A violation by a value, which has no byte offset: what cannot be written, called or run.
    #[cold]
    pub fn refused(self, kind: Kind, message: impl Into<String>) -> Violation {
        self.violation(kind, None, message.into())
    }

    fn violation(self, kind: Kind, offset: Option<u64>, message: String) -> Violation {
        Violation(Box::new(BrokenRule {
            rule: self,
            offset,
            kind,
            message: shortened(message),
            field: String::new(),
        }))
    }

    /// Whether the rule-off check has switched this rule off on this thread, or `fuzz/measure` in this process. Always false
    /// in what users build.
    #[inline]
    fn is_off(self) -> bool {
        #[cfg(test)]
        return off::OFF.get() == Some(self);
        #[cfg(all(fuzzing, not(test)))]
        return off::named() == Some(self.0);
        #[cfg(not(any(test, fuzzing)))]
        false
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The switch of `fuzz/measure`: a variable of the environment, in builds for fuzzing only.
#[cfg(all(fuzzing, not(test)))]
mod off {
    use std::sync::OnceLock;

    /// The id in `TVMSPEC_RULE_OFF`, as it was when the first rule was held.
    pub(super) fn named() -> Option<&'static str> {
        static NAMED: OnceLock<Option<String>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var("TVMSPEC_RULE_OFF").ok());
        named.as_deref()
    }
}

/// The test-only switch behind the rule-off check.
#[cfg(test)]
pub(crate) mod off {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        pub(super) static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Runs `body` with `rule` unenforced on this thread.
    #[cfg(feature = "suite")]
    pub(crate) fn with<T>(rule: Rule, body: impl FnOnce() -> T) -> T {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                OFF.set(None);
            }
        }
        OFF.set(Some(rule));
        let _reset = Reset;
        body()
    }
}

/// `BLOB-07` of `BLOB_07`, when the crate compiles: a rule is written once.
pub(crate) const fn id_of<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut id = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        id[at] = match name.as_bytes()[at] {
            b'_' => b'-',
            byte => byte,
        };
        at += 1;
    }
    id
}

/// Declares the rules of a chapter: a constant for each, and `RULES` with all of them in order.
macro_rules! rules {
    ($($name:ident)*) => {
        $(
            // A rule that no chapter of the specification has does not compile.
            #[doc = include_str!(concat!(env!("OUT_DIR"), "/rules/", stringify!($name), ".md"))]
            pub const $name: $crate::rule::Rule = {
                const ID: [u8; stringify!($name).len()] = $crate::rule::id_of(stringify!($name));
                match std::str::from_utf8(&ID) {
                    Ok(id) => $crate::rule::Rule::new(id),
                    Err(_) => unreachable!(),
                }
            };
        )*
        /// Every rule that this chapter enforces, in order.
        pub const RULES: &[$crate::rule::Rule] = &[$($name),*];
    };
}
pub(crate) use rules;

/// What is wrong, in a word that cases can compare.
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

/// A broken rule: which one, at which byte, and how. One word wide.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(Box<BrokenRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct BrokenRule {
    rule: Rule,
    offset: Option<u64>,
    kind: Kind,
    message: String,
    field: String,
}

impl Violation {
    /// The rule that was broken.
    pub fn rule(&self) -> Rule {
        self.0.rule
    }

    /// Byte offset from the start of the input of the field that breaks the rule; `None` for a value that was never bytes.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The class of the violation.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What is wrong, for people. Free to improve: do not compare it.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the field, such as `module[1].kind`; empty where there is none.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// The same violation, said of the field `path`.
    #[must_use]
    pub(crate) fn in_field(mut self, path: impl Into<String>) -> Violation {
        self.0.field = shortened(path.into());
        self
    }

    /// The same violation with its offset counted from `base` bytes earlier.
    #[must_use]
    pub fn shifted(mut self, base: u64) -> Violation {
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.rule, self.0.message)?;
        match (self.0.offset, self.0.field.as_str()) {
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

/// A text that names what it is about names it by its beginning where that is longer than any name that people give.
fn shortened(mut text: String) -> String {
    const LONGEST: usize = 2_000;
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
}

/// A tolerated oddity: the input is readable, but a rule is broken that is not a MUST, or one that binds the user of what
/// was read (TEN-35).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that was not kept.
    pub rule: Rule,
    /// The class of the violation that it is where it counts as one.
    pub kind: Kind,
    /// Byte offset from the start of the input.
    pub offset: u64,
    /// What is odd, for people.
    pub message: String,
    /// Whether what was read can be used. Where it cannot, a MUST is broken that binds its user, and a verdict of the file
    /// counts a violation (TEN-35).
    pub usable: bool,
}

impl Finding {
    /// The violation that it is where it counts as one.
    pub(crate) fn to_violation(&self) -> Violation {
        self.rule.broken(self.kind, self.offset, &*self.message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (at byte {:#x})",
            self.rule, self.message, self.offset
        )
    }
}

/// Whether an oddity is noted or rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Oddities become findings.
    #[default]
    Lenient,
    /// The first oddity becomes a violation.
    Strict,
}

/// The oddities met while reading one input, in the order met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    omitted: usize,
    /// The rules that were met since the list is full.
    met: Vec<Rule>,
    strictness: Strictness,
}

impl Findings {
    /// How many are kept, and the first of each rule besides. A few bytes can be odd in a thousand places; the rest is counted.
    pub const MOST: usize = 10_000;

    /// Collects under `strictness`.
    pub fn new(strictness: Strictness) -> Findings {
        Findings {
            list: Vec::new(),
            omitted: 0,
            met: Vec::new(),
            strictness,
        }
    }

    /// Notes that `rule` is not kept at `offset`; under [`Strictness::Strict`] that is a violation.
    ///
    /// # Errors
    ///
    /// Under [`Strictness::Strict`], the violation of `rule` at `offset`.
    pub fn note(
        &mut self,
        rule: Rule,
        kind: Kind,
        offset: u64,
        message: impl Into<String>,
    ) -> Result<(), Violation> {
        if rule.is_off() {
            return Ok(());
        }
        let message = message.into();
        if self.strictness == Strictness::Strict {
            return Err(rule.broken(kind, offset, message));
        }
        if self.list.len() >= Findings::MOST && self.has(rule) {
            self.omitted = self.omitted.saturating_add(1);
            return Ok(());
        }
        self.list.push(Finding {
            rule,
            kind,
            offset,
            message: shortened(message),
            usable: true,
        });
        Ok(())
    }

    /// [`Findings::expect`] of a rule without which what was read cannot be used.
    ///
    /// # Errors
    ///
    /// As [`Findings::expect`].
    pub(crate) fn expect_usable(
        &mut self,
        rule: Rule,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let before = self.list.len();
        self.expect(rule, kind, kept, offset, message)?;
        if let Some(noted) = self.list.get_mut(before) {
            noted.usable = false;
        }
        Ok(())
    }

    /// [`Findings::note`] unless `kept`.
    ///
    /// # Errors
    ///
    /// As [`Findings::note`] when not `kept`.
    pub fn expect(
        &mut self,
        rule: Rule,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept {
            Ok(())
        } else {
            self.note(rule, kind, offset, message())
        }
    }

    /// What was found.
    pub fn as_slice(&self) -> &[Finding] {
        &self.list
    }

    /// Whether `rule` is among those that are kept. Asked of a full list only, which has few other rules to come.
    fn has(&mut self, rule: Rule) -> bool {
        if self.met.contains(&rule) {
            return true;
        }
        self.met.push(rule);
        self.list.iter().any(|finding| finding.rule == rule)
    }

    /// How many more there were than [`Findings::MOST`].
    pub(crate) fn omitted(&self) -> usize {
        self.omitted
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
