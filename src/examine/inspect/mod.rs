//! What is in a file, as one JSON value (`spec/schema/inspect.json`).

mod cache;
mod dtype;
mod ffi_version;
mod graph;
mod payload;
mod room;

use super::explain::is_image;
use super::{Format, NotExaminable, Subject, Unit, document, finding, objects, subject, violation};
use crate::blob::container::{FileForm, Part, Role, linkage};
use crate::blob::{LIBRARY, PartialBlob};
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use room::Room;
use serde_json::{Map, Value, json};

/// What is in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// All of it, as JSON of `spec/schema/inspect.json`. There is no struct behind it by design: its members are those of the kinds of
    /// module and of file that there are, and grow with them. What finds no room in memory is counted in `left_out`.
    pub report: Value,
    /// The rules that were broken, each with the number of its unit in [`Subject::units`], or `None` for the file as a whole.
    pub broken: Vec<(Option<usize>, Violation)>,
}

/// What a report is to have.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct InspectOptions {
    /// The layout of library binaries, whatever symbols and bytes say.
    pub layout: Option<Layout>,
    /// Whether it shows the code of executables of both VMs.
    pub code: bool,
    /// How many copies of it there will be in memory besides: the more, the less each may take.
    pub copies: u64,
}

/// Collects what is in `bytes`, before a broken rule and behind it.
///
/// A file whose container is broken is inspected too: its report has the violation, and no parts. `name` is for the report only.
///
/// # Errors
///
/// [`NotExaminable`] where nothing in the file is of a form that TVM writes.
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

/// [`inspect`] of a file whose container is broken.
///
/// The form is that of its first bytes (BLOB-69).
pub fn of_broken(name: &str, bytes: &[u8], wrong: Violation) -> Inspection {
    let mut top = head(name, bytes);
    top.insert("form".into(), FileForm::of(bytes).name().into());
    top.insert("violation".into(), violation(&wrong));
    Inspection {
        report: Value::Object(top),
        broken: vec![(None, wrong)],
    }
}

/// What every report begins with: the name and the size.
fn head(name: &str, bytes: &[u8]) -> Map<String, Value> {
    let mut top = Map::new();
    top.insert("file".into(), name.into());
    top.insert("bytes".into(), bytes.len().into());
    top
}

/// [`inspect`] of a file that is open, in the layout it was opened with.
///
/// # Errors
///
/// [`NotExaminable`] where nothing in the file is of a form that TVM writes.
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
        // The forms of files in spec/schema/inspect.json: a side file and LLVM's are files of a module, too.
        _ => "module-file",
    };
    top.insert("form".into(), form.into());
    // What a file is linked to is read from the image's own tables, and is empty for every other form.
    let linkage = linkage(file.form, bytes);
    if !linkage.libraries.is_empty() {
        top.insert("links".into(), linkage.libraries.clone().into());
    }
    if linkage.is_runtime() {
        top.insert("runtime".into(), linkage.defines.len().into());
    }
    // A runtime is tvm-ffi itself, or has its own.
    if is_image(file.form)
        && !linkage.is_runtime()
        && let Some(releases) = ffi_version::built_on(bytes)
    {
        top.insert("tvm_ffi".into(), releases.into());
    }
    // Bounded by the size of the file: a few bytes of a hostile one can name much more than they are.
    let room = Room::of(bytes.len(), options);
    let units = subject.units();
    // With a stated layout, bytes of no known form are a unit too.
    if file.form == FileForm::Unknown && units.is_empty() {
        return Err(subject.nothing());
    }
    if !file.findings.is_empty() {
        let list = room.list(file.findings.as_slice(), finding);
        top.insert("findings".into(), list.into());
    }
    // Units stand in the order of their parts.
    let numbered: Vec<(usize, &Unit<'_>)> = units.iter().enumerate().collect();
    let mut rest = numbered.as_slice();
    let parts = room.list(file.parts.iter().enumerate(), |(index, part)| {
        let behind = rest.partition_point(|(_, unit)| unit.part <= index);
        let (own, others) = rest.split_at(behind);
        rest = others;
        part_value(part, own, &room, &mut broken)
    });
    // A file of one format is described under the name of its format: a part of it without symbols would say nothing.
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

/// Whether the report of a part lists a library binary.
///
/// A part that found no room, or has no such member, lists none: indexing a [`Value`] never panics.
fn has_library(part: &Value) -> bool {
    part["libraries"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

/// A part of the container: the file, or a member of an archive. Adds the broken rules of its library binaries to `broken`.
///
/// `units` are those of this part, each with its number in [`Subject::units`]. The value is an element of `parts` in `inspect.json`.
fn part_value(
    part: &Part<'_>,
    units: &[(usize, &Unit<'_>)],
    room: &Room,
    broken: &mut Vec<(Option<usize>, Violation)>,
) -> Value {
    // Symbols and layouts together: 0.2 and 0.7 share the symbol of their library binaries (BLOB-50).
    let releases = subject::releases(part, units.iter().map(|(_, unit)| *unit));
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
    // Names are sorted below: the order of a symbol table is the linker's, and means nothing.
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
    // The first of them: a linker rejects a second definition, so that a file with several is one that nothing linked.
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

/// A library binary, as far as it can be read, and the rule at which reading ends.
///
/// An element of `libraries` in `inspect.json`; null for a unit of another format.
fn library(unit: &Unit<'_>, room: &Room) -> (Value, Option<Violation>) {
    let (Some(partial), Format::Library { symbol, .. }) = (unit.library(), &unit.format) else {
        return (Value::Null, None);
    };
    // BLOB-06: what comes before a broken rule is shown, with the rule at which reading ended.
    let PartialBlob {
        blob,
        findings,
        broken,
    } = partial;
    // A graph that is none is in no module below, but here.
    let broken = broken.or_else(|| document::fault_in(&blob));
    let layout = blob.layout;
    room.era.set(layout.releases());
    let modules = room.list(blob.modules.iter().enumerate(), |(index, module)| {
        let mut value = Map::new();
        value.insert("index".into(), index.into());
        value.insert("kind".into(), module.kind.as_ref().into());
        // BLOB-12: `_lib` has no payload, and so no place.
        if let Some(bytes) = &module.payload {
            value.insert("offset".into(), module.offset.into());
            value.insert("bytes".into(), bytes.len().into());
        }
        // TREE-01: the position of a module is its only name.
        let imports = room.list(blob.imports(index), Value::from);
        value.insert("imports".into(), imports.into());
        // The oddities of a payload are among those of the blob already.
        let decoded = module
            .decode(layout, &mut Findings::default())
            .ok()
            .flatten();
        if let Some(decoded) = decoded.or_else(|| unit.foreign.decode(module, layout)) {
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
        // BLOB-13: without `_lib` the host code belongs to no module.
        "host": blob.modules.iter().any(|module| module.kind == LIBRARY),
        "findings": room.list(findings.as_slice(), finding),
        "violation": broken.as_ref().map(violation),
    });
    (value, broken)
}

/// A file that is no container: its content under the name of its format.
///
/// Returns the rule that it breaks. Library binaries are not among these: they are listed with their parts.
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
