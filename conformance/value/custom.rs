//! Custom data types of the current case.

use crate::lock::lock;
use serde_json::Value;
use std::sync::Mutex;

static TYPES: Mutex<Vec<(String, i64)>> = Mutex::new(Vec::new());

/// Replaces the custom types by those in an object of names and codes.
pub(crate) fn keep(forms: &Value) {
    let pairs = forms.as_object().into_iter().flatten();
    let pairs = pairs.filter_map(|(name, code)| Some((name.clone(), code.as_i64()?)));
    *lock(&TYPES) = pairs.collect();
}

/// Returns the code of a name.
pub(crate) fn code_of(name: &str) -> Option<i64> {
    let types = lock(&TYPES);
    let found = types.iter().find(|(known, _)| known == name);
    found.map(|(_, code)| *code)
}

/// Returns the name of a code.
pub(crate) fn name_of(code: i64) -> Option<String> {
    let types = lock(&TYPES);
    let found = types.iter().find(|(_, known)| *known == code);
    found.map(|(name, _)| name.clone())
}
