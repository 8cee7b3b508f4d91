//! Case files as JSON, read without the suite's own reader.

use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Returns the cases of a file, each with the shared members of its group.
pub(crate) fn cases(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("readable cases");
    let groups: Vec<Map<String, Value>> = serde_json::from_str(&text).expect("a list of groups");
    let mut whole = Vec::new();
    for mut group in groups {
        match group.remove("cases") {
            None => whole.push(Value::Object(group)),
            Some(rows) => {
                for row in rows.as_array().expect("a list of cases") {
                    let mut case = group.clone();
                    case.extend(row.as_object().expect("a case").clone());
                    whole.push(Value::Object(case));
                }
            }
        }
    }
    whole
}
