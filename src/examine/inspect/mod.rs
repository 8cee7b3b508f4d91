//! The report on the content of a file (`spec/schema/inspect.json`).

mod cache;
mod ffi_version;
mod graph;
mod memory_limit;
mod payload;
mod report;

pub use report::{Inspection, LibraryReport, ModuleReport, PartReport};

use super::explain::is_image;
use super::{Format, NotExaminable, Subject, Unit, document, finding, objects, subject, violation};
use crate::blob::container::{ContainerPart, FileForm, Role, linkage};
use crate::blob::{LibraryModule, PartialBlob};
use crate::release::Releases;
use crate::rule::{Finding, Violation};
use memory_limit::MemoryBudget;
use serde_json::{Map, Value};

/// Options of a report.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct InspectOptions {
    /// True to show the code of executables of both VMs in the report.
    pub code: bool,
    /// The number of additional copies of the report in memory. The memory limit is divided among all copies.
    pub copies: u64,
}

impl Subject<'_> {
    /// Reports the content of the file, before and after a broken rule.
    ///
    /// # Errors
    ///
    /// Returns [`NotExaminable`] if nothing in the file has a form that TVM writes.
    pub fn inspect(&self) -> Result<Inspection, NotExaminable> {
        self.inspect_with(InspectOptions::default())
    }

    /// Like [`Subject::inspect`], with options. The layout is the one with which the subject was opened.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::inspect`].
    pub fn inspect_with(&self, options: InspectOptions) -> Result<Inspection, NotExaminable> {
        if let Some(broken) = &self.broken {
            return Ok(of_broken(self.name, self.bytes, broken.clone()));
        }
        let mut broken = Vec::new();
        let bytes = self.bytes;
        let mut top = Map::new();
        let file = &self.file;
        let form = match self.module {
            None if self.named.is_none() => file.form.name(),
            // In spec/schema/inspect.json, a side file or an LLVM file also has the form of a module file.
            _ => "module-file",
        };
        // The linkage comes from the tables of an image. It is empty for every other form.
        let linkage = linkage(file.form, bytes);
        // Not for a runtime, because it is tvm-ffi itself or contains its own copy.
        let tvm_ffi = if is_image(file.form) && !linkage.is_runtime() {
            ffi_version::built_on(bytes)
        } else {
            None
        };
        // The size of the file limits the report: a few bytes of a hostile file can refer to much more data.
        let room = MemoryBudget::for_file(bytes.len(), options);
        let units = self.units();
        // With a stated layout, bytes of unknown form are a unit too.
        if file.form == FileForm::Unknown && units.is_empty() {
            return Err(self.not_examinable());
        }
        let findings = room.list(file.findings.as_slice(), Finding::clone);
        // Units have the order of their parts.
        let numbered: Vec<(usize, &Unit<'_>)> = units.iter().enumerate().collect();
        let mut rest = numbered.as_slice();
        let parts = room.list(file.parts.iter().enumerate(), |(index, part)| {
            let behind = rest.partition_point(|(_, unit)| unit.part <= index);
            let (own, others) = rest.split_at(behind);
            rest = others;
            let since = linkage.since();
            part_report(part, own, since, &room, &mut broken)
        });
        // A file of one format is described under the name of its format. Its only part has no symbols and would add nothing.
        let is_code = file.form.is_object() || file.form == FileForm::CText;
        let shows_parts = is_code
            || file.form.is_archive()
            || parts.iter().any(|part| !part.libraries.is_empty());
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
        cache::describe(self, &mut top, &room);
        // JSON has no unit: its violation belongs to the file as a whole.
        if let Some(reading) = self.json() {
            let shards = self.shards.iter().map(|shard| &shard.reading);
            let odd = shards.clone().flat_map(|reading| &reading.findings);
            let findings = room.list(reading.findings.iter().chain(odd), finding);
            top.insert("findings".into(), findings.into());
            broken.extend(shards.filter_map(|reading| Some((None, reading.broken.clone()?))));
            if let Some(wrong) = reading.broken {
                top.insert("violation".into(), violation(&wrong));
                broken.push((None, wrong));
            }
        }
        Ok(Inspection {
            file: self.name.to_owned(),
            bytes: bytes.len(),
            form,
            links: linkage
                .libraries
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            runtime: linkage.is_runtime().then_some(linkage.defines.len()),
            tvm_ffi,
            findings,
            parts,
            details: top,
            left_out: room.left_out(),
            broken,
            shows_parts,
        })
    }
}

/// Reports a file with a broken container.
///
/// The first bytes determine the form (BLOB-69).
fn of_broken(name: &str, bytes: &[u8], wrong: Violation) -> Inspection {
    // PAY-23: if the side file is missing, only the name of a file shows that it is device code.
    let form = match wrong.rule().id() {
        "PAY-23" => "module-file",
        _ => FileForm::detect(bytes).name(),
    };
    let mut details = Map::new();
    details.insert("violation".into(), violation(&wrong));
    Inspection {
        file: name.to_owned(),
        bytes: bytes.len(),
        form,
        details,
        broken: vec![(None, wrong)],
        ..Inspection::default()
    }
}

