//! TVM releases, and the ranges of them in which a rule or a layout holds.

use std::fmt;
use std::str::FromStr;

/// The error for input that does not parse, such as an unknown release, JSON without a valid value, or an invalid case file. It also
/// covers errors that prevent the suite from starting. It displays the fault, or the known names. A broken rule of a format is a
/// [`Violation`](crate::rule::Violation) instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl ParseError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> ParseError {
        ParseError(text.into())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl From<String> for ParseError {
    fn from(text: String) -> ParseError {
        ParseError(text)
    }
}

impl From<&str> for ParseError {
    fn from(text: &str) -> ParseError {
        ParseError(text.to_owned())
    }
}

/// A conversion for functions that return their error as a text.
impl From<ParseError> for String {
    fn from(error: ParseError) -> String {
        error.0
    }
}

/// A TVM release `0.minor`, from [`Release::FIRST`] to [`Release::LAST`]. Patch releases are not distinguished, because rules apply to
/// minor releases.
///
/// ```
/// use tvmspec::release::{Layout, Release};
///
/// let release: Release = "0.8.0".parse()?;
/// assert!(release < Release::LAST);
/// assert_eq!((release.to_string(), Layout::of(release)), ("0.8".to_owned(), Layout::V0_7));
/// # Ok::<(), tvmspec::release::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(u8);

impl Release {
    /// The oldest release that the specification covers: 0.2.
    pub const FIRST: Release = Release(2);
    /// The newest release that the specification covers: 0.27.
    pub const LAST: Release = Release(27);

    /// Returns release `0.minor`, or `None` outside 0.2 to 0.27. It is a `const fn`, so that tables of releases are checked at compile
    /// time.
    pub const fn new(minor: u8) -> Option<Release> {
        if minor >= Release::FIRST.0 && minor <= Release::LAST.0 {
            Some(Release(minor))
        } else {
            None
        }
    }

    /// Returns release `0.minor`, for the constants of this crate.
    ///
    /// # Panics
    ///
    /// Panics if `minor` is not in 2 to 27. In a constant this is a compile error.
    pub const fn of(minor: u8) -> Release {
        match Release::new(minor) {
            Some(release) => release,
            // In a constant the compiler stops here, so that a mistake in a table is found at once.
            None => panic!("TVM releases run from 0.2 to 0.27"),
        }
    }

    /// Returns the number after `0.`.
    pub const fn minor(self) -> u8 {
        self.0
    }

    /// Returns all releases, oldest first.
    pub fn all() -> impl Iterator<Item = Release> {
        (Release::FIRST.0..=Release::LAST.0).map(Release)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0.{}", self.0)
    }
}

impl FromStr for Release {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || {
            ParseError::new(format!(
                "`{text}` is not a TVM release: 0.2 to 0.27 are covered"
            ))
        };
        // Tags such as `v0.8.0` are accepted too. Text after the second number is ignored.
        let mut parts = text.trim_start_matches('v').split('.');
        if parts.next() != Some("0") {
            return Err(wrong());
        }
        // Text that is not a number fails here, and an unknown release in `new`, with the same message.
        let minor = parts
            .next()
            .filter(|minor| !minor.starts_with('+'))
            .and_then(|minor| minor.parse().ok())
            .ok_or_else(wrong)?;
        Release::new(minor).ok_or_else(wrong)
    }
}

/// The releases from `since` to `until`, both included. Displayed as `0.7..0.20`, `0.22..` or `..0.6`.
///
/// ```
/// use tvmspec::release::{Layout, Release, Releases};
///
/// let range: Releases = "0.7..0.12".parse()?;
/// assert!(range.contains(Release::of(8)));
/// assert_eq!(range.common(Layout::V0_7.releases()), range);
/// # Ok::<(), tvmspec::release::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The first release in the range.
    pub since: Release,
    /// The last release in the range.
    pub until: Release,
}

impl Releases {
    /// Every release that the specification covers.
    pub const ALL: Releases = Releases {
        since: Release::FIRST,
        until: Release::LAST,
    };

    /// Returns the range from `since` to the last release.
    pub const fn from(since: u8) -> Releases {
        Releases {
            since: Release::of(since),
            until: Release::LAST,
        }
    }

    /// Returns the range from `since` to `until`, both included.
    pub const fn between(since: u8, until: u8) -> Releases {
        Releases {
            since: Release::of(since),
            until: Release::of(until),
        }
    }

    /// Returns `0.8` for one release, otherwise the usual text of the range.
    pub fn short(self) -> String {
        if self.since == self.until {
            self.since.to_string()
        } else {
            self.to_string()
        }
    }

