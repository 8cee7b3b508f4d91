//! Limits on the memory and time for reading a file, and on the size of the report about it (BLOB-57, BLOB-68).
//!
//! A few bytes can refer to much data. The name of a symbol can be an offset into another name. All members can share one path, and
//! several symbols can give the address of one library binary. The reader of a file spends from one [`Allowance`], also inside nested
//! archives.
//!
//! | resource | for each byte of the file | plus | rule |
//! |---|---|---|---|
//! | inflated | 200 | 1 MiB | BLOB-57 |
//! | kept in memory | 24 | 1 MiB | BLOB-57 |
//! | names of symbols and members | 4 | 1 MiB | BLOB-68 |
//! | library binaries | 4 | 1 MiB | BLOB-68 |
//! | the report | 16 | 16 MiB | BLOB-68 |

use super::{MAX_INFLATION, MAX_KEPT};
use crate::blob::{BLOB_57, BLOB_68};
use crate::rule::{Kind, Rule, Violation};

/// Number of bytes of names, and also of library binaries, that are read for each byte of the file. String tables share tails, and two
/// symbols may name one library binary. Linkers need no more than this.
const MAX_SHARED: u64 = 4;

/// Number of bytes in the report for each byte of the file.
const MAX_LISTED: u64 = 16;

/// Amount that a file may use of each limit regardless of its size. Tar pads even small content to 10 KiB.
const FREE: u64 = 1 << 20;

/// Number of bytes in the report that a file may use regardless of its size.
const FREE_LIST: u64 = 16 << 20;

/// Bytes of one part, one library binary and one symbol in a report, without their names. Measured, and rounded up.
const PART: u64 = 2 << 10;
const BLOB: u64 = 16 << 10;
const SYMBOL: u64 = 256;

/// Number of occurrences of a name in a report: unchanged, in derived values, and in the text of both.
const TIMES: u64 = 4;

/// The remaining limits of one file and all containers inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes that may still be inflated from gzip.
    inflated: u64,
    /// Inflated bytes that may still be kept at one time.
    kept: u64,
    /// Bytes of names that may still be read.
    names: u64,
    /// Bytes of library binaries that may still be found.
    blobs: u64,
    /// Bytes that the report may still take.
    listed: u64,
}

impl Allowance {
    /// Creates the limits for a file of `length` bytes.
    pub(super) fn for_file_length(length: usize) -> Allowance {
        // BLOB-57, BLOB-68: the limits depend on the outermost file, because archives inside it add no bytes.
        let times = |factor: u64, free| (length as u64).saturating_mul(factor).saturating_add(free);
        Allowance {
            inflated: times(MAX_INFLATION, FREE),
            kept: times(MAX_KEPT, FREE),
            names: times(MAX_SHARED, FREE),
            blobs: times(MAX_SHARED, FREE),
            listed: times(MAX_LISTED, FREE_LIST),
        }
    }

    /// Returns the number of bytes that may still be inflated from gzip.
    pub(super) fn inflatable(&self) -> u64 {
        self.inflated
    }

    /// Counts `count` bytes that were inflated from gzip.
    pub(super) fn inflate(&mut self, count: u64, offset: u64) -> Result<(), Violation> {
        spend(&mut self.inflated, count, BLOB_57, offset, || {
            format!(
                "the gzip stream inflates to more than {MAX_INFLATION} bytes for each byte of the file"
            )
        })
    }

    /// Counts `count` inflated bytes that stay in memory.
    pub(super) fn count_retained_bytes(
        &mut self,
        count: u64,
        offset: u64,
    ) -> Result<(), Violation> {
        spend(&mut self.kept, count, BLOB_57, offset, || {
            format!(
                "{count} bytes are to be kept in memory, more than {MAX_KEPT} bytes for each byte of the file"
            )
        })
    }

    /// Gives back `count` bytes that were kept and are now dropped.
    pub(super) fn release(&mut self, count: u64) {
        // BLOB-57: only the bytes that are kept at one time are limited; members are inflated one after the other.
        self.kept = self.kept.saturating_add(count);
    }

    /// Counts a name of `length` bytes, of a symbol or a member.
    pub(super) fn name(&mut self, length: usize, offset: u64) -> Result<(), Violation> {
        spend(&mut self.names, length as u64, BLOB_68, offset, || {
            format!(
                "its names overlap: together they are longer than {MAX_SHARED} bytes for each byte of the file"
            )
        })
    }

    /// Counts a library binary of `length` bytes.
    pub(super) fn blob(&mut self, length: usize, offset: u64) -> Result<(), Violation> {
        // BLOB-68: a report lists the fields of each library binary, which take more space than its bytes.
        self.list(BLOB, offset)?;
        spend(&mut self.blobs, length as u64, BLOB_68, offset, || {
            format!(
                "its library binaries overlap: together they have more than {MAX_SHARED} bytes for each byte of the file"
            )
        })
    }

    /// Counts a member that has a path of `path` bytes.
    pub(super) fn member(&mut self, path: usize, offset: u64) -> Result<(), Violation> {
        // BLOB-68: the whole path counts, because every member below a long path shows all of it.
        self.list(named(PART, path), offset)
    }

    /// Counts a listed symbol that has a name of `length` bytes.
    pub(super) fn symbol(&mut self, length: usize) -> Result<(), Violation> {
        // BLOB-68: a symbol whose name is the tail of another string costs the file only a few bytes.
        self.list(named(SYMBOL, length), 0)
    }

    /// Counts `count` bytes of the report. A few bytes of a file may refer to data that takes kilobytes to report (BLOB-68).
    fn list(&mut self, count: u64, offset: u64) -> Result<(), Violation> {
        spend(&mut self.listed, count, BLOB_68, offset, || {
            format!(
                "the list of what is in it takes more than {MAX_LISTED} bytes for each byte of the file"
            )
        })
    }
}

/// Returns the size of an item in a report: `size` bytes, and a name of `name` bytes that occurs several times.
fn named(size: u64, name: usize) -> u64 {
    (name as u64).saturating_mul(TIMES).saturating_add(size)
}

/// Subtracts `count` from `left`, or reports a violation of `rule` at `offset`, kind limit.
fn spend(
    left: &mut u64,
    count: u64,
    rule: Rule,
    offset: u64,
    message: impl FnOnce() -> String,
) -> Result<(), Violation> {
    rule.require_as(Kind::Limit, count <= *left, offset, message)?;
    *left = left.saturating_sub(count);
    Ok(())
}