/// Reports one part of the container: the file itself, or a member of an archive. Adds the rules that its library binaries break to
/// `broken`.
///
/// `since` are the releases that the needed libraries of the file indicate, if any. `units` are the units of this part, each with its
/// index in [`Subject::units`].
fn part_report(
    part: &ContainerPart<'_>,
    units: &[(usize, &Unit<'_>)],
    since: Option<Releases>,
    room: &MemoryBudget,
    broken: &mut Vec<(Option<usize>, Violation)>,
) -> PartReport {
    // Symbols alone are not enough: 0.2 and 0.7 use the same symbol for library binaries (BLOB-50).
    let releases = subject::releases(part, units.iter().map(|(_, unit)| *unit));
    let releases = match (releases, since) {
        (Some(shown), Some(since)) if shown.until >= since.since => Some(shown.common(since)),
        (releases, _) => releases,
    };
    let libraries = units.iter().filter_map(|(index, unit)| match &unit.format {
        Format::Library { symbol, .. } => Some((*index, *unit, symbol.as_str())),
        _ => None,
    });
    let libraries = room.list(libraries, |(index, unit, symbol)| {
        let own = part.blobs.iter().find(|blob| blob.symbol == symbol);
        let prefix = own.map_or("", |blob| blob.prefix.as_str());
        let report = library(unit, symbol, prefix, room);
        broken.extend(report.violation.clone().map(|wrong| (Some(index), wrong)));
        report
    });
    // Sorted below, because the order of a symbol table depends on the linker and carries no meaning.
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
    // Reports the first symbol only. Only a file that was never linked has several, because a linker rejects a second definition.
    let symbol = |wanted: fn(&Role<'_>) -> bool| {
        let found = part.symbols.iter().find(|symbol| wanted(&symbol.role));
        found.map(|symbol| symbol.name.clone().into_owned())
    };
    let mut functions: Vec<&str> = part.functions().collect();
    functions.sort_unstable();
    let defines = named(|role| match role {
        Role::Defines(api) => Some(api),
        _ => None,
    });
    PartReport {
        member: part.member.clone(),
        form: part.form.name(),
        machine: part.machine.clone(),
        releases,
        compiled: part.is_compiled(),
        runtime: defines.len(),
        prefix: part.prefix().map(str::to_owned),
        functions: room.list(functions, str::to_owned),
        entry: symbol(|role| matches!(role, Role::Entry)),
        context: symbol(|role| matches!(role, Role::Context(_))),
        slots: room.list(slots, str::to_owned),
        needs: room.list(needs, str::to_owned),
        libraries,
    }
}

/// Reports the library binary under this symbol, as far as it can be read.
fn library(unit: &Unit<'_>, symbol: &str, prefix: &str, room: &MemoryBudget) -> LibraryReport {
    let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    // BLOB-06: the modules before a broken rule are shown, together with that rule.
    let Some(PartialBlob {
        blob,
        findings,
        broken,
    }) = unit.library()
    else {
        unreachable!("the caller passes library binaries")
    };
    // A module's invalid graph is left out below, but reported here.
    let violation = broken.or_else(|| document::fault_in(&blob));
    room.era.set(blob.layout.releases());
    let modules = room.list(blob.modules.iter().enumerate(), |(index, module)| {
        let mut details = Map::new();
        // TREE-01: the position of a module is its only name.
        let imports = room.list(blob.imports(index), |import| import);
        // The oddities of a payload are already among those of the blob.
        let foreign = module
            .stored()
            .and_then(|module| unit.foreign.decode(module));
        if let Some(decoded) = foreign.or_else(|| module.decoded()) {
            payload::describe(&decoded, &mut details, room);
        }
        let stored = module.stored();
        ModuleReport {
            index,
            kind: module.kind().to_owned(),
            payload: stored.map(|module| (module.offset, module.payload.len())),
            imports,
            details,
        }
    });
    let tree = blob.tree.as_ref();
    LibraryReport {
        symbol: named(symbol),
        offset: unit.offset,
        bytes: unit.bytes.len(),
        layout: blob.layout,
        modules,
        import_tree: tree.map(|tree| report::vectors(tree, |words| room.list(words, |word| word))),
        // BLOB-13: without `_lib`, no module has the host code.
        host: blob.modules.iter().any(LibraryModule::is_host),
        findings: room.list(findings.as_slice(), Finding::clone),
        violation,
        prefix: named(prefix),
    }
}

/// Reports a file that is not a container, under the name of its format.
///
/// Returns the broken rule, if any. Library binaries are not reported here, because they are listed with their parts.
fn data(unit: &Unit<'_>, top: &mut Map<String, Value>, room: &MemoryBudget) -> Option<Violation> {
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
