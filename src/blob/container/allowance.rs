//! What a file may cost its reader: memory, time, and the report of what was found (BLOB-57, BLOB-68).
//!
//! A few bytes can name much: a symbol by an offset into another's name, a member by a path that all of its neighbours share, a
//! library binary by its address. The reader of a file spends from one [`Allowance`], at whatever depth of archives.
//!
//! | what | for each byte of the file | besides | rule |
//! |---|---|---|---|
//! | inflated | 200 | 1 MiB | BLOB-57 |
//! | kept in memory | 24 | 1 MiB | BLOB-57 |
//! | names of symbols and members | 4 | 1 MiB | BLOB-68 |
//! | library binaries | 4 | 1 MiB | BLOB-68 |
//! | list of what was found | 16 | 16 MiB | BLOB-68 |

use super::{MAX_INFLATION, MAX_KEPT};
use crate::blob::{BLOB_57, BLOB_68};
use crate::rule::{Kind, Rule, Violation};

/// How many bytes of names, and as many of library binaries, are read for each byte of the file. String tables share tails, and two
/// symbols may name one library binary; more than this no linker gains by it.
const MAX_SHARED: u64 = 4;

/// How many bytes the list of what was found may take for each byte of the file.
const MAX_LISTED: u64 = 16;

/// What a file may have of each in any case. Tar pads to 10 KiB however little is in it.
const FREE: u64 = 1 << 20;

/// What the list of a small file may take.
const FREE_LIST: u64 = 16 << 20;

/// What one part, one library binary and one symbol take in a report, besides their names. Measured, and rounded up.
const PART: u64 = 2 << 10;
const BLOB: u64 = 16 << 10;
const SYMBOL: u64 = 256;

/// How often a name is in a report: as it is, in what is made of it, and in the text of both.
const TIMES: u64 = 4;

/// What is left of the limits of one file, with all that lies in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes that may still come out of gzip.
    inflated: u64,
    /// Bytes out of gzip that may still be kept at a time.
    kept: u64,
    /// Bytes of names that may still be read.
    names: u64,
    /// Bytes of library binaries that may still be found.
    blobs: u64,
    /// Bytes that the report may still take.
    listed: u64,
}

impl Allowance {
    /// That of a file of `length` bytes.
    pub(super) fn of(length: usize) -> Allowance {
        // BLOB-57, BLOB-68: for each byte of the outermost file, because archives inside of it bring no bytes of their own.
        let times = |factor: u64, free| (length as u64).saturating_mul(factor).saturating_add(free);
        Allowance {
            inflated: times(MAX_INFLATION, FREE),
            kept: times(MAX_KEPT, FREE),
            names: times(MAX_SHARED, FREE),
            blobs: times(MAX_SHARED, FREE),
            listed: times(MAX_LISTED, FREE_LIST),
        }
    }

    /// How many bytes may still come out of gzip.
    pub(super) fn inflatable(&self) -> u64 {
        self.inflated
    }

    /// `count` bytes came out of gzip.
    pub(super) fn inflate(&mut self, count: u64, offset: u64) -> Result<(), Violation> {
        spend(&mut self.inflated, count, BLOB_57, offset, || {
            format!(
                "the gzip stream inflates to more than {MAX_INFLATION} bytes for each byte of the file"
            )
        })
    }

    /// `count` bytes that came out of gzip stay in memory.
    pub(super) fn keep(&mut self, count: u64, offset: u64) -> Result<(), Violation> {
        spend(&mut self.kept, count, BLOB_57, offset, || {
            format!(
                "{count} bytes are to be kept in memory, more than {MAX_KEPT} bytes for each byte of the file"
            )
        })
    }

    /// `count` bytes that were kept are dropped.
    pub(super) fn release(&mut self, count: u64) {
        // BLOB-57: only what is kept at a time is bounded; members are inflated one behind the other.
        self.kept = self.kept.saturating_add(count);
    }

    /// A name of `length` bytes was read, of a symbol or a member.
    pub(super) fn name(&mut self, length: usize, offset: u64) -> Result<(), Violation> {
        spend(&mut self.names, length as u64, BLOB_68, offset, || {
            format!(
                "its names overlap: together they are longer than {MAX_SHARED} bytes for each byte of the file"
            )
        })
    }

    /// A library binary of `length` bytes was found.
    pub(super) fn blob(&mut self, length: usize, offset: u64) -> Result<(), Violation> {
        // BLOB-68: a report lists the fields of each, which take more than their bytes.
        self.list(BLOB, offset)?;
        spend(&mut self.blobs, length as u64, BLOB_68, offset, || {
            format!(
                "its library binaries overlap: together they have more than {MAX_SHARED} bytes for each byte of the file"
            )
        })
    }

    /// A member with a path of `path` bytes is visited.
    pub(super) fn member(&mut self, path: usize, offset: u64) -> Result<(), Violation> {
        // BLOB-68: of its whole path: members below one long path each show all of it.
        self.list(named(PART, path), offset)
    }

    /// A symbol with a name of `length` bytes is listed.
    pub(super) fn symbol(&mut self, length: usize) -> Result<(), Violation> {
        // BLOB-68: symbols whose names are tails of one string cost the file a few bytes each.
        self.list(named(SYMBOL, length), 0)
    }

    /// `count` bytes of the list of what was found.
    /// A few bytes may name what takes kilobytes to report (BLOB-68).
    fn list(&mut self, count: u64, offset: u64) -> Result<(), Violation> {
        spend(&mut self.listed, count, BLOB_68, offset, || {
            format!(
                "the list of what is in it takes more than {MAX_LISTED} bytes for each byte of the file"
            )
        })
    }
}

/// Bytes of an item of `size` bytes in a report that has `name` bytes of names.
fn named(size: u64, name: usize) -> u64 {
    (name as u64).saturating_mul(TIMES).saturating_add(size)
}

/// Takes `count` from `left`, or breaks `rule` at `offset`, kind limit.
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
