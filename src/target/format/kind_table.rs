//! Kinds: what a release declares, read from the tables that `golden/target/make.py` writes.

use super::parsers::{KindParser, built_in};
use super::{TargetConfig, Targets};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::TGT_15;
use serde_json::Value;

/// Kinds of all releases, one a line, their options below.
const KINDS: &str = include_str!("tables/kinds.tsv");
/// Tags of all releases, one a line, with what they are short for.
const TAGS: &str = include_str!("tables/tags.tsv");
/// The name of the row with the options that every kind has.
const COMMON: &str = "*";

/// The type of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionType {
    /// 64 bits; of the command line up to 0.20, 32 bits (TGT-27).
    Int,
    /// A truth value; up to 0.17 a number (TGT-05).
    Bool,
    /// Text.
    Str,
    /// A target.
    Target,
    /// A list.
    List(Box<OptionType>),
    /// Any object.
    Map,
}

impl OptionType {
    /// As the tables write it: `int`, `[str]`.
    fn of(text: &str) -> Option<OptionType> {
        Some(match text {
            "int" => OptionType::Int,
            "bool" => OptionType::Bool,
            "str" => OptionType::Str,
            "target" => OptionType::Target,
            "map" => OptionType::Map,
            list => {
                let inner = list.strip_prefix('[')?.strip_suffix(']')?;
                OptionType::List(Box::new(OptionType::of(inner)?))
            }
        })
    }
}

/// An option of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindOption {
    /// Its name, without dashes in front.
    pub name: String,
    /// What its values are.
    pub option_type: OptionType,
    /// The value where none is stated (TGT-06).
    pub default: Option<Value>,
}

/// A kind of target: `llvm`, `cuda`, or one of your own.
#[derive(Clone, Debug)]
pub struct TargetKind {
    /// Its name.
    pub name: String,
    /// The number of its device type (DEV-01).
    pub device_type: i64,
    /// The keys of its targets (TGT-08).
    pub default_keys: Vec<String>,
    /// Its options in the order of their declaration, those that all kinds have first.
    pub options: Vec<KindOption>,
    /// What has to be built for it to be there, for kinds that not every build has: a folder of `src/relay/backend/contrib`.
    pub built_with: Option<String>,
    /// What the kind adds to its targets and checks of them.
    pub(super) parser: Option<KindParser>,
}

impl TargetKind {
    /// A kind without keys and options of its own.
    pub fn new(name: impl Into<String>, device_type: i64) -> TargetKind {
        TargetKind {
            name: name.into(),
            device_type,
            default_keys: Vec::new(),
            options: Vec::new(),
            built_with: None,
            parser: None,
        }
    }

