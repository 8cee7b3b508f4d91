//! Data types as text, in the grammar of the tvm-ffi ABI (VAL-17, VAL-18, VAL-21): that of the newest release, and custom types.

use super::{VAL_17, VAL_18, VAL_21};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::tensor::{Dtype, push_lanes};
use std::sync::OnceLock;

/// The lookup of custom type names (VAL-21). It needs global functions, which a later chapter defines.
pub(crate) struct CustomNames {
    /// Returns the code of a name. For an unknown name, returns the reason.
    pub(crate) code_of: fn(&str) -> Result<i64, String>,
    /// Returns the name of a code. For an unknown code, returns the reason.
    pub(crate) name_of: fn(u8) -> Result<String, String>,
}

static CUSTOM_NAMES: OnceLock<CustomNames> = OnceLock::new();

/// Sets the lookup of custom type names. Only the first call has an effect.
pub(crate) fn know_custom_names(names: CustomNames) {
    CUSTOM_NAMES.get_or_init(|| names);
}

const NOT_REGISTERED: &str = "no function for custom types is registered";

/// Returns the name of the custom type `code` (VAL-21).
pub(crate) fn custom_name(code: u8) -> Result<String, Violation> {
    let named = match CUSTOM_NAMES.get() {
        Some(names) => (names.name_of)(code),
        None => Err(NOT_REGISTERED.to_owned()),
    };
    named.map_err(|why| {
        let message = format!("DataType contains unknown type_code={code}: {why}");
        VAL_21.rejected(Kind::UnknownKind, message)
    })
}

/// Parses the text after `custom`: a name in brackets, bits, lanes (VAL-21).
fn custom(text: &str, rest: &str) -> Result<Dtype, Violation> {
    let malformed = |why: &str| {
        let message = format!("unknown dtype `{text}`: {why}");
        VAL_21.rejected(Kind::Malformed, message)
    };
    let rest = rest
        .strip_prefix('[')
        .ok_or_else(|| malformed("`custom` is followed by `[` and a name"))?;
    let (name, rest) = rest
        .split_once(']')
        .ok_or_else(|| malformed("`]` is missing"))?;
    let code = match CUSTOM_NAMES.get() {
        Some(names) => (names.code_of)(name),
        None => Err(NOT_REGISTERED.to_owned()),
    };
    let code = code.map_err(|why| {
        let message = format!("unknown dtype `{text}`: {why}");
        VAL_21.rejected(Kind::UnknownKind, message)
    })?;
    // VAL-21: upstream truncates the code to eight bits, so that it reads another type.
    let in_range = u8::try_from(code)
        .ok()
        .filter(|code| *code >= Dtype::CUSTOM);
    let Some(code) = in_range else {
        let why = format!("`{name}` has code {code}, and custom types have 129 to 255");
        return Err(malformed(&why));
    };
    // VAL-21: as after `int`, the default is 32 bits. The printed text omits the bits, so every custom type reads back with 32.
    let number = Dtype::parse(&format!("int{rest}"), Release::LAST)
        .map_err(|_| malformed("what follows the name is not bits and lanes"))?;
    Ok(Dtype { code, ..number })
}

/// Parses a data type.
///
/// # Errors
///
/// Returns VAL-17 (malformed) for text that is not a data type. For text that begins with `custom`, returns VAL-21. It is malformed if
/// a name in brackets, bits and lanes do not follow, or if the code of the name is not 129 to 255. It is unknown-kind if this process
/// does not know the name.
pub fn dtype_from_text(text: &str) -> Result<Dtype, Violation> {
    // VAL-21: checked before all other names, so that errors in such a text break VAL-21 instead of VAL-17.
    if let Some(rest) = text.strip_prefix("custom") {
        return custom(text, rest);
    }
    Dtype::parse(text, Release::LAST)
        .map_err(|_| VAL_17.rejected(Kind::Malformed, format!("unknown dtype `{text}`")))
}

/// Returns the text of a data type.
///
/// # Errors
///
/// Returns VAL-18 (malformed) for a code without a name, and VAL-21 (unknown-kind) for a custom type that this process does not know.
pub fn dtype_to_text(dtype: Dtype) -> Result<String, Violation> {
    if dtype.code >= Dtype::CUSTOM {
        let mut text = format!("custom[{}]", custom_name(dtype.code)?);
        push_lanes(&mut text, dtype.lanes, Release::LAST);
        return Ok(text);
    }
    dtype.text(Release::LAST).map_err(|_| {
        let message = format!("DataType contains unknown type_code={}", dtype.code);
        VAL_18.rejected(Kind::Malformed, message)
    })
}
