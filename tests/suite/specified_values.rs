//! The specification states every value that cases compare, for other implementations.
#![cfg(feature = "suite")]

use serde_json::Value;
use std::collections::BTreeSet;
use tvmspec::conformance::case::{Expect, Suite};

/// Returns the results that cases expect, with the operation and the id of each.
fn results() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let cases = Suite::expect_ours().cases.iter();
    cases.filter_map(|case| match &case.expect {
        Expect::Accept(value) => Some((case.op.as_str(), case.id.as_str(), value)),
        _ => None,
    })
}

fn has_message(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get("message").is_some_and(Value::is_string)
                || members.values().any(has_message)
        }
        Value::Array(items) => items.iter().any(has_message),
        _ => false,
    }
}

/// Messages are not compared, except those that a case's function creates or a scripted server writes.
#[test]
fn messages_are_compared_where_the_case_made_them() {
    let made = [
        "function.call",
        "function.error",
        "function.raw_call",
        "rpc.client",
    ];
    let mut seen = BTreeSet::new();
    for (op, id, value) in results().filter(|(_, _, value)| has_message(value)) {
        assert!(made.contains(&op), "{id} compares a message: {value}");
        seen.insert(op);
    }
    assert_eq!(seen.len(), made.len(), "{seen:?}");
}

/// The names of fields in `rpc.fields` are in the grammar of chapter rpc.
#[test]
fn fields_of_packets_are_in_the_grammar() {
    let text = include_str!("../../spec/rpc.md");
    let (_, grammar) = text.split_once("\n## Grammar\n").expect("a grammar");
    let (grammar, _) = grammar.split_once("\n## ").expect("it ends");
    let lines = grammar.lines().filter(|line| line.starts_with("    "));
    let words = lines.flat_map(|line| line.split([' ', '(', ')']));
    let names: BTreeSet<&str> = words
        .filter_map(|word| word.split_once(':'))
        .map(|(name, _)| name.rsplit('.').next().unwrap_or(name))
        .collect();
    let mut seen = 0;
    for (_, id, value) in results().filter(|(op, ..)| *op == "rpc.fields") {
        for field in value.as_array().expect("a list of fields") {
            let path = field[2].as_str().expect("a name");
            for part in path.split('.') {
                let name = part.split('[').next().unwrap_or(part);
                let is_named = name == "args" || names.contains(name);
                assert!(is_named, "{id}: `{path}` is not in the grammar");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} names");
}
