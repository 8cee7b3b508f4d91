//! The kinds that a release declares (TGT-15), read from the tables that `golden/target/make.py` writes.

use super::kind::{KindOption, OptionType, TargetKind};
use super::kind_parsers::built_in;
use crate::release::Release;

/// The kinds of all releases, one per line, with their options below.
const KINDS: &str = include_str!("../../../spec/tables/target_kinds.tsv");
/// The tags of all releases, one per line, each with its object.
const TAGS: &str = include_str!("../../../spec/tables/target_tags.tsv");
/// The name of the row with the options that every kind has.
const COMMON: &str = "*";

impl TargetKind {
    /// Returns the kinds of `release`, in the order in which releases introduced them. Releases before 0.7 have no kinds.
    pub(super) fn all(release: Release) -> impl Iterator<Item = TargetKind> {
        let common = common(release);
        rows(release).map(move |(kind, own)| TargetKind {
            options: common.iter().cloned().chain(own).collect(),
            ..kind
        })
    }

    /// Returns the kind of this name in `release`.
    pub(super) fn find_in_release(release: Release, name: &str) -> Option<TargetKind> {
        TargetKind::all(release).find(|kind| kind.name == name)
    }
}

/// Returns the options that every kind of `release` has.
pub(super) fn common(release: Release) -> Vec<KindOption> {
    let mut found = Vec::new();
    let mut within = false;
    for line in KINDS.lines() {
        match line.strip_prefix('\t') {
            Some(option) if within => found.extend(option_of(option)),
            Some(_) => {}
            // A row belongs to a range of releases. Another row with the same name may follow for another range.
            None => within = row_of(line, release).is_some_and(|row| row.name == COMMON),
        }
    }
    found
}

/// Returns the rows of `release`, each with its own options.
fn rows(release: Release) -> impl Iterator<Item = (TargetKind, Vec<KindOption>)> {
    let mut lines = KINDS.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let row = row_of(lines.next()?, release);
            // The lines below are skipped even if the row belongs to other releases.
            let mut options = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with('\t')) {
                if row.is_some() {
                    options.extend(option_of(line.strip_prefix('\t')?));
                }
            }
            if let Some(kind) = row.filter(|row| row.name != COMMON) {
                return Some((kind, options));
            }
        }
    })
}

/// Parses the kind of a line, if the line applies to `release`.
fn row_of(line: &str, release: Release) -> Option<TargetKind> {
    let mut fields = behind_releases(line, release)?.split('\t');
    let name = fields.next()?;
    let device_type = fields.next()?.parse().ok()?;
    let keys = fields.next()?.split(',').filter(|key| !key.is_empty());
    let parser = built_in(fields.next()?);
    let built_with = fields.next().filter(|folder| !folder.is_empty());
    Some(TargetKind {
        built_with: built_with.map(Into::into),
        parser,
        ..TargetKind::new(name, device_type).keys(keys)
    })
}

/// Returns the rest of a line after its range of releases, if `release` is in the range.
fn behind_releases(line: &str, release: Release) -> Option<&str> {
    let (since, rest) = line.split_once('\t')?;
    let (until, rest) = rest.split_once('\t')?;
    let (since, until): (u8, u8) = (since.parse().ok()?, until.parse().ok()?);
    (since..=until).contains(&release.minor()).then_some(rest)
}

/// Parses an option of the table: name, type, and a default in JSON if the release has one (TGT-06).
fn option_of(line: &str) -> Option<KindOption> {
    let mut fields = line.split('\t');
    Some(KindOption {
        name: fields.next()?.into(),
        option_type: OptionType::of(fields.next()?)?,
        default: fields
            .next()
            .and_then(|text| serde_json::from_str(text).ok()),
    })
}

/// Returns the tags of `release`, each with its object.
pub(super) fn tags(release: Release) -> impl Iterator<Item = (&'static str, &'static str)> {
    TAGS.lines()
        .filter_map(move |line| behind_releases(line, release)?.split_once('\t'))
}
