//! A value that was read, together with its oddities.

use super::{Findings, Strictness, Violation};

/// A value, with the oddities that were tolerated when it was read.
///
/// ```
/// use tvmspec::tensor::Params;
///
/// let mut file = std::fs::read("golden/graph/models/v0.8/mlp.params")?;
/// file.push(0);
/// let read = Params::open(&file)?;
/// assert_eq!(read.findings.as_slice()[0].rule.id(), "WIRE-08");
/// // A strict caller takes the value only without findings.
/// assert_eq!(read.strict().unwrap_err().rule().id(), "WIRE-08");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerated<T> {
    /// The value.
    pub value: T,
    /// The oddities, in the order of reading.
    pub findings: Findings,
}

impl<T> Tolerated<T> {
    /// Collects the findings of `read`, which are not errors.
    pub(crate) fn read<E>(
        read: impl FnOnce(&mut Findings) -> Result<T, E>,
    ) -> Result<Tolerated<T>, E> {
        let mut findings = Findings::new(Strictness::Lenient);
        let value = read(&mut findings)?;
        Ok(Tolerated { value, findings })
    }

    /// Returns the value if it has no oddities.
    ///
    /// # Errors
    ///
    /// The first oddity, as the violation of its rule.
    pub fn strict(self) -> Result<T, Violation> {
        match self.findings.as_slice().first() {
            None => Ok(self.value),
            Some(finding) => Err(finding.to_violation()),
        }
    }

    /// Converts the value and keeps the findings.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Tolerated<U> {
        Tolerated {
            value: convert(self.value),
            findings: self.findings,
        }
    }
}
