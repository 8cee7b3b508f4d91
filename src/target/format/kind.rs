//! Kinds of targets, and the set of kinds of a release.

use super::TargetConfig;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::TGT_15;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionType {
    /// An integer of 64 bits; in the command line up to 0.20, of 32 bits (TGT-27).
    Int,
    /// A bool; up to 0.17 a number (TGT-05).
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
    /// Parses the notation of the tables: `int`, `[str]`.
    pub(super) fn of(text: &str) -> Option<OptionType> {
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

    /// Returns whether `value` is of this type, without a conversion.
    fn has(&self, value: &Value) -> bool {
        match self {
            OptionType::Int => value.is_i64(),
            OptionType::Bool => value.is_boolean(),
            OptionType::Str => value.is_string(),
            // TGT-20: a target is a text or a configuration.
            OptionType::Target => value.is_string() || value.is_object(),
            OptionType::Map => value.is_object(),
            OptionType::List(inner) => {
                let items = value.as_array();
                items.is_some_and(|items| items.iter().all(|item| inner.has(item)))
            }
        }
    }
}

/// An option of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindOption {
    /// The name, without leading dashes.
    pub name: String,
    /// The type of its values.
    pub option_type: OptionType,
    /// The value if none is stated (TGT-06).
    pub default: Option<Value>,
}

/// A kind of target: `llvm`, `cuda`, or a registered one.
#[derive(Clone, Debug)]
pub struct TargetKind {
    /// The name.
    pub name: String,
    /// The number of the device type (DEV-01).
    pub device_type: i64,
    /// The keys of its targets (TGT-08).
    pub default_keys: Vec<String>,
    /// The options in the order of their declaration, with the common options of all kinds first.
    pub options: Vec<KindOption>,
    /// The part of upstream that must be built in, for kinds that not every build has: a folder of `src/relay/backend/contrib`.
    pub built_with: Option<String>,
    /// The parser of the kind, which adds options to targets and checks them.
    pub(super) parser: Option<KindParser>,
}

impl TargetKind {
    /// Creates a kind without its own keys and options.
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

    /// Sets the keys.
    #[must_use]
    pub fn keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> TargetKind {
        self.default_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an option after the existing ones.
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

    /// Sets the parser, which processes each target of the kind. It runs before the options are checked in 0.10 to 0.23, and after
    /// that in all other releases.
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

    /// Creates a kind from its JSON description with the members `name`, `device_type`, `keys` and `options`. Each option has
    /// `name`, `type` (`int`, `bool`, `str`, `target`, `map`, or a list of one of these, as `[str]`) and `default`. Only `name` and
    /// `device_type` are required.
    ///
    /// # Errors
    ///
    /// Returns TGT-15, missing, if there is no name or no device type. Returns TGT-15, type, if a member or a default has another type.
    /// Returns TGT-15, unsupported, for an unknown member or an unknown type of an option.
    pub fn from_json(form: &Value) -> Result<TargetKind, Violation> {
        // TGT-15: in releases a kind is declared in C++ at compile time. This form and its errors belong to this crate.
        let wrong = |kind: Kind, message: String| TGT_15.rejected(kind, message);
        let typed = |what: &str| wrong(Kind::Type, format!("{what} of a kind has another type"));
        let known = |object: &TargetConfig, names: &[&str]| {
            let unknown = object.keys().find(|name| !names.contains(&name.as_str()));
            let unknown = unknown.cloned().unwrap_or_default();
            TGT_15.demand(Kind::Unsupported, unknown.is_empty(), || {
                format!(
                    "`{unknown}` is not a member of a kind; there are {}",
                    names.join(", ")
                )
            })
        };
        let object = form.as_object().ok_or_else(|| typed("the form"))?;
        // A misspelt `options` would otherwise give a kind without options.
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
            let default = option.get("default");
            if default.is_some_and(|default| !of.has(default)) {
                return Err(typed("a default"));
            }
            kind = kind.option(name, of, default.cloned());
        }
        Ok(kind)
    }

    /// Returns the option of this name.
    pub fn find(&self, name: &str) -> Option<&KindOption> {
        self.options.iter().find(|option| option.name == name)
    }
}

/// The body of a parser. Its arguments are the members and the targets, and it returns the members of the target.
type ParserBody = dyn Fn(TargetConfig, &Targets) -> Result<TargetConfig, Violation> + Send + Sync;

/// The parser of a kind, which adds members to a target and checks them.
#[derive(Clone)]
pub struct KindParser(Arc<ParserBody>);

impl KindParser {
    /// Creates a parser with this body, which takes the stated members and returns those of the target.
    pub fn new(
        body: impl Fn(TargetConfig, &Targets) -> Result<TargetConfig, Violation> + Send + Sync + 'static,
    ) -> KindParser {
        KindParser(Arc::new(body))
    }

    /// Returns the members of the target that `config` names.
    pub(super) fn apply(
        &self,
        config: TargetConfig,
        targets: &Targets,
    ) -> Result<TargetConfig, Violation> {
        (self.0)(config, targets)
    }
}

impl fmt::Debug for KindParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KindParser")
    }
}

/// The properties of a machine that targets depend on.
///
/// Upstream asks drivers and LLVM. Here the caller states their answers, so that a target is the same on every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMachine {
    /// The default triple of LLVM (TGT-54); empty without LLVM.
    pub triple: String,
    /// The architecture of the first CUDA device, such as `sm_86` (TGT-50, TGT-51).
    pub cuda_arch: Option<String>,
    /// The architecture of the first ROCm device, such as `gfx90a` (TGT-52).
    pub rocm_arch: Option<String>,
    /// The name that LLVM gives the processor, such as `skylake` (TGT-59); `None` without LLVM.
    pub cpu: Option<String>,
    /// The devices of each device type whose driver is installed, in the order of their numbers. A device is the map of its answers
    /// to the names of options (TGT-58). A missing type has no driver.
    pub devices: BTreeMap<i64, Vec<TargetConfig>>,
}

/// The kinds and tags of a release, and those that are registered in addition.
#[derive(Clone, Debug)]
pub struct Targets {
    pub(super) release: Release,
    pub(super) machine: HostMachine,
    pub(super) kinds: Vec<TargetKind>,
    pub(super) tags: Vec<(String, TargetConfig)>,
}

/// Adds a text member.
pub(super) fn insert(config: &mut TargetConfig, name: &str, text: &str) {
    config.insert(name.into(), text.into());
}

/// Returns the items of a list member; empty if the member is missing, `None` if it has another type.
fn list<'a>(object: &'a TargetConfig, name: &str) -> Option<&'a [Value]> {
    match object.get(name) {
        None => Some(&[]),
        Some(items) => items.as_array().map(Vec::as_slice),
    }
}
