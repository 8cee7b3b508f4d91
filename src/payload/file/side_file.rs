//! The side file of a device module: the function map of a payload in JSON (PAY-24 to PAY-27).
//!
//! | member | value | rule |
//! |---|---|---|
//! | `tvm_version` | `"0.1.0"` in every release | PAY-24, PAY-25 |
//! | `func_info` | an object with the name of each function and an object with the following members | PAY-24 |
//! | `name` | text, empty up to 0.23 | PAY-24, PAY-07 |
//! | `arg_types` | list of dtypes as text | PAY-24 |
//! | `launch_param_tags` (`thread_axis_tags` up to 0.7) | list of text | PAY-26 |
//! | `arg_extra_tags` | list of integers, from 0.21 on | PAY-27 |

use crate::payload::{DeviceFunction, FunctionInfo, PAY_24, PAY_25, PAY_26, PAY_27, Text};
use crate::release::{Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::Dtype;
use crate::tensor::json::{from_dtype, to_dtype};
use crate::wire::json::with_repeated_names;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The content of a side file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideFile<'a> {
    /// The functions, in the order of the file.
    pub functions: Vec<DeviceFunction<'a>>,
    /// The releases whose readers reject it, with the reason (PAY-25, PAY-26).
    pub rejected: Vec<(Releases, String)>,
}

/// The version that every release writes (PAY-24). It is the version of this format, not of TVM.
const VERSION: &str = "0.1.0";

impl<'a> SideFile<'a> {
    /// Reads the text of a side file.
    ///
    /// # Errors
    ///
    /// Returns PAY-24, kind malformed, for text that is not a JSON object or has a member of a wrong type. Returns PAY-24, kind
    /// missing, without `func_info`, or for a function without `name` or `arg_types`. Returns PAY-26 and PAY-27, kind malformed, for
    /// tags of a wrong type. Under strict findings also PAY-25. The errors have no offset, because JSON is read as a whole.
    pub fn read(text: &[u8], findings: &mut Findings) -> Result<SideFile<'static>, Violation> {
        let (root, repeated) = with_repeated_names(text)
            .map_err(|error| malformed(format!("the side file is not JSON: {error}")))?;
        for name in repeated {
            let message = format!("an object of the side file has a second `{name}`");
            findings.note(PAY_25, Kind::Duplicate, 0, message)?;
        }
        let root = object(&root, "the side file")?;
        let mut rejected = Vec::new();
        // PAY-25: readers up to 0.23 reject both; later readers ignore them.
        let version = root.get("tvm_version").is_some();
        findings.expect(PAY_25, Kind::Missing, version, 0, || {
            "the side file has no `tvm_version`, which readers up to 0.23 reject".to_owned()
        })?;
        if !version {
            rejected.push((
                Releases::between(2, 23),
                "it has no `tvm_version`".to_owned(),
            ));
        }
        // Up to 0.23, the reader is the one of dmlc, as for graphs (GRF-01).
        if let Some(at) = unknown_escape(text) {
            let why = format!(
                "byte {at:#x} begins an escape other than `\\\"`, `\\\\`, `\\n`, `\\r` and `\\t`"
            );
            rejected.push((Releases::between(2, 23), why));
        }
        note_unknown(
            root,
            &["tvm_version", "func_info"],
            "the side file",
            findings,
            &mut rejected,
        )?;
        let functions = object(member(root, "func_info", "the side file")?, "`func_info`")?;
        let functions = functions
            .iter()
            .map(|(key, value)| function(key, value, findings, &mut rejected))
            .collect::<Result<_, _>>()?;
        Ok(SideFile {
            functions,
            rejected,
        })
    }

    /// Returns the text as `release` writes it: in the style of dmlc's JSON up to 0.23, and of tvm-ffi's from 0.24 on (PAY-24).
    pub fn to_text(&self, release: Release) -> String {
        let functions = self.functions.iter().map(|function| {
            let info = function_value(&function.info, release);
            (function.key.clone().into_owned(), info)
        });
        let functions: Map<String, Value> = functions.collect();
        let mut root = Map::new();
        root.insert("tvm_version".to_owned(), VERSION.into());
        root.insert("func_info".to_owned(), Value::Object(functions));
        let root = Value::Object(root);
        // PAY-24: any layout can be read; the layout of the release allows comparing files.
        if release >= Release::of(24) {
            return format!("{root:#}");
        }
        let mut text = String::new();
        lines(&root, BraceStyle::Members, 0, true, &mut text);
        text
    }
}

