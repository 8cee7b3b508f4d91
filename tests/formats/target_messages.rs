//! The rejection of text or JSON that names no target has the words of the release. `target_messages.json` has them, from the sources
//! of each release. Up to 0.6, this crate rejects an object in its own words.
#![cfg(feature = "target")]

use serde_json::{Value, json};
use tvmspec::target::{TargetAccount, TargetConfig, Targets};

#[test]
fn rejections_have_the_words_of_the_release() {
    let rows = serde_json::from_str(include_str!("target_messages.json")).unwrap();
    let Value::Array(rows) = rows else {
        panic!("a list of names");
    };
    assert!(rows.len() > 20, "{} names", rows.len());
    for row in rows {
        let name = &row["value"];
        let config: TargetConfig = match name {
            Value::Object(members) => members.clone(),
            _ => TargetConfig::new(),
        };
        let account = TargetAccount::of(|release| match name.as_str() {
            Some(text) => Targets::new(release).read(text),
            None => Targets::new(release).read_config(&config),
        });
        let Value::Array(spans) = serde_json::to_value(&account).unwrap() else {
            panic!("a list of rows");
        };
        let said: Vec<Value> = spans
            .iter()
            .filter(|span| span.get("rejected").is_some())
            .map(|span| json!({"releases": span["releases"], "message": span["rejected"]["message"]}))
            .collect();
        assert_eq!(json!(said), row["rows"], "{name}");
    }
}
