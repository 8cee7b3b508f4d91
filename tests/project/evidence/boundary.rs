//! The boundaries between releases that a rule states, by its `since`, its `until`, and its text.

use std::collections::BTreeSet;
use tvmspec::release::Release;
use tvmspec::spec::RuleText;

/// Returns the minors of all releases `0.N` with which, by this rule, behaviour changes.
pub(crate) fn boundaries(rule: &RuleText) -> BTreeSet<u8> {
    let mut found = BTreeSet::from([rule.releases.since.minor()]);
    found.insert(rule.releases.until.minor() + 1);
    found.extend(stated(&rule.title));
    found.extend(stated(&rule.text));
    found.extend(since_columns(&rule.text));
    // Only releases that the specification covers.
    found.retain(|&minor| (Release::FIRST.minor() + 1..=Release::LAST.minor()).contains(&minor));
    found
}

/// Returns whether the rule mentions the release after a boundary, or the last one before it, in any words.
pub(crate) fn mentions(rule: &RuleText, boundary: u8) -> bool {
    let words = rule
        .title
        .split_whitespace()
        .chain(rule.text.split_whitespace());
    let named: BTreeSet<u8> = words.filter_map(|word| minor(bare(word))).collect();
    named.contains(&boundary) || named.contains(&(boundary - 1))
}

/// Returns the cells of columns that are called `since`.
fn since_columns(text: &str) -> BTreeSet<u8> {
    let mut found = BTreeSet::new();
    let mut column = None;
    for line in text.lines() {
        let Some(row) = line.strip_prefix('|') else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match column {
            None => column = Some(cells.iter().position(|cell| *cell == "since")),
            Some(at) => found.extend(at.and_then(|at| minor(cells.get(at)?))),
        }
    }
    found
}

/// Returns the boundaries that prose states: `from 0.7 on`, `up to 0.6`, `0.9 to 0.13`, `0.21 alone`, `0.7..0.15`.
fn stated(prose: &str) -> BTreeSet<u8> {
    let mut found = BTreeSet::new();
    let words: Vec<&str> = prose.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let range = word.trim_matches(|sign: char| !sign.is_ascii_digit() && sign != '.');
        let word = bare(word);
        if let Some((since, until)) = range.split_once("..") {
            // Ranges as in the columns of tables.
            found.extend(minor(since));
            found.extend(minor(until).map(|minor| minor + 1));
            continue;
        }
        let Some(minor) = minor(word) else { continue };
        let ends = |word: &str| word.ends_with(|end: char| ".,;:)".contains(end));
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        let before = if ends(before) { "" } else { bare(before) };
        let behind = words.get(at + 1).map_or("", |word| bare(word));
        match before.to_lowercase().as_str() {
            "from" | "since" | "before" => found.insert(minor),
            "to" | "until" | "through" => found.insert(minor + 1),
            _ => false,
        };
        match behind {
            _ if ends(words[at]) => false,
            "on" | "to" | "onwards" => found.insert(minor),
            "alone" | "only" => found.insert(minor) | found.insert(minor + 1),
            _ => false,
        };
    }
    found
}

/// Returns the boundary that a key of evidence names: `10` for 0.10, or words such as `from 0.10`.
pub(crate) fn named(key: &str) -> Option<u8> {
    let mut found = stated(key).into_iter();
    match (key.parse(), found.next(), found.next()) {
        (Ok(minor), None, None) => Some(minor),
        (Err(_), Some(minor), None) => Some(minor),
        (Err(_), None, None) => minor(key),
        _ => None,
    }
}

fn bare(word: &str) -> &str {
    word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric() && sign != '.')
        .trim_end_matches([',', ';', ':', ')', '.'])
}

/// Parses the minor of a release of TVM such as `0.7` or `0.25.0`. Releases of tvm-ffi, 0.1, do not count.
fn minor(word: &str) -> Option<u8> {
    let mut parts = word.strip_prefix("0.")?.split('.');
    let minor = parts.next()?.parse().ok()?;
    let rest = parts.all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    (rest && minor >= Release::FIRST.minor()).then_some(minor)
}

#[test]
fn prose_is_read_as_it_is_meant() {
    for (prose, minors) in [
        ("since 0.8 and up to 0.20, as 0.6 does", &[8, 21][..]),
        ("From 0.7 to 0.9 128 bytes", &[7, 10]),
        ("(0.14 on) a scope; 0.27 crashes", &[14]),
        ("0.21 alone gives `uint` a byte; in 0.12.", &[21, 22]),
        (
            "| 4 | `bfloat` | 0.7..0.15 | 0.18.. | ..0.3",
            &[4, 7, 16, 18],
        ),
        ("apache-tvm-ffi since 0.1.5, before 0.25.0", &[25]),
        ("Before layout 0.22", &[]),
        ("| to, (0.14 on) n |", &[14]),
    ] {
        assert_eq!(
            stated(prose).into_iter().collect::<Vec<_>>(),
            minors,
            "{prose}"
        );
    }
}

#[test]
fn columns_of_tables_are_read_by_their_heading() {
    let text = "A | B\n| layout | since |\n|---|---|\n| 0.22 | 0.8 |\n| 0.7 | |\n\n| layout |\n|---|\n| 0.21 |";
    assert_eq!(since_columns(text), BTreeSet::from([8]));
}

#[test]
fn keys_name_one_boundary() {
    for (key, minor) in [
        ("10", Some(10)),
        ("0.10", Some(10)),
        ("from 0.10", Some(10)),
        ("up to 0.9", Some(10)),
        ("0.7 to 0.9", None),
        ("always", None),
    ] {
        assert_eq!(named(key), minor, "{key}");
    }
}