/// Reads one function of `func_info`.
fn function(
    key: &str,
    value: &Value,
    findings: &mut Findings,
    rejected: &mut Vec<(Releases, String)>,
) -> Result<DeviceFunction<'static>, Violation> {
    const KNOWN: [&str; 5] = [
        "name",
        "arg_types",
        "launch_param_tags",
        "thread_axis_tags",
        "arg_extra_tags",
    ];
    let place = format!("function `{key}`");
    let members = object(value, &place)?;
    note_unknown(members, &KNOWN, &place, findings, rejected)?;
    // PAY-25: earlier readers do not know a member that a later release added.
    let since = [("launch_param_tags", 7), ("arg_extra_tags", 20)];
    for (name, until) in since {
        if members.contains_key(name) {
            let why = format!("{place} has `{name}`, which it does not know");
            rejected.push((Releases::between(2, until), why));
        }
    }
    if !members.contains_key("thread_axis_tags") {
        let why = format!("{place} has no `thread_axis_tags`");
        rejected.push((Releases::between(2, 7), why));
    }
    let name = member(members, "name", &place)?
        .as_str()
        .ok_or_else(|| malformed(format!("the name of {place} is not text")))?;
    let types = member(members, "arg_types", &place)?
        .as_array()
        .ok_or_else(|| malformed(format!("`arg_types` of {place} is not a list")))?;
    let arg_types = types
        .iter()
        .map(|dtype| {
            // PAY-24: only text is valid here; the lists that this crate's JSON forms allow are not.
            let dtype = Some(dtype).filter(|dtype| dtype.is_string());
            dtype
                .and_then(|dtype| to_dtype(dtype).ok())
                .ok_or_else(|| malformed(format!("{place} has an argument of no dtype")))
        })
        .collect::<Result<Vec<Dtype>, _>>()?;
    // PAY-26: 0.8 renamed the list and reads both names; a function without either is launched without parameters.
    let tags = members
        .get("launch_param_tags")
        .or_else(|| members.get("thread_axis_tags"));
    let launch_param_tags = tags.map_or(Ok(Vec::new()), |tags| {
        let tags = tags.as_array().and_then(|tags| {
            let texts = tags
                .iter()
                .map(|tag| Some(Cow::Owned(tag.as_str()?.to_owned())));
            texts.collect::<Option<Vec<Text<'static>>>>()
        });
        tags.ok_or_else(|| {
            PAY_26.rejected(
                Kind::Malformed,
                format!("the launch tags of {place} are not a list of texts"),
            )
        })
    })?;
    let extra = members.get("arg_extra_tags");
    let arg_extra_tags = extra.map_or(Ok(Vec::new()), |tags| {
        let tags = tags.as_array().and_then(|tags| {
            let numbers = tags.iter().map(|tag| i32::try_from(tag.as_i64()?).ok());
            numbers.collect::<Option<Vec<i32>>>()
        });
        tags.ok_or_else(|| {
            PAY_27.rejected(
                Kind::Malformed,
                format!("the argument tags of {place} are not a list of integers"),
            )
        })
    })?;
    Ok(DeviceFunction {
        key: Cow::Owned(key.to_owned()),
        info: FunctionInfo {
            name: Cow::Owned(name.to_owned()),
            arg_types,
            launch_param_tags,
            arg_extra_tags,
            second: None,
        },
    })
}

