//! The names of custom data types (VAL-21): global functions that the library with such types registers.

use super::{Error, registry};
use crate::value::{Any, Argument, CustomNames, cast, know_custom_names};

/// From 0.21 on, and as 0.6 to 0.20 call it.
const CODE_OF: [&str; 2] = [
    "dtype.get_custom_type_code",
    "runtime._datatype_get_type_code",
];
const NAME_OF: [&str; 2] = [
    "dtype.get_custom_type_name",
    "runtime._datatype_get_type_name",
];

/// Lets the texts of data types ask the registry.
pub(super) fn serve() {
    know_custom_names(CustomNames { code_of, name_of });
}

fn code_of(name: &str) -> Result<i64, String> {
    ask(CODE_OF, &Any::from(name))
}

fn name_of(code: u8) -> Result<String, String> {
    ask(NAME_OF, &Any::from(i64::from(code)))
}

fn ask<T: Argument>(names: [&str; 2], about: &Any) -> Result<T, String> {
    let function = names.into_iter().find_map(registry::lookup);
    let function = function.ok_or_else(|| format!("no global function `{}`", names[0]))?;
    let answer = function.call(&[about.view()]);
    let answer = answer.and_then(|answer| cast(answer.view()).map_err(Error::from));
    answer.map_err(|error| error.message().to_owned())
}