    /// With these keys.
    #[must_use]
    pub fn keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> TargetKind {
        self.default_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// With this option, behind those that it has.
    #[must_use]
    pub fn option(
        mut self,
        name: impl Into<String>,
        option_type: OptionType,
        default: Option<Value>,
    ) -> TargetKind {
        self.options.push(KindOption {
            name: name.into(),
            option_type,
            default,
        });
        self
    }

    /// With this parser, which a target of the kind goes through: before its options are checked in 0.10 to 0.23, after it in all other
    /// releases.
    #[must_use]
    pub fn parser(
        mut self,
        parser: impl Fn(TargetConfig, &Targets) -> Result<TargetConfig, Violation>
        + Send
        + Sync
        + 'static,
    ) -> TargetKind {
        self.parser = Some(KindParser::new(parser));
        self
    }

    /// The kind that an object describes: `name`, `device_type`, `keys`, and `options`, each with `name`, `type` (`int`, `bool`, `str`,
    /// `target`, `map`, or a list of one of these, as `[str]`) and `default`. All but the first two may be left out.
    ///
    /// # Errors
    ///
    /// TGT-15: missing where there is no name or no device type, type where a member is of another type, unsupported for a member or a
    /// type of an option that there is not.
    pub fn from_json(form: &Value) -> Result<TargetKind, Violation> {
        let wrong = |kind: Kind, message: String| TGT_15.rejected(kind, message);
        let typed = |what: &str| wrong(Kind::Type, format!("{what} of a kind has another type"));
        let known = |object: &TargetConfig, names: &[&str]| {
            let unknown = object.keys().find(|name| !names.contains(&name.as_str()));
            let unknown = unknown.cloned().unwrap_or_default();
            TGT_15.demand(Kind::Unsupported, unknown.is_empty(), || {
                format!(
                    "`{unknown}` is no member of a kind; there are {}",
                    names.join(", ")
                )
            })
        };
        let object = form.as_object().ok_or_else(|| typed("the form"))?;
        // A misspelt `options` would otherwise be a kind without any.
        known(object, &["name", "device_type", "keys", "options"])?;
        let member = |name: &str| {
            let found = object.get(name);
            found.ok_or_else(|| wrong(Kind::Missing, format!("a kind has no `{name}`")))
        };
        let name = member("name")?.as_str().ok_or_else(|| typed("`name`"))?;
        let device_type = member("device_type")?
            .as_i64()
            .ok_or_else(|| typed("`device_type`"))?;
        let mut kind = TargetKind::new(name, device_type);
        for key in list(object, "keys").ok_or_else(|| typed("`keys`"))? {
            let key = key.as_str().ok_or_else(|| typed("a key"))?;
            kind.default_keys.push(key.into());
        }
        for option in list(object, "options").ok_or_else(|| typed("`options`"))? {
            let option = option.as_object().ok_or_else(|| typed("an option"))?;
            known(option, &["name", "type", "default"])?;
            let text = |name: &str| option.get(name).and_then(Value::as_str);
            let (Some(name), Some(of)) = (text("name"), text("type")) else {
                return Err(typed("`name` or `type` of an option"));
            };
            let of = OptionType::of(of).ok_or_else(|| {
                wrong(Kind::Unsupported, format!("no option has the type `{of}`"))
            })?;
            kind = kind.option(name, of, option.get("default").cloned());
        }
        Ok(kind)
    }

    /// The option of this name.
    pub fn find(&self, name: &str) -> Option<&KindOption> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The kinds of `release`, in the order in which releases brought them. None before 0.7.
    pub(super) fn all(release: Release) -> impl Iterator<Item = TargetKind> {
        let common = common(release);
        rows(release).map(move |(kind, own)| TargetKind {
            options: common.iter().cloned().chain(own).collect(),
            ..kind
        })
    }

    /// The kind of this name in `release`.
    pub(super) fn of(release: Release, name: &str) -> Option<TargetKind> {
        TargetKind::all(release).find(|kind| kind.name == name)
    }
}

/// The items of a member that is a list, none where it is left out; `None` where it is of another type.
fn list<'a>(object: &'a TargetConfig, name: &str) -> Option<&'a [Value]> {
    match object.get(name) {
        None => Some(&[]),
        Some(items) => items.as_array().map(Vec::as_slice),
    }
}

/// The options that every kind of `release` has.
pub(super) fn common(release: Release) -> Vec<KindOption> {
    let mut found = Vec::new();
    let mut within = false;
    for line in KINDS.lines() {
        match line.strip_prefix('\t') {
            Some(option) if within => found.extend(option_of(option)),
            Some(_) => {}
            // The row is of a span of releases: another row of the name may follow for another span.
            None => within = row_of(line, release).is_some_and(|row| row.name == COMMON),
        }
    }
    found
}

/// The rows of `release`, each with the options of its own.
fn rows(release: Release) -> impl Iterator<Item = (TargetKind, Vec<KindOption>)> {
    let mut lines = KINDS.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let row = row_of(lines.next()?, release);
            // The lines below are read past even where the row is of other releases.
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

/// The kind of a line, if the line is of `release`.
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

/// What a line has behind its two releases, if `release` is one of them or between.
fn behind_releases(line: &str, release: Release) -> Option<&str> {
    let (since, rest) = line.split_once('\t')?;
    let (until, rest) = rest.split_once('\t')?;
    let (since, until): (u8, u8) = (since.parse().ok()?, until.parse().ok()?);
    (since..=until).contains(&release.minor()).then_some(rest)
}

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

/// The tags of `release`, and what each is short for.
pub(super) fn tags(release: Release) -> impl Iterator<Item = (&'static str, &'static str)> {
    TAGS.lines()
        .filter_map(move |line| behind_releases(line, release)?.split_once('\t'))
}