/// Returns a function as `release` writes it.
fn function_value(info: &FunctionInfo<'_>, release: Release) -> Value {
    let mut members = Map::new();
    members.insert("name".to_owned(), info.name.as_ref().into());
    let types = info.arg_types.iter().map(|dtype| from_dtype(*dtype));
    members.insert("arg_types".to_owned(), types.collect());
    // PAY-26: readers before 0.8 reject the new name.
    let tags = if release < Release::of(8) {
        "thread_axis_tags"
    } else {
        "launch_param_tags"
    };
    let values = info
        .launch_param_tags
        .iter()
        .map(|tag| Value::from(tag.as_ref()));
    members.insert(tags.to_owned(), values.collect());
    // PAY-27: readers before 0.21 reject a member that they do not know (PAY-25).
    if release >= Release::of(21) {
        members.insert(
            "arg_extra_tags".to_owned(),
            info.arg_extra_tags.clone().into(),
        );
    }
    Value::Object(members)
}

/// Returns the members of an object.
fn object<'v>(value: &'v Value, place: &str) -> Result<&'v Map<String, Value>, Violation> {
    value
        .as_object()
        .ok_or_else(|| malformed(format!("{place} is not a JSON object")))
}

/// Returns the member `name`.
fn member<'v>(
    members: &'v Map<String, Value>,
    name: &str,
    place: &str,
) -> Result<&'v Value, Violation> {
    members
        .get(name)
        .ok_or_else(|| PAY_24.rejected(Kind::Missing, format!("{place} has no `{name}`")))
}

/// Returns the offset of the first escape in JSON text that dmlc's reader does not know.
fn unknown_escape(text: &[u8]) -> Option<usize> {
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        // A backslash only occurs in strings, and the byte after it belongs to it.
        let known = |escaped: &u8| b"\"\\nrt".contains(escaped);
        if *byte == b'\\' && !bytes.next().is_some_and(|(_, escaped)| known(escaped)) {
            return Some(at);
        }
    }
    None
}

/// Notes each member that readers up to 0.23 do not know (PAY-25).
fn note_unknown(
    members: &Map<String, Value>,
    known: &[&str],
    place: &str,
    findings: &mut Findings,
    rejected: &mut Vec<(Releases, String)>,
) -> Result<(), Violation> {
    for name in members.keys() {
        if !known.contains(&name.as_str()) {
            let why = format!("{place} has `{name}`, which it does not know");
            rejected.push((Releases::between(2, 23), why));
        }
        findings.expect(
            PAY_25,
            Kind::UnknownKind,
            known.contains(&name.as_str()),
            0,
            || format!("{place} has a member `{name}`, which readers up to 0.23 reject"),
        )?;
    }
    Ok(())
}

fn malformed(message: String) -> Violation {
    PAY_24.rejected(Kind::Malformed, message)
}

/// The style in which dmlc's writer breaks lines in a value. The C++ type decides that; here the position in the file replaces it.
#[derive(Clone, Copy, PartialEq)]
enum BraceStyle {
    /// An object with fixed members: one line for each.
    Members,
    /// A map: one line for each entry, if there are at least two.
    Map,
}

/// Appends `value` in the style of dmlc's JSON writer at depth `depth`. `around` is true if the surrounding value has a line for each
/// of its values. Only then is the closing bracket on a separate line.
fn lines(value: &Value, style: BraceStyle, depth: usize, around: bool, text: &mut String) {
    let inner = depth.saturating_add(1);
    match value {
        Value::Object(members) => {
            let broken = style == BraceStyle::Members || members.len() > 1;
            // The values of a map of functions are objects with fixed members, at any depth.
            let deeper = match (style, depth) {
                (BraceStyle::Members, 0) => BraceStyle::Map,
                _ => BraceStyle::Members,
            };
            text.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                break_line(broken, inner, text);
                text.push_str(&format!("{}: ", Value::from(name.as_str())));
                lines(value, deeper, inner, broken, text);
            }
            break_line(broken && around && !members.is_empty(), depth, text);
            text.push('}');
        }
        Value::Array(items) => {
            // A list of up to ten numbers is on one line.
            let broken = items.len() > 10 || items.iter().any(Value::is_string);
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                break_line(broken, inner, text);
                lines(item, BraceStyle::Members, inner, broken, text);
            }
            break_line(broken && around && !items.is_empty(), depth, text);
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// Adds a line break and the indentation of `depth` if `broken`.
fn break_line(broken: bool, depth: usize, text: &mut String) {
    if broken {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    }
}
