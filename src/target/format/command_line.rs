//! The command line of 0.7 to 0.23: words, quotes, options, values.

use super::TargetConfig;
use super::kind::{KindOption, OptionType, TargetKind, Targets, insert};
use super::message::{empty, error_location, unknown_kind, unknown_option};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::{TGT_21, TGT_23, TGT_24, TGT_26, TGT_27, TGT_28, TGT_29};
use serde_json::{Value, json};

/// Returns the object that a command line describes.
pub(super) fn read(targets: &Targets, text: &str, depth: usize) -> Result<TargetConfig, Violation> {
    let words = split(targets.release, text, ' ')?;
    // TGT-22: a text of spaces has no word.
    let (name, options) = words.split_first().ok_or_else(empty)?;
    let kind = targets.kind(name).ok_or_else(|| unknown_kind(name))?;
    let mut config = TargetConfig::new();
    insert(&mut config, "kind", name.as_str());
    // TGT-26: from here on the kind is a member like any other.
    let mut rest = options.iter().peekable();
    while let Some(word) = rest.next() {
        let key = undashed(word)?;
        // TGT-25: the next word is the value, unless it is an option itself. A negative number therefore needs `=`.
        let (key, value) = match key.split_once('=') {
            Some((key, value)) => (key, value),
            None => match rest.next_if(|next| !next.starts_with('-')) {
                Some(value) => (key, value.as_str()),
                None => (key, "1"),
            },
        };
        TGT_24.demand(
            Kind::Malformed,
            !key.is_empty() && !value.is_empty(),
            || {
                format!(
                    "Error when parsing target: Empty attribute key or value in \"{key}={value}\""
                )
            },
        )?;
        // TGT-26: `kind` already exists, so `-kind=x` repeats it.
        TGT_26.demand(Kind::Duplicate, !config.contains_key(key), || {
            format!(
                "{}: The key \"{key}\" appears more than once",
                error_location(key)
            )
        })?;
        let option = kind
            .find(key)
            .ok_or_else(|| unknown_option(targets.release, &kind, key))?;
        let value = Reader {
            targets,
            kind: &kind,
            option,
            depth,
        }
        .value(value, &option.option_type, "")?;
        config.insert(key.into(), value);
    }
    Ok(config)
}

/// Returns the name of an option without its dashes, of which there may be any number (TGT-23).
fn undashed(word: &str) -> Result<&str, Violation> {
    let key = word.trim_start_matches('-');
    TGT_23.demand(Kind::Malformed, key.len() < word.len(), || {
        format!("Error when parsing target: Attribute keys should start with '-', not an attribute key: {word}")
    })?;
    TGT_23.demand(Kind::Malformed, !key.is_empty(), || {
        format!("Error when parsing target: Not an attribute key: {word}")
    })?;
    Ok(key)
}

/// A reader for the values of one option.
///
/// The reader calls itself for the items of a list. A target in an option is nested one level deeper (TGT-09).
struct Reader<'a> {
    targets: &'a Targets,
    kind: &'a TargetKind,
    option: &'a KindOption,
    depth: usize,
}

impl Reader<'_> {
    /// Reads a value. `at` is the position inside the value, such as `[2]`.
    fn value(&self, text: &str, wanted: &OptionType, at: &str) -> Result<Value, Violation> {
        let release = self.targets.release;
        // TGT-28: from 0.10 on quotes are removed from a value when it is used, not when words are split.
        let text = if release.minor() < 10 {
            text.to_owned()
        } else {
            interpreted(text)
        };
        match wanted {
            OptionType::Int | OptionType::Bool => {
                let number = number(release, &text).ok_or_else(|| {
                    let message = match release.minor() {
                        ..18 => "Cannot parse into type \"Integer\" from string",
                        _ => "Cannot parse integer from string",
                    };
                    TGT_27.rejected(
                        Kind::Type,
                        format!(
                            "{}{at}: {message}: {text}",
                            error_location(&self.option.name)
                        ),
                    )
                })?;
                // TGT-05: up to 0.17 a bool is stored as the number that was read, including 2.
                let is_bool = *wanted == OptionType::Bool && release.minor() >= 18;
                Ok(if is_bool {
                    (number != 0).into()
                } else {
                    number.into()
                })
            }
            OptionType::Str => {
                let trimmed = text.trim_matches(' ');
                // TGT-28: up to 0.9 a value of spaces crashes upstream or throws. It is not a text.
                TGT_28.demand(
                    Kind::Type,
                    !trimmed.is_empty() || release.minor() >= 10,
                    || {
                        format!(
                            "{}{at}: Cannot parse into type \"String\" from string: {text}",
                            error_location(&self.option.name)
                        )
                    },
                )?;
                Ok(trimmed.into())
            }
            OptionType::Target => {
                let target = self.targets.read_at(&text, self.depth.saturating_add(1))?;
                Ok(json!(target))
            }
            OptionType::List(item) => {
                let mut items = Vec::new();
                for part in split(release, &text, ',')? {
                    // TGT-29: positions count the kept items, because empty words are dropped before.
                    let at = format!("{at}[{}]", items.len());
                    items.push(self.value(&part, item, &at)?);
                }
                Ok(Value::Array(items))
            }
            OptionType::Map => Err(TGT_29.rejected(
                Kind::Unsupported,
                format!(
                    "{}{at}: Unsupported type \"Map\" for parsing from string: {text} (kind {})",
                    error_location(&self.option.name),
                    self.kind.name
                ),
            )),
        }
    }
}

