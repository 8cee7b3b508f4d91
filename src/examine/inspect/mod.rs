//! The report on a file, as one JSON value (`spec/schema/inspect.json`).

mod cache;
mod ffi_version;
mod graph;
mod payload;
mod room;

use super::explain::is_image;
use super::{Format, NotExaminable, Subject, Unit, document, finding, objects, subject, violation};
use crate::blob::container::{FileForm, Part, Role, linkage};
use crate::blob::{LIBRARY, PartialBlob};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Violation};
use room::Room;
use serde_json::{Map, Value, json};

/// The report on the content of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The report, as JSON of `spec/schema/inspect.json`. It is JSON by design, without a struct, because its members depend on the
    /// kinds of modules and files. `left_out` counts entries that exceed the memory limit.
    pub report: Value,
    /// The broken rules, each with the index of its unit in [`Subject::units`], or `None` for the file as a whole.
    pub broken: Vec<(Option<usize>, Violation)>,
}

/// Options of a report.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct InspectOptions {
    /// The layout of library binaries. It overrides symbols and bytes.
    pub layout: Option<Layout>,
    /// Whether the report shows the code of executables of both VMs.
    pub code: bool,
    /// The number of further copies of the report in memory. The memory limit is divided among all copies.
    pub copies: u64,
}

/// Reports what is in `bytes`, both before and after a broken rule.
///
/// A file with a broken container also has a report, with the violation and without parts. `name` is used only in the report.
///
/// # Errors
///
/// Returns [`NotExaminable`] if nothing in the file has a form that TVM writes.
pub fn inspect(
    name: &str,
    bytes: &[u8],
    options: InspectOptions,
) -> Result<Inspection, NotExaminable> {
    match Subject::open(name, bytes, options.layout) {
        Ok(subject) => of_subject(&subject, options),
        Err(wrong) => Ok(of_broken(name, bytes, wrong)),
    }
}

/// Like [`inspect`], for a file with a broken container.
///
/// The first bytes determine the form (BLOB-69).
pub fn of_broken(name: &str, bytes: &[u8], wrong: Violation) -> Inspection {
    let mut top = head(name, bytes);
    // PAY-23: only its name shows that a file is device code whose side file is missing.
    let form = match wrong.rule().id() {
        "PAY-23" => "module-file",
        _ => FileForm::of(bytes).name(),
    };
    top.insert("form".into(), form.into());
    top.insert("violation".into(), violation(&wrong));
    Inspection {
        report: Value::Object(top),
        broken: vec![(None, wrong)],
    }
}

/// Creates the members that begin every report: name and size.
fn head(name: &str, bytes: &[u8]) -> Map<String, Value> {
    let mut top = Map::new();
    top.insert("file".into(), name.into());
    top.insert("bytes".into(), bytes.len().into());
    top
}

