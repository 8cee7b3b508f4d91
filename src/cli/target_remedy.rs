//! What to write instead of a target that releases reject: what took the place of an option, the nearest tags, the text as JSON.

use super::input::distance;
use serde_json::{Map, Value, json};
use tvmspec::release::Release;
use tvmspec::rule::Violation;
use tvmspec::target::Targets;

/// Options that targets had up to 0.9, and what took their place.
const MOVED: [(&str, &str); 6] = [
    (
        "system-lib",
        "`runtime=Runtime(\"cpp\", {\"system-lib\": True})` of `relay.build` up to 0.19, and from 0.13 on the attribute `system_lib_prefix` of the module, which may be an empty text: `mod.with_attr(\"system_lib_prefix\", \"\")`",
    ),
    (
        "link-params",
        "`executor=Executor(\"graph\", {\"link-params\": True})` of `relay.build` up to 0.19; from 0.20 on parameters are bound into the module (`relax.transform.BindParams`)",
    ),
    (
        "runtime",
        "`runtime=Runtime(\"cpp\")` or `Runtime(\"crt\")` of `relay.build` up to 0.19; from 0.20 on there is one runtime",
    ),
    (
        "executor",
        "`executor=Executor(\"graph\")` or `Executor(\"aot\")` of `relay.build` up to 0.19; from 0.20 on models are those of Relax",
    ),
    (
        "interface-api",
        "`executor=Executor(\"aot\", {\"interface-api\": \"c\"})` of `relay.build` up to 0.19",
    ),
    (
        "unpacked-api",
        "`executor=Executor(\"aot\", {\"unpacked-api\": True})` of `relay.build` up to 0.19",
    ),
];

/// What to write instead of `text`, which `release` rejects by `broken`; `None` where nothing is known.
pub(super) fn remedy(text: &str, release: Release, broken: &Violation) -> Option<String> {
    match broken.rule().id() {
        "TGT-03" if release >= Release::new(10)? => moved(text),
        "TGT-01" | "TGT-10" => {
            let near = nearest(text.split_ascii_whitespace().next()?, release);
            (!near.is_empty()).then(|| {
                format!(
                    "the nearest names that {release} has are {}",
                    near.join(", ")
                )
            })
        }
        "TGT-30" => {
            let json = as_json(text)?;
            let moved = moved(text).map_or(String::new(), |moved| format!("; {moved}"));
            Some(format!("write it as JSON: {json}{moved}"))
        }
        _ => None,
    }
}

/// What took the place of an option that `text` states.
fn moved(text: &str) -> Option<String> {
    let (option, instead) = MOVED.iter().find(|(option, _)| has_option(text, option))?;
    Some(format!(
        "`{option}` is no option of a target from 0.10 on: use {instead}"
    ))
}

/// Whether `text` states an option: `-name`, `--name=value`, or a member of JSON.
fn has_option(text: &str, name: &str) -> bool {
    let words = text.split_ascii_whitespace();
    let mut options = words.filter_map(|word| word.strip_prefix('-'));
    let is_named = |word: &str| {
        let word = word.trim_start_matches('-');
        word.split('=').next() == Some(name)
    };
    options.any(is_named) || text.contains(&format!("\"{name}\""))
}

/// How many names are shown.
const MOST: usize = 3;

/// The tags and kinds of `release` that are most like `name`.
fn nearest(name: &str, release: Release) -> Vec<String> {
    // A tag is a vendor and a model; who writes one often knows the model alone.
    let model = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let wanted = model(name);
    if wanted.is_empty() || name.len() > 128 {
        return Vec::new();
    }
    let targets = Targets::new(release);
    let mut names: Vec<(usize, String)> = targets
        .tags()
        .into_iter()
        .chain(
            targets
                .kinds()
                .into_iter()
                .map(|kind| kind.name.to_string()),
        )
        .map(|known| {
            let own = model(&known);
            let differs = match own.contains(&wanted) || wanted.contains(&own) {
                true => 1,
                false => distance(&wanted, &own).min(distance(name, &known)),
            };
            (differs, known)
        })
        .filter(|(differs, _)| *differs <= (wanted.len() / 3).max(1))
        .collect();
    names.sort_unstable();
    names.truncate(MOST);
    names
        .into_iter()
        .map(|(_, name)| format!("`{name}`"))
        .collect()
}

/// A command line as JSON, without the options that were moved; `None` where it has a word that is no option.
fn as_json(text: &str) -> Option<String> {
    let mut words = text.split_ascii_whitespace();
    let mut members = Map::new();
    members.insert("kind".to_owned(), words.next()?.into());
    for word in words {
        let option = word.strip_prefix('-')?.trim_start_matches('-');
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, number_or_text(name, value)),
            None => (option, Value::Bool(true)),
        };
        if !MOVED.iter().any(|(moved, _)| *moved == name) {
            members.insert(name.to_owned(), value);
        }
    }
    Some(Value::Object(members).to_string())
}

/// The value of an option: a list, a number or a text.
fn number_or_text(name: &str, value: &str) -> Value {
    if matches!(name, "keys" | "libs" | "mattr") {
        return value.split(',').collect::<Vec<_>>().into();
    }
    match value.parse::<i64>() {
        Ok(number) => json!(number),
        Err(_) => value.into(),
    }
}