/// Reads a number at the beginning of `text`, as C++ streams do, or a bool in any case of letters (TGT-27).
fn number(release: Release, text: &str) -> Option<i64> {
    let trimmed = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    // TGT-27: C++ reads a number from a stream, so `12abc` is 12.
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let digits: String = unsigned.chars().take_while(char::is_ascii_digit).collect();
    let sign = if trimmed.starts_with('-') { "-" } else { "" };
    let number: Option<i64> = format!("{sign}{digits}").parse().ok();
    // TGT-27: up to 0.20 the number is read into an `int`.
    let fits = |number: &i64| release.minor() >= 21 || i32::try_from(*number).is_ok();
    number
        .filter(fits)
        .or_else(|| match &*text.to_ascii_lowercase() {
            "true" => Some(1),
            "false" => Some(0),
            _ => None,
        })
}

/// Splits at `separator` outside of quotes. Quotes are dropped up to 0.9, and kept from 0.10 on (TGT-21).
pub(super) fn split(
    release: Release,
    text: &str,
    separator: char,
) -> Result<Vec<String>, Violation> {
    if release.minor() == 7 {
        return Ok(unquoted(text, separator));
    }
    let keeps = release.minor() >= 10;
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == separator && !quoted => {
                // TGT-21: an empty word is dropped, including `''` up to 0.9.
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            // TGT-21: a character after a backslash is neither a quote nor a separator.
            '\\' if keeps => {
                word.push(letter);
                word.extend(letters.next());
            }
            // TGT-21: up to 0.9 a backslash is an ordinary character unless a quote follows.
            '\\' if letters.peek() == Some(&'\'') => word.extend(letters.next()),
            '\'' => {
                quoted = !quoted;
                if keeps {
                    word.push(letter);
                }
            }
            _ => word.push(letter),
        }
    }
    TGT_21.demand(Kind::Malformed, !quoted, || {
        "Mismatched quotes '' in string".into()
    })?;
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// Splits a text of 0.7, which has no quotes (TGT-21). Its words end at any white space; its lists keep empty items except at the
/// end.
fn unquoted(text: &str, separator: char) -> Vec<String> {
    if separator == ' ' {
        return text.split_ascii_whitespace().map(Into::into).collect();
    }
    let mut parts: Vec<String> = text.split(separator).map(Into::into).collect();
    if parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    parts
}

/// Returns a value without the quotes around it and without escapes. Inside of quotes escapes are kept (TGT-28).
fn interpreted(text: &str) -> String {
    let inner = if is_quoted(text) {
        text.strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
            .unwrap_or(text)
    } else {
        text
    };
    let (mut quoted, mut escaped) = (false, false);
    let mut plain = String::with_capacity(inner.len());
    for letter in inner.chars() {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
            if !quoted {
                continue;
            }
        } else if letter == '\'' {
            quoted = !quoted;
        }
        plain.push(letter);
    }
    plain
}

/// Returns whether one pair of quotes encloses all of `text`.
pub(super) fn is_quoted(text: &str) -> bool {
    let Some(inner) = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
    else {
        return false;
    };
    let mut escaped = false;
    for letter in inner.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' => return false,
            _ => {}
        }
    }
    // TGT-62: an unpaired backslash escapes the last quote.
    !escaped
}
