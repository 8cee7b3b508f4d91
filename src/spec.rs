//! The specification as data: every rule of every chapter, parsed from the prose that is built in.
//!
//! A rule is a heading `### BLOB-07 Title`, one line of attributes, and text up to the next heading. Reports print that
//! text where a rule is broken, so that nobody has to look it up.

use crate::release::{Release, Releases};
use crate::rule::{Level, Rule};
use std::collections::HashMap;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A numbered rule as the specification states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The id: `BLOB-07`.
    pub id: String,
    /// The chapter: `blob`.
    pub chapter: String,
    /// The heading behind the id.
    pub title: String,
    /// How strongly it binds.
    pub level: Level,
    /// The releases in which it holds.
    pub releases: Releases,
    /// Where it is from: documented, source, observed, inferred.
    pub evidence: String,
    /// The prose below the attributes; may be empty where the title says it all.
    pub text: String,
}

impl RuleText {
    /// The title and the first paragraph of the text, as one line.
    pub fn gist(&self) -> String {
        let first = self.text.split("\n\n").next().unwrap_or_default();
        let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.as_str() {
            "" => self.title.clone(),
            words => format!("{}. {words}", self.title),
        }
    }
}

impl Rule {
    /// What the specification says under this id. `None` only for an id that no chapter has.
    pub fn text(self) -> Option<&'static RuleText> {
        rule(self.id())
    }
}

/// Every rule of every chapter, in the order of the chapters' files and of the rules in them.
pub fn rules() -> &'static [RuleText] {
    &book().rules
}

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static RuleText> {
    let book = book();
    book.by_id.get(id).and_then(|&index| book.rules.get(index))
}

/// The prose of a chapter: the text of `spec/<chapter>.md`.
pub fn chapter(name: &str) -> Option<&'static str> {
    SPEC.iter()
        .find(|(file, _)| file.strip_suffix(".md") == Some(name))
        .map(|(_, text)| *text)
}

/// Reads the rules of one chapter out of its prose.
///
/// # Errors
///
/// Says which heading lacks which attribute, or has an unknown one.
pub fn parse(chapter: &str, prose: &str) -> Result<Vec<RuleText>, String> {
    let mut rules: Vec<RuleText> = Vec::new();
    let mut inside = false;
    let mut lines = prose.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.starts_with('#') {
            inside = false;
        }
        if let Some((id, title)) = heading(line) {
            let attributes = lines.next().map_or("", |(_, line)| line);
            let rule = attributes_of(attributes)
                .map_err(|error| format!("spec/{chapter}.md:{}: {id}: {error}", number + 2))?;
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
        rule.text = rule.text.trim().to_owned();
    }
    Ok(rules)
}

struct Book {
    rules: Vec<RuleText>,
    by_id: HashMap<String, usize>,
}

fn book() -> &'static Book {
    static BOOK: OnceLock<Book> = OnceLock::new();
    BOOK.get_or_init(|| {
        // A chapter that does not parse fails the test below; a released build has none.
        let rules: Vec<RuleText> = SPEC
            .iter()
            .filter_map(|(file, prose)| Some((file.strip_suffix(".md")?, prose)))
            .flat_map(|(chapter, prose)| parse(chapter, prose).unwrap_or_default())
            .collect();
        let by_id = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| (rule.id.clone(), index))
            .collect();
        Book { rules, by_id }
    })
}

/// `### BLOB-07 Title` as id and title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("### ")?;
    let (id, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let (prefix, number) = id.split_once('-')?;
    let named = prefix.len() > 1 && prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let numbered = number.len() > 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    (named && numbered).then_some((id, title.trim()))
}

fn attributes_of(line: &str) -> Result<RuleText, String> {
    let (mut level, mut since, mut until, mut evidence) = (None, None, None, None);
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (name, behind) = rest
            .split_once(':')
            .ok_or_else(|| format!("`{rest}` is not an attribute"))?;
        let behind = behind.trim_start();
        if name == "evidence" {
            evidence = Some(behind.to_owned());
            break;
        }
        let (value, next) = behind.split_once(' ').unwrap_or((behind, ""));
        match name {
            "level" => level = Some(level_of(value)?),
            "since" => since = Some(value.parse::<Release>()?),
            "until" => until = Some(value.parse::<Release>()?),
            _ => return Err(format!("there is no attribute `{name}`")),
        }
        rest = next.trim_start();
    }
    Ok(RuleText {
        id: String::new(),
        chapter: String::new(),
        title: String::new(),
        level: level.ok_or("no level")?,
        releases: Releases {
            since: since.ok_or("no since")?,
            until: until.unwrap_or(Release::LAST),
        },
        evidence: evidence
            .filter(|text| !text.is_empty())
            .ok_or("no evidence")?,
        text: String::new(),
    })
}

fn level_of(word: &str) -> Result<Level, String> {
    match word {
        "MUST" => Ok(Level::Must),
        "SHOULD" => Ok(Level::Should),
        "MAY" => Ok(Level::May),
        "DISPUTED" => Ok(Level::Disputed),
        _ => Err(format!("`{word}` is not a level")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_chapter_parses_and_no_id_is_there_twice() {
        let mut seen = HashSet::new();
        for (file, prose) in SPEC {
            let chapter = file.strip_suffix(".md").unwrap();
            for rule in parse(chapter, prose).unwrap() {
                assert!(seen.insert(rule.id.clone()), "{} is there twice", rule.id);
            }
        }
        assert!(rule("WIRE-01").is_some());
    }

    #[test]
    fn a_rule_has_all_its_attributes_or_is_refused() {
        let good = "### ABC-07 Title here\nlevel: MUST    since: 0.7    until: 0.20    evidence: source a: b\n\nText.\n\n## Next\nno text";
        let rules = parse("abc", good).unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].title, "Title here");
        assert_eq!(rules[0].evidence, "source a: b");
        assert_eq!(rules[0].releases, Releases::between(7, 20));
        assert_eq!(rules[0].text, "Text.");
        for bad in [
            "### ABC-07 T\nsince: 0.7    evidence: x",
            "### ABC-07 T\nlevel: MUST    evidence: x",
            "### ABC-07 T\nlevel: MUST    since: 0.7",
            "### ABC-07 T\nlevel: OUGHT    since: 0.7    evidence: x",
            "### ABC-07 T\n",
        ] {
            assert!(parse("abc", bad).is_err(), "{bad}");
        }
    }
}
