//! The names of types in the releases, and their error messages.

use super::kind::{OptionType, TargetKind};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::{TGT_01, TGT_03, TGT_22};
use serde_json::Value;

/// Creates the rejection of an empty command line.
pub(super) fn empty() -> Violation {
    // TGT-22: a text of spaces has the same message. In upstream it passes the check for an empty text, and the reader then accesses
    // the first of zero words.
    TGT_22.rejected(Kind::Missing, "Cannot parse empty target string")
}

/// Creates the rejection of a name that no kind has.
pub(super) fn unknown_kind(name: &str) -> Violation {
    TGT_01.rejected(
        Kind::UnknownKind,
        format!("Target kind \"{name}\" is not defined"),
    )
}

/// Returns the location of an error, in the words of the releases.
pub(super) fn error_location(key: &str) -> String {
    format!("Error when parsing target[\"{key}\"]")
}

/// Creates the rejection of an option that the kind does not declare.
pub(super) fn unknown_option(release: Release, kind: &TargetKind, name: &str) -> Violation {
    let names = kind.options.iter().map(|option| option.name.as_str());
    let message = match release.minor() {
        // Upstream lists them in the order of a hash table.
        ..24 => {
            let names: Vec<&str> = names.collect();
            format!(
                "{}: Cannot recognize '{name}'. Candidates are: {}",
                error_location(name),
                names.join(", ")
            )
        }
        _ => {
            let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
            format!(
                "Unknown config option '{name}'. Known options: {}",
                names.join(", ")
            )
        }
    };
    TGT_03.rejected(Kind::Unsupported, message)
}

/// Returns the name that the release gives the type of a value.
pub(super) fn type_key(minor: u8, value: &Value) -> &'static str {
    let by_era = |names: [&'static str; 3]| match minor {
        ..18 => names[0],
        18..21 => names[1],
        _ => names[2],
    };
    match value {
        Value::Null => by_era(["NULL", "NULL", "None"]),
        Value::Bool(_) => by_era(["IntImm", "runtime.BoxBool", "bool"]),
        Value::Number(number) if number.is_i64() => by_era(["IntImm", "runtime.BoxInt", "int"]),
        Value::Number(_) => by_era(["FloatImm", "runtime.BoxFloat", "float"]),
        // VAL-13: short text is stored in the value itself, and has its own type.
        Value::String(text) if text.len() <= 7 => {
            by_era(["runtime.String", "runtime.String", "ffi.SmallStr"])
        }
        Value::String(_) => by_era(["runtime.String", "runtime.String", "ffi.String"]),
        Value::Array(_) => by_era(["Array", "Array", "ffi.Array"]),
        Value::Object(_) => by_era(["Map", "Map", "ffi.Map"]),
    }
}

/// Returns the name of a type in a schema: `Array<str>`.
pub(super) fn schema_name(option_type: &OptionType) -> String {
    match option_type {
        OptionType::Int => "int".into(),
        OptionType::Bool => "bool".into(),
        OptionType::Str => "str".into(),
        OptionType::Target => "target.Target".into(),
        OptionType::Map => "Map<Any, Any>".into(),
        OptionType::List(item) => format!("Array<{}>", schema_name(item)),
    }
}
