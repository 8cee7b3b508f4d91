//! A value with the place where it was read, so that a check needs neither an offset nor a field name.

use crate::rule::{Findings, Kind, Rule, Violation};
use std::ops::Deref;

/// A value that was read, the offset of its first byte, and the name of its field. `*` returns the value of a number or a string.
///
/// ```
/// use tvmspec::tensor::rules::TEN_21;
/// use tvmspec::wire::Cursor;
///
/// let ndim = Cursor::new(b"\xfe\xff\xff\xff").i32("ndim", TEN_21)?;
/// let broken = ndim.require(TEN_21, |ndim| *ndim >= 0, |ndim| format!("{ndim} dimensions"));
/// assert_eq!(broken.unwrap_err().to_string(), "-2 dimensions (at byte 0x0, ndim) [TEN-21]");
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReadValue<'f, T> {
    value: T,
    offset: u64,
    field: &'f str,
}

impl<'f, T> ReadValue<'f, T> {
    /// Creates the value of `field`, whose first byte is at `offset`.
    #[inline]
    pub(crate) fn new(value: T, offset: u64, field: &'f str) -> ReadValue<'f, T> {
        ReadValue {
            value,
            offset,
            field,
        }
    }

    /// Returns the absolute offset of the first byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the value without its place.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Checks the value against `rule` and returns it if `kept` accepts it. The message is created only otherwise.
    ///
    /// # Errors
    ///
    /// Returns the violation of `rule` at this field, of kind [`Kind::Malformed`].
    #[inline]
    pub fn require(
        self,
        rule: Rule,
        kept: impl FnOnce(&T) -> bool,
        message: impl FnOnce(&T) -> String,
    ) -> Result<T, Violation> {
        self.require_as(Kind::Malformed, rule, kept, message)
    }

    /// Checks like [`ReadValue::require`], but with another kind of violation.
    ///
    /// # Errors
    ///
    /// Returns the violation of `rule` at this field, of `kind`.
    #[inline]
    pub fn require_as(
        self,
        kind: Kind,
        rule: Rule,
        kept: impl FnOnce(&T) -> bool,
        message: impl FnOnce(&T) -> String,
    ) -> Result<T, Violation> {
        let kept = kept(&self.value);
        match rule.require_as(kind, kept, self.offset, || message(&self.value)) {
            Ok(()) => Ok(self.value),
            Err(broken) => Err(broken.in_field(self.field)),
        }
    }

    /// Returns the value, and notes a violation of `rule` in `findings` unless `kept` accepts it.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Findings::note`], if `kept` does not accept the value.
    pub fn expect(
        self,
        findings: &mut Findings,
        rule: Rule,
        kind: Kind,
        kept: impl FnOnce(&T) -> bool,
        message: impl FnOnce(&T) -> String,
    ) -> Result<T, Violation> {
        let kept = kept(&self.value);
        findings.expect(rule, kind, kept, self.offset, || message(&self.value))?;
        Ok(self.value)
    }

    /// Creates the violation of `rule` at this field, for a caller that has no valid value to continue with.
    #[cold]
    pub fn broken(&self, rule: Rule, kind: Kind, message: impl Into<String>) -> Violation {
        rule.broken(kind, self.offset, message).in_field(self.field)
    }
}

impl<T> Deref for ReadValue<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
