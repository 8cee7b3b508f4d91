//! The parser for the rules in the prose of a chapter.
//!
//! `spec/README.md` describes the format. Prose outside of rules is not parsed.

use super::{Party, RuleText};
use crate::release::{ParseError, Release, Releases};
use crate::rule::{Kind, Level};

/// Parses the rules of one chapter from its prose.
///
/// # Errors
///
/// Returns a [`ParseError`] that names the heading with a missing or unknown attribute.
pub fn parse(chapter: &str, prose: &str) -> Result<Vec<RuleText>, ParseError> {
    let mut rules: Vec<RuleText> = Vec::new();
    let mut inside = false;
    let mut lines = prose.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        // Any heading ends a rule, even one that is not a rule. The text below it is prose of the chapter.
        if line.starts_with('#') {
            inside = false;
        }
        if let Some((id, title)) = heading(line) {
            // At the end of the file the line is empty. It has no attributes, which is an error.
            let attributes = lines.next().map_or("", |(_, line)| line);
            let rule = attributes_of(attributes)
                // `number` is the line of the heading, counted from 0. The attributes are on the next line.
                .map_err(|error| {
                    ParseError::new(format!("spec/{chapter}.md:{}: {id}: {error}", number + 2))
                })?;
            rules.push(RuleText {
                id: id.to_owned(),
                chapter: chapter.to_owned(),
                title: title.to_owned(),
                ..rule
            });
            inside = true;
        } else if inside && let Some(rule) = rules.last_mut() {
            rule.text.push_str(line);
            rule.text.push('\n');
        }
    }
    for rule in &mut rules {
        // The empty lines around the text belong to the layout of the file.
        rule.text = rule.text.trim().to_owned();
    }
    Ok(rules)
}

/// Splits `### BLOB-07 Title` into id and title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("### ")?;
    let (id, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let (prefix, number) = id.split_once('-')?;
    // At least two capitals and two digits, so that `### A-1` and `### Host-side` are headings of prose.
    let named = prefix.len() > 1 && prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let numbered = number.len() > 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    (named && numbered).then_some((id, title.trim()))
}

/// Parses the attributes of a rule: `level`, `who`, `since`, `until`, `kind`, separated by four spaces, with comma-separated lists.
/// Unknown and missing ones are errors, so that a typing error cannot leave a rule without a level.
fn attributes_of(line: &str) -> Result<RuleText, ParseError> {
    let (mut level, mut since, mut until) = (None, None, None);
    let (mut who, mut kinds) = (Vec::new(), Vec::new());
    // Four spaces, because lists have a single space after each comma.
    for attribute in line.split("    ").map(str::trim) {
        let (name, value) = attribute
            .split_once(": ")
            .ok_or_else(|| ParseError::new(format!("`{attribute}` is not an attribute")))?;
        match name {
            "level" => level = Some(level_of(value)?),
            "since" => since = Some(value.parse::<Release>()?),
            "until" => until = Some(value.parse::<Release>()?),
            "who" => {
                who = words(value, "a party that a rule obliges", &Party::ALL, |party| {
                    party.name()
                })?;
            }
            // May be missing, because a rule that rejects nothing has no kinds.
            "kind" => kinds = words(value, "a kind", Kind::ALL, |kind| kind.name())?,
            _ => return Err(ParseError::new(format!("there is no attribute `{name}`"))),
        }
    }
    if who.is_empty() {
        return Err(ParseError::new("no who"));
    }
    Ok(RuleText {
        id: String::new(),
        chapter: String::new(),
        title: String::new(),
        level: level.ok_or("no level")?,
        who,
        releases: Releases {
            since: since.ok_or("no since")?,
            // Without `until`, the rule also holds in the newest known release.
            until: until.unwrap_or(Release::LAST),
        },
        kinds,
        text: String::new(),
    })
}

/// Parses a list of words from `all`, each at most once.
fn words<T: Copy + PartialEq>(
    list: &str,
    what: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, ParseError> {
    let mut found = Vec::new();
    for word in list.split(", ") {
        let one = all
            .iter()
            .copied()
            .find(|one| name(*one) == word)
            .ok_or_else(|| ParseError::new(format!("`{word}` is not {what}")))?;
        // A repetition is a typing error, and the intended word is missing.
        if found.contains(&one) {
            return Err(ParseError::new(format!("`{word}` is there twice")));
        }
        found.push(one);
    }
    Ok(found)
}

/// Parses a level.
fn level_of(word: &str) -> Result<Level, ParseError> {
    match word {
        "MUST" => Ok(Level::Must),
        "LIMIT" => Ok(Level::Limit),
        "SHOULD" => Ok(Level::Should),
        "MAY" => Ok(Level::May),
        "DISPUTED" => Ok(Level::Disputed),
        _ => Err(ParseError::new(format!("`{word}` is not a level"))),
    }
}
