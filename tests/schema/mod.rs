//! As much of JSON Schema as the schemas in `spec/schema/` use.

use serde_json::Value;

/// Panics where `value` is not as `schema`, a part of `root`, demands; `place` says where in the value it is.
pub(crate) fn conforms(root: &Value, schema: &Value, value: &Value, place: &str) {
    for (key, demand) in schema.as_object().unwrap() {
        match key.as_str() {
            "$ref" => {
                let pointer = demand.as_str().unwrap().trim_start_matches('#');
                conforms(root, root.pointer(pointer).unwrap(), value, place);
            }
            "type" => {
                let types = demand
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![demand.clone()]);
                assert!(
                    types.iter().any(|name| is(value, name.as_str().unwrap())),
                    "{place}: {value}"
                );
            }
            "const" => assert_eq!(value, demand, "{place}"),
            "enum" => assert!(
                demand.as_array().unwrap().contains(value),
                "{place}: {value}"
            ),
            "minimum" => assert!(value.as_f64() >= demand.as_f64(), "{place}: {value}"),
            "minItems" => {
                assert!(value.as_array().unwrap().len() as u64 >= demand.as_u64().unwrap())
            }
            "pattern" => {
                assert_eq!(demand, "^[0-9a-f]{64}$");
                let text = value.as_str().unwrap();
                assert!(text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
            }
            "required" => {
                for name in demand.as_array().unwrap() {
                    assert!(
                        !value.is_object() || value.get(name.as_str().unwrap()).is_some(),
                        "{place} lacks {name}"
                    );
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    conforms(root, demand, item, &format!("{place}[{index}]"));
                }
            }
            "properties" => {
                for (name, schema) in demand.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        conforms(root, schema, member, &format!("{place}.{name}"));
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, member) in value.as_object().into_iter().flatten() {
                    let known = known.is_some_and(|known| known.contains_key(name));
                    if !known && demand.is_object() {
                        conforms(root, demand, member, &format!("{place}.{name}"));
                    } else {
                        assert!(known, "{place}.{name} is not in the schema");
                    }
                }
            }
            "anyOf" => {
                let fits = |schema: &Value| {
                    let check = || conforms(root, schema, value, place);
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_ok()
                };
                assert!(
                    demand.as_array().unwrap().iter().any(fits),
                    "{place}: {value}"
                );
            }
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            _ => panic!("this checker does not know `{key}`"),
        }
    }
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        _ => panic!("{name}"),
    }
}
