//! From the prose of a chapter to its rules.
//!
//! The form is that of `spec/README.md`. Prose outside of rules is not read.

use super::{Party, RuleText};
use crate::release::{ParseError, Release, Releases};
use crate::rule::{Kind, Level};

/// Reads the rules of one chapter out of its prose.
///
/// # Errors
///
/// A [`ParseError`]: which heading lacks which attribute, or has an unknown one.
pub fn parse(chapter: &str, prose: &str) -> Result<Vec<RuleText>, ParseError> {
    let mut rules: Vec<RuleText> = Vec::new();
    let mut inside = false;
    let mut lines = prose.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        // Any heading ends a rule, one that is no rule too: what is below it is prose of the chapter.
        if line.starts_with('#') {
            inside = false;
        }
        if let Some((id, title)) = heading(line) {
            // At the end of the file the line is empty, which is no attribute and so an error.
            let attributes = lines.next().map_or("", |(_, line)| line);
            let rule = attributes_of(attributes)
                // `number` counts from 0 and is that of the heading; the attributes are on the line below.
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

/// `### BLOB-07 Title` as id and title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("### ")?;
    let (id, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let (prefix, number) = id.split_once('-')?;
    // Two capitals and two digits at least: `### A-1` or `### Host-side` is a heading of prose.
    let named = prefix.len() > 1 && prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let numbered = number.len() > 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    (named && numbered).then_some((id, title.trim()))
}

/// The attributes of a rule, and nothing else of it: `level`, `who`, `since`, `until`, `kind`, four spaces apart, lists with commas.
/// Unknown and missing ones are errors, so that a slip of the pen is no rule without a level.
fn attributes_of(line: &str) -> Result<RuleText, ParseError> {
    let (mut level, mut since, mut until) = (None, None, None);
    let (mut who, mut kinds) = (Vec::new(), Vec::new());
    // Four spaces, because the values of a list have single ones behind their commas.
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
            // A rule that rejects nothing has no kinds: this one may be missing.
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
            // Without `until` the rule holds in the newest release that the crate knows.
            until: until.unwrap_or(Release::LAST),
        },
        kinds,
        text: String::new(),
    })
}

/// A list of words out of `all`, each once.
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
        // Twice is a slip of the pen, behind which the word that was meant is missing.
        if found.contains(&one) {
            return Err(ParseError::new(format!("`{word}` is there twice")));
        }
        found.push(one);
    }
    Ok(found)
}

/// The level that a word names.
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