/// Like [`inspect`], for a file that is open already, in the layout with which it was opened.
///
/// # Errors
///
/// Returns [`NotExaminable`] if nothing in the file has a form that TVM writes.
pub fn of_subject(
    subject: &Subject<'_>,
    options: InspectOptions,
) -> Result<Inspection, NotExaminable> {
    let mut broken = Vec::new();
    let bytes = subject.bytes;
    let mut top = head(subject.name, bytes);
    let file = &subject.file;
    let form = match subject.module {
        None if subject.named.is_none() => file.form.name(),
        // In spec/schema/inspect.json, a side file or an LLVM file also has the form of a module file.
        _ => "module-file",
    };
    top.insert("form".into(), form.into());
    // The linkage is read from the tables of an image, and is empty for every other form.
    let linkage = linkage(file.form, bytes);
    if !linkage.libraries.is_empty() {
        top.insert("links".into(), linkage.libraries.clone().into());
    }
    if linkage.is_runtime() {
        top.insert("runtime".into(), linkage.defines.len().into());
    }
    // Not for a runtime, because it is tvm-ffi itself or contains its own copy.
    if is_image(file.form)
        && !linkage.is_runtime()
        && let Some(releases) = ffi_version::built_on(bytes)
    {
        top.insert("tvm_ffi".into(), releases.into());
    }
    // The size of the file limits the report: a few bytes of a hostile file can refer to much more data.
    let room = Room::of(bytes.len(), options);
    let units = subject.units();
    // With a stated layout, bytes of unknown form are a unit too.
    if file.form == FileForm::Unknown && units.is_empty() {
        return Err(subject.nothing());
    }
    if !file.findings.is_empty() {
        let list = room.list(file.findings.as_slice(), finding);
        top.insert("findings".into(), list.into());
    }
    // Units have the order of their parts.
    let numbered: Vec<(usize, &Unit<'_>)> = units.iter().enumerate().collect();
    let mut rest = numbered.as_slice();
    let parts = room.list(file.parts.iter().enumerate(), |(index, part)| {
        let behind = rest.partition_point(|(_, unit)| unit.part <= index);
        let (own, others) = rest.split_at(behind);
        rest = others;
        let since = linkage.since();
        part_value(part, own, since, &room, &mut broken)
    });
    // A file of one format is described under the name of its format. Its only part has no symbols and would add nothing.
    let is_code = file.form.is_object() || file.form == FileForm::CText;
    if is_code || file.form.is_archive() || parts.iter().any(has_library) {
        top.insert("parts".into(), parts.into());
    }
    for (index, unit) in numbered {
        broken.extend(data(unit, &mut top, &room).map(|wrong| (Some(index), wrong)));
    }
    if file.form == FileForm::GraphJson
        && let Some(summary) = graph::summary(bytes, &room)
    {
        top.insert("graph".into(), summary);
    }
    if let Some(summary) = objects::summary(bytes, file.form) {
        top.insert("objects".into(), summary);
    }
    cache::describe(subject, &mut top, &room);
    // JSON has no unit: its violation belongs to the file as a whole.
    if let Some(reading) = subject.json() {
        let shards = subject.shards.iter().map(|shard| &shard.reading);
        let odd = shards.clone().flat_map(|reading| &reading.findings);
        let findings = room.list(reading.findings.iter().chain(odd), finding);
        top.insert("findings".into(), findings.into());
        broken.extend(shards.filter_map(|reading| Some((None, reading.broken.clone()?))));
        if let Some(wrong) = reading.broken {
            top.insert("violation".into(), violation(&wrong));
            broken.push((None, wrong));
        }
    }
    if room.left_out() > 0 {
        top.insert("left_out".into(), room.left_out().into());
    }
    Ok(Inspection {
        report: Value::Object(top),
        broken,
    })
}

/// Returns whether the report of a part lists a library binary.
///
/// A part that exceeded the memory limit, or has no such member, lists none. Indexing a [`Value`] never panics.
fn has_library(part: &Value) -> bool {
    part["libraries"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

/// Reports a part of the container: the file, or a member of an archive. Adds the broken rules of its library binaries to `broken`.
///
/// `since` are the releases of the libraries that the file needs, if those show it. `units` are those of this part, each with its index
/// in [`Subject::units`]. The value is an element of `parts` in `inspect.json`.
fn part_value(
    part: &Part<'_>,
    units: &[(usize, &Unit<'_>)],
    since: Option<Releases>,
    room: &Room,
    broken: &mut Vec<(Option<usize>, Violation)>,
) -> Value {
    // Symbols alone are not enough: 0.2 and 0.7 use the same symbol for library binaries (BLOB-50).
    let releases = subject::releases(part, units.iter().map(|(_, unit)| *unit));
    let releases = match (releases, since) {
        (Some(shown), Some(since)) if shown.until >= since.since => Some(shown.common(since)),
        (releases, _) => releases,
    };
    let libraries = units
        .iter()
        .filter(|(_, unit)| matches!(unit.format, Format::Library { .. }));
    let libraries = room.list(libraries, |(index, unit)| {
        let own = |symbol: &str| part.blobs.iter().find(|blob| blob.symbol == symbol);
        let (mut value, wrong) = library(unit, room);
        if let (Format::Library { symbol, .. }, Value::Object(members)) = (&unit.format, &mut value)
        {
            let prefix = own(symbol).map(|blob| blob.prefix.as_str());
            let prefix = prefix.filter(|prefix| !prefix.is_empty());
            members.insert("prefix".into(), prefix.into());
        }
        broken.extend(wrong.map(|wrong| (Some(*index), wrong)));
        value
    });
    // Names are sorted below, because the linker chooses the order of a symbol table, and it means nothing.
    let named = |pick: for<'r> fn(&'r Role<'_>) -> Option<&'r str>| -> Vec<&str> {
        part.symbols
            .iter()
            .filter_map(|symbol| pick(&symbol.role))
            .collect()
    };
    let mut slots = named(|role| match role {
        Role::Slot(api) => Some(api),
        _ => None,
    });
    slots.sort_unstable();
    let mut needs = named(|role| match role {
        Role::Needs(api) => Some(api),
        _ => None,
    });
    needs.sort_unstable();
    // Reports the first symbol only. A linker rejects a second definition, so that only a file that was never linked has several.
    let symbol = |wanted: fn(&Role<'_>) -> bool| {
        let found = part.symbols.iter().find(|symbol| wanted(&symbol.role));
        found.map(|symbol| &*symbol.name)
    };
    let mut functions: Vec<&str> = part.functions().collect();
    functions.sort_unstable();
    json!({
        "member": part.member,
        "form": part.form.name(),
        "machine": part.machine.as_ref().map(|machine| json!({
            "architecture": machine.architecture,
            "bits": machine.bits,
            "little_endian": machine.little_endian,
        })),
        "releases": releases.map(|releases| releases.to_string()),
        "compiled": part.is_compiled(),
        "runtime": named(|role| match role {
            Role::Defines(api) => Some(api),
            _ => None,
        }).len(),
        "prefix": part.prefix(),
        "functions": room.list(functions, Value::from),
        "entry": symbol(|role| matches!(role, Role::Entry)),
        "context": symbol(|role| matches!(role, Role::Context(_))),
        "slots": room.list(slots, Value::from),
        "needs": room.list(needs, Value::from),
        "libraries": libraries,
    })
}

/// Reports a library binary, as far as it can be read, and returns the rule at which reading ended.
///
/// The value is an element of `libraries` in `inspect.json`; null for a unit of another format.
fn library(unit: &Unit<'_>, room: &Room) -> (Value, Option<Violation>) {
    let (Some(partial), Format::Library { symbol, .. }) = (unit.library(), &unit.format) else {
        return (Value::Null, None);
    };
    // BLOB-06: the modules before a broken rule are shown, together with that rule.
    let PartialBlob {
        blob,
        findings,
        broken,
    } = partial;
    // An invalid graph is left out of its module below, but is reported here.
    let broken = broken.or_else(|| document::fault_in(&blob));
    let layout = blob.layout;
    room.era.set(layout.releases());
    let modules = room.list(blob.modules.iter().enumerate(), |(index, module)| {
        let mut value = Map::new();
        value.insert("index".into(), index.into());
        value.insert("kind".into(), module.kind.as_ref().into());
        // BLOB-12: `_lib` has no payload and therefore no offset.
        if let Some(bytes) = &module.payload {
            value.insert("offset".into(), module.offset.into());
            value.insert("bytes".into(), bytes.len().into());
        }
        // TREE-01: the position of a module is its only name.
        let imports = room.list(blob.imports(index), Value::from);
        value.insert("imports".into(), imports.into());
        // The oddities of a payload are already among those of the blob.
        let decoded = module
            .decode(layout, &mut Findings::default())
            .ok()
            .flatten();
        if let Some(decoded) = unit.foreign.decode(module, layout).or(decoded) {
            payload::describe(&decoded, &mut value, room);
        }
        Value::Object(value)
    });
    let value = json!({
        "symbol": Some(symbol.as_str()).filter(|symbol| !symbol.is_empty()),
        "offset": unit.offset,
        "bytes": unit.bytes.len(),
        "layout": layout.name(),
        "releases": layout.releases().to_string(),
        "modules": modules,
        "import_tree": blob.tree.as_ref().map(|tree| json!({
            "indptr": room.list(tree.indptr().iter(), Value::from),
            "indices": room.list(tree.indices().iter(), Value::from),
        })),
        // BLOB-13: without `_lib`, no module has the host code.
        "host": blob.modules.iter().any(|module| module.kind == LIBRARY),
        "findings": room.list(findings.as_slice(), finding),
        "violation": broken.as_ref().map(violation),
    });
    (value, broken)
}

/// Reports a file that is no container, under the name of its format.
///
/// Returns the broken rule, if any. Library binaries are not reported here, because they are listed with their parts.
fn data(unit: &Unit<'_>, top: &mut Map<String, Value>, room: &Room) -> Option<Violation> {
    if matches!(unit.format, Format::Library { .. }) {
        return None;
    }
    let reading = unit.judge();
    if let Some((name, value)) = payload::content(unit, room) {
        top.insert(name.into(), value);
    }
    let findings = room.list(&reading.findings, finding);
    top.insert("findings".into(), findings.into());
    if let Some(wrong) = &reading.broken {
        top.insert("violation".into(), violation(wrong));
    }
    reading.broken
}
