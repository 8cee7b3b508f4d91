//! Replacements for a target that releases reject: the successor of an option, similar tags, the text as JSON.

use super::input::edit_distance;
use serde_json::{Map, Value, json};
use tvmspec::release::Release;
use tvmspec::rule::Violation;
use tvmspec::target::Targets;

/// Options that targets had up to 0.9, and their replacements.
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

/// Options of compilers and the names that TVM uses for them.
const RENAMED: [(&str, &str); 2] = [("target", "mtriple"), ("max_threads", "max_num_threads")];

/// Devices that users mistake for kinds, and their kinds.
const DEVICES: [(&str, &str); 5] = [
    ("arm_cpu", "llvm"),
    ("adreno", "opencl"),
    ("bifrost", "opencl"),
    ("intel_graphics", "opencl"),
    ("mali", "opencl"),
];

/// Returns a replacement for `text`, which `release` rejects because of `broken`; `None` if none is known. If the answer contains a
/// target, `release` accepts it.
pub(super) fn remedy(text: &str, release: Release, broken: &Violation) -> Option<String> {
    let first = text.split_ascii_whitespace().next()?;
    match broken.rule().id() {
        "TGT-01" | "TGT-10" | "TGT-30" if first.ends_with(',') => {
            let each = text.split(',').map(|one| format!("`{}`", one.trim()));
            let each: Vec<String> = each.collect();
            Some(format!(
                "a list with commas is for `tvmc --target` alone; each of {} is a target of its own",
                each.join(", ")
            ))
        }
        "TGT-03" | "TGT-30" => {
            let (json, left_out) = as_json(text, release)?;
            let mut parts = vec![format!("write it as JSON: {json}")];
            if !left_out.is_empty() {
                parts.push(format!("{release} has no option {}", left_out.join(", ")));
            }
            parts.extend(moved(text));
            Some(parts.join("; "))
        }
        "TGT-01" | "TGT-10" => other_kind(first, release),
        _ => None,
    }
}

/// Returns a replacement for a kind or a tag that `release` does not have.
fn other_kind(name: &str, release: Release) -> Option<String> {
    if let Some((device, kind)) = DEVICES.iter().find(|(device, _)| *device == name) {
        let json = json!({ "kind": kind, "device": device }).to_string();
        let is_read = Targets::new(release).read(&json).is_ok();
        return is_read.then(|| format!("`{device}` is a device of {kind}: {json}"));
    }
    let near = nearest(name, release);
    if !near.is_empty() {
        let near = near.join(", ");
        return Some(format!("the nearest names that {release} has are {near}"));
    }
    let kinds = Targets::new(release).kinds();
    let kinds: Vec<String> = kinds.into_iter().map(|kind| kind.name).collect();
    let kinds = kinds.join(", ");
    Some(format!("the kinds that {release} has are {kinds}"))
}

/// Returns the replacements of the moved options that `text` states.
fn moved(text: &str) -> Vec<String> {
    let stated = MOVED.iter().filter(|(option, _)| has_option(text, option));
    let words = stated.map(|(option, instead)| {
        format!("`{option}` is no option of a target from 0.10 on: use {instead}")
    });
    words.collect()
}

/// Returns whether `text` states an option: `-name`, `--name=value`, or a member of JSON.
fn has_option(text: &str, name: &str) -> bool {
    let words = text.split_ascii_whitespace();
    let mut options = words.filter_map(|word| word.strip_prefix('-'));
    let is_named = |word: &str| {
        let word = word.trim_start_matches('-');
        word.split('=').next() == Some(name)
    };
    options.any(is_named) || text.contains(&format!("\"{name}\""))
}

/// The number of names to show.
const MOST: usize = 3;

/// Returns the tags and kinds of `release` that are most similar to `name`.
fn nearest(name: &str, release: Release) -> Vec<String> {
    // A tag is a vendor and a model, and users often know only the model.
    let model = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let wanted = model(name);
    if wanted.is_empty() || name.len() > 128 {
        return Vec::new();
    }
    let targets = Targets::new(release);
    // The model without its series is compared too: `rtx-4090` of `geforce-rtx-4090`.
    let differ = |own: &str| {
        let tails = own
            .match_indices('-')
            .filter_map(|(at, _)| own.get(at + 1..));
        let forms = std::iter::once(own).chain(tails.filter(|tail| tail.contains('-')));
        forms.map(|form| edit_distance(&wanted, form)).min()
    };
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
            let short = own.len().min(wanted.len());
            let is_part = short > 2 && (own.contains(&wanted) || wanted.contains(&own));
            let differs = if is_part {
                1
            } else {
                differ(&own)
                    .unwrap_or(usize::MAX)
                    .min(edit_distance(name, &known))
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

/// Converts a command line or JSON into JSON that `release` accepts. Also returns the options that were left out because the kind has
/// no similar ones. Returns `None` if this is impossible.
fn as_json(text: &str, release: Release) -> Option<(String, Vec<String>)> {
    let stated = match serde_json::from_str(text) {
        Ok(Value::Object(members)) => members,
        _ => members(text)?,
    };
    let targets = Targets::new(release);
    let kinds = targets.kinds();
    let kind = stated.get("kind")?.as_str()?;
    let Some(kind) = kinds.iter().find(|known| known.name == kind) else {
        let (device, kind) = DEVICES.iter().find(|(device, _)| *device == kind)?;
        let json = json!({ "kind": kind, "device": device }).to_string();
        return targets.read(&json).is_ok().then(|| (json, Vec::new()));
    };
    let is_option = |name: &str| {
        matches!(name, "kind" | "tag" | "keys" | "host")
            || kind.options.iter().any(|option| option.name == name)
    };
    let (mut members, mut left_out) = (Map::new(), Vec::new());
    for (name, value) in stated {
        if MOVED.iter().any(|(moved, _)| *moved == name) && !is_option(&name) {
            continue;
        }
        let renamed = RENAMED.iter().find(|(from, _)| *from == name);
        let near = kind.options.iter().map(|option| {
            let other = option.name.clone();
            (edit_distance(&name, &other), other)
        });
        let near = near.filter(|(differs, _)| *differs <= name.len() / 4).min();
        let known = match renamed {
            _ if is_option(&name) => Some(name.clone()),
            Some((_, to)) => is_option(to).then(|| (*to).to_owned()),
            None => near.map(|(_, near)| near),
        };
        match known {
            Some(known) => {
                members.insert(known, value);
            }
            None => left_out.push(format!("`{}`", name.escape_debug())),
        }
    }
    let json = Value::Object(members).to_string();
    targets.read(&json).is_ok().then_some((json, left_out))
}

/// Returns the members of a command line; `None` if one of its words is not an option.
fn members(text: &str) -> Option<Map<String, Value>> {
    let mut words = text.split_ascii_whitespace();
    let mut members = Map::new();
    members.insert("kind".to_owned(), words.next()?.into());
    for word in words {
        let option = word.strip_prefix('-')?.trim_start_matches('-');
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, number_or_text(name, value)),
            None => (option, Value::Bool(true)),
        };
        members.insert(name.to_owned(), value);
    }
    Some(members)
}

/// Parses the value of an option: a list, a number or a text.
fn number_or_text(name: &str, value: &str) -> Value {
    if matches!(name, "keys" | "libs" | "mattr") {
        return value.split(',').collect::<Vec<_>>().into();
    }
    match value.parse::<i64>() {
        Ok(number) => json!(number),
        Err(_) => value.into(),
    }
}