    /// Returns the releases that are in both ranges. Without a common release, the end of the result is before its start.
    pub fn common(self, other: Releases) -> Releases {
        Releases {
            since: self.since.max(other.since),
            until: self.until.min(other.until),
        }
    }

    /// Returns the same releases in the fewest ranges, ascending. Ranges that overlap or are adjacent become one.
    #[cfg(feature = "inspect")]
    pub(crate) fn joined(ranges: impl Iterator<Item = Releases>) -> Vec<Releases> {
        let mut ranges: Vec<Releases> = ranges.collect();
        ranges.sort_by_key(|range| range.since);
        ranges.dedup_by(|next, last| {
            let touches = last.until.minor().saturating_add(1) >= next.since.minor();
            if touches {
                last.until = last.until.max(next.until);
            }
            touches
        });
        ranges
    }

    /// Returns whether the range contains `release`.
    pub fn contains(self, release: Release) -> bool {
        self.since <= release && release <= self.until
    }
}

impl fmt::Display for Releases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only an end that restricts the range is written. A range to the newest release is open for future ones.
        if self.since > Release::FIRST {
            write!(f, "{}", self.since)?;
        }
        f.write_str("..")?;
        if self.until < Release::LAST {
            write!(f, "{}", self.until)?;
        }
        Ok(())
    }
}

impl FromStr for Releases {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        // A single release is a range too.
        let Some((since, until)) = text.split_once("..") else {
            let release = text.parse()?;
            return Ok(Releases {
                since: release,
                until: release,
            });
        };
        let since = if since.is_empty() {
            Release::FIRST
        } else {
            since.parse()?
        };
        let until = if until.is_empty() {
            Release::LAST
        } else {
            until.parse()?
        };
        // An empty range is a mistake of the rule or the kind that states it.
        if since > until {
            Err(ParseError::new(format!("`{text}` runs backwards")))
        } else {
            Ok(Releases { since, until })
        }
    }
}

/// The layouts of the library binary, named after the release that introduced each.
///
/// ```
/// use tvmspec::release::Layout;
///
/// assert_eq!(Layout::V0_7.releases().to_string(), "0.7..0.20");
/// assert_eq!("0.22".parse(), Ok(Layout::V0_22));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// 0.2 to 0.6: count and payloads; the root is not an entry, there is no tree.
    V0_2,
    /// 0.7 to 0.20: count, payloads, `_lib`, and a last entry `_import_tree`.
    V0_7,
    /// 0.21: the bytes of 0.7 under another symbol, with another form of function information.
    V0_21,
    /// 0.22 and later: the tree first, then kinds and payloads with their lengths.
    V0_22,
}

impl Layout {
    /// Every layout, oldest first.
    pub const ALL: [Layout; 4] = [Layout::V0_2, Layout::V0_7, Layout::V0_21, Layout::V0_22];

    /// Returns the name: `0.2`, `0.7`, `0.21` or `0.22`.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::V0_2 => "0.2",
            Layout::V0_7 => "0.7",
            Layout::V0_21 => "0.21",
            Layout::V0_22 => "0.22",
        }
    }

    /// Returns the releases that write it.
    pub const fn releases(self) -> Releases {
        match self {
            // BLOB-50: 0.2 and 0.7 use the same symbol, which alone does not distinguish these ranges.
            Layout::V0_2 => Releases::between(2, 6),
            Layout::V0_7 => Releases::between(7, 20),
            Layout::V0_21 => Releases::between(21, 21),
            Layout::V0_22 => Releases::from(22),
        }
    }

    /// Returns the layout that `release` writes.
    pub const fn of(release: Release) -> Layout {
        match release.minor() {
            // BLOB-50: the layout changed only with 0.7, 0.21 and 0.22.
            ..=6 => Layout::V0_2,
            7..=20 => Layout::V0_7,
            // Only one release, between the move to tvm-ffi and the new layout of the library binary.
            21 => Layout::V0_21,
            // BLOB-10: the tree moved to the start, and no later release has changed the order.
            22.. => Layout::V0_22,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layout {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        // Only the four names parse: `0.8` is a release but not a layout. `Layout::of` returns the layout of a release.
        let known = Layout::ALL.into_iter().find(|layout| layout.name() == text);
        known.ok_or_else(|| {
            let [first, second, third, last] = Layout::ALL.map(Layout::name);
            ParseError::new(format!(
                "`{text}` is not a layout: expected {first}, {second}, {third} or {last}"
            ))
        })
    }
}
