//! Checks of JSON against a schema of `spec/schema/`.

use jsonschema::Validator;
use serde_json::Value;

/// Compiles the schema in `text`.
pub(crate) fn schema(text: &str) -> Validator {
    let schema = serde_json::from_str(text).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Panics if `value`, which `place` names, does not conform to `schema`.
pub(crate) fn conforms(schema: &Validator, value: &Value, place: &str) {
    let line = |error: jsonschema::ValidationError<'_>| {
        format!("{place}{}: {error}", error.instance_path())
    };
    let wrong: Vec<String> = schema.iter_errors(value).map(line).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
