//! The names of custom data types (VAL-21): global functions that the library with these types registers.

use super::lookup;
use crate::function::Error;
use crate::value::{Any, Argument, CustomNames, cast, know_custom_names};

/// The function that returns the code of a name: its name from 0.21 on, and that in 0.6 to 0.20.
const CODE_OF: [&str; 2] = [
    "dtype.get_custom_type_code",
    "runtime._datatype_get_type_code",
];
/// The function that returns the name of a code, with both names.
const NAME_OF: [&str; 2] = [
    "dtype.get_custom_type_name",
    "runtime._datatype_get_type_name",
];

/// Connects the texts of data types with the registry, which chapter `value` does not know.
pub(super) fn serve() {
    know_custom_names(CustomNames { code_of, name_of });
}

/// Returns the code of a custom type, or the reason for a failure.
fn code_of(name: &str) -> Result<i64, String> {
    // VAL-21: not truncated to eight bits as in upstream. The caller rejects codes outside 129 to 255.
    ask(CODE_OF, &Any::from(name))
}

/// Returns the name of a custom type, or the reason for a failure.
fn name_of(code: u8) -> Result<String, String> {
    ask(NAME_OF, &Any::from(i64::from(code)))
}

/// Calls the first registered function of `names` with `about` as its only argument.
fn ask<T: Argument>(names: [&str; 2], about: &Any) -> Result<T, String> {
    // Looked up for each call, because a library with these types may be loaded at any time, and may override functions.
    // VAL-21: a library for older releases registers only the older name.
    let function = names.into_iter().find_map(lookup);
    let function = function.ok_or_else(|| format!("no global function `{}`", names[0]))?;
    let answer = function.call_packed(&[about.view()]);
    let answer = answer.and_then(|answer| cast(answer.view()).map_err(Error::from));
    answer.map_err(|error| error.message().to_owned())
}
