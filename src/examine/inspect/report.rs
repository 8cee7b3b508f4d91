//! The report on a file as values: the file, its parts, their library binaries, the modules in these.

use super::memory_limit::{EstimateMemory, members_weight, weight};
use crate::blob::container::Machine;
use crate::examine::{finding, violation};
use crate::import_tree::ImportTree;
use crate::release::{Layout, Releases};
use crate::rule::{Finding, Violation};
use serde_core::ser::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The content of a file: the result of [`Subject::inspect`](crate::examine::Subject::inspect).
///
/// It serializes as JSON of `spec/schema/inspect.json`.
///
/// ```
/// use tvmspec::examine::Subject;
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// let inspection = Subject::open("tree3-0.8.so", &file, None)?.inspect()?;
/// let part = &inspection.parts[0];
/// assert_eq!((inspection.form, &part.functions[0][..]), ("elf-shared", "add1"));
/// let kinds: Vec<&str> = part.libraries[0].modules.iter().map(|module| &module.kind[..]).collect();
/// assert_eq!(kinds, ["_lib", "metal", "opencl"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// The name of the file, as the caller states it.
    pub file: String,
    /// The size of the file in bytes.
    pub bytes: usize,
    /// The form of the file: `elf-shared`, `tar`, `params`, `module-file`, ...
    pub form: &'static str,
    /// The libraries that an image needs.
    pub links: Vec<String>,
    /// The number of functions of TVM's C interface that a runtime defines; `None` for any other file.
    pub runtime: Option<usize>,
    /// The releases of tvm-ffi that a library was built with, such as `0.1.9..0.1.14`, if its symbols show them.
    pub tvm_ffi: Option<String>,
    /// The oddities of the container.
    pub findings: Vec<Finding>,
    /// The file itself, or the members of an archive.
    pub parts: Vec<PartReport>,
    /// Everything that depends on the form of a file: `params`, `tensor`, `module`, `graph`, `objects`, `cache`, and the findings and the
    /// violation of such content, in their JSON forms.
    pub details: Map<String, Value>,
    /// The number of entries that exceed the memory limit of a report.
    pub left_out: u64,
    /// The broken rules, each with the index of its unit in [`Subject::units`](crate::examine::Subject::units), or `None` for the file as
    /// a whole.
    pub broken: Vec<(Option<usize>, Violation)>,
    /// True if the JSON form has `parts`. A file of one format is described under the name of its format instead.
    pub(super) shows_parts: bool,
}

/// A file, or a member of an archive, in an [`Inspection`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartReport {
    /// Path of the member; empty for the file itself.
    pub member: String,
    /// The form of this part.
    pub form: &'static str,
    /// The machine that it was compiled for; object files only.
    pub machine: Option<Machine>,
    /// The releases that match its symbols, its library binaries and the libraries that it needs.
    pub releases: Option<Releases>,
    /// True if it is code that TVM compiled.
    pub compiled: bool,
    /// The number of functions of TVM's C interface that it defines.
    pub runtime: usize,
    /// The prefix of a system library.
    pub prefix: Option<String>,
    /// The packed functions that it exports, sorted.
    pub functions: Vec<String>,
    /// The symbol that names the entry function.
    pub entry: Option<String>,
    /// The context symbol.
    pub context: Option<String>,
    /// The slots that a loader fills, sorted.
    pub slots: Vec<String>,
    /// The functions of TVM's C interface that it calls, sorted.
    pub needs: Vec<String>,
    /// The library binaries.
    pub libraries: Vec<LibraryReport>,
}

/// A library binary in an [`Inspection`], as far as it could be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LibraryReport {
    /// Its symbol; `None` for a raw blob.
    pub symbol: Option<String>,
    /// Its offset in the file; `None` where the file encodes the bytes.
    pub offset: Option<u64>,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its layout.
    pub layout: Layout,
    /// The modules, in their order.
    pub modules: Vec<ModuleReport>,
    /// The import tree, as its two vectors; `None` in layout 0.2 and for a library without imports.
    pub import_tree: Option<(Vec<u64>, Vec<u64>)>,
    /// True if one of the modules is the host library.
    pub host: bool,
    /// The oddities, at offsets into the library binary.
    pub findings: Vec<Finding>,
    /// The rule that ended reading.
    pub violation: Option<Violation>,
    /// The prefix of a system library.
    pub prefix: Option<String>,
}

/// A module in an [`Inspection`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModuleReport {
    /// Its number in the library binary.
    pub index: usize,
    /// Its kind; `_lib` for the host library.
    pub kind: String,
    /// Offset and size of its payload in bytes, from the start of the library binary; `None` for the host library.
    pub payload: Option<(u64, usize)>,
    /// The numbers of the modules that it imports.
    pub imports: Vec<usize>,
    /// The content of its payload, which depends on the kind, in its JSON form: `format`, `functions`, `params`, ...
    pub details: Map<String, Value>,
}

impl Inspection {
    /// Returns the JSON form of `spec/schema/inspect.json`.
    pub fn into_json(self) -> Value {
        let mut top = Map::new();
        top.insert("file".into(), self.file.into());
        top.insert("bytes".into(), self.bytes.into());
        top.insert("form".into(), self.form.into());
        if !self.links.is_empty() {
            top.insert("links".into(), self.links.into());
        }
        if let Some(functions) = self.runtime {
            top.insert("runtime".into(), functions.into());
        }
        if let Some(releases) = self.tvm_ffi {
            top.insert("tvm_ffi".into(), releases.into());
        }
        if !self.findings.is_empty() {
            top.insert("findings".into(), findings(&self.findings));
        }
        if self.shows_parts {
            let parts = self.parts.into_iter().map(PartReport::into_json);
            top.insert("parts".into(), parts.collect());
        }
        // The findings of the content replace those of the container. A file of one format has no findings of its container.
        top.extend(self.details);
        if self.left_out > 0 {
            top.insert("left_out".into(), self.left_out.into());
        }
        Value::Object(top)
    }
}

impl Serialize for Inspection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.clone().into_json().serialize(serializer)
    }
}

impl PartReport {
    /// Returns the members of the JSON form, with null instead of each list.
    fn frame(&self) -> Map<String, Value> {
        members(json!({
            "member": self.member,
            "form": self.form,
            "machine": self.machine.as_ref().map(|machine| json!({
                "architecture": machine.architecture,
                "bits": machine.bits,
                "little_endian": machine.little_endian,
            })),
            "releases": self.releases.map(|releases| releases.to_string()),
            "compiled": self.compiled,
            "runtime": self.runtime,
            "prefix": self.prefix,
            "functions": null,
            "entry": self.entry,
            "context": self.context,
            "slots": null,
            "needs": null,
            "libraries": null,
        }))
    }

    /// Returns the JSON form.
    fn into_json(self) -> Value {
        let mut all = self.frame();
        all.insert("functions".into(), self.functions.into());
        all.insert("slots".into(), self.slots.into());
        all.insert("needs".into(), self.needs.into());
        let libraries = self.libraries.into_iter().map(LibraryReport::into_json);
        all.insert("libraries".into(), libraries.collect());
        Value::Object(all)
    }
}

impl EstimateMemory for PartReport {
    fn weight(&self) -> u64 {
        let names = [&self.functions, &self.slots, &self.needs];
        let names = names.into_iter().flatten().map(EstimateMemory::weight);
        let libraries = self.libraries.iter().map(EstimateMemory::weight);
        names
            .chain(libraries)
            .fold(weight(&Value::Object(self.frame())), u64::saturating_add)
    }
}

impl LibraryReport {
    /// Returns the members of the JSON form, with null instead of each list.
    fn frame(&self) -> Map<String, Value> {
        members(json!({
            "symbol": self.symbol,
            "offset": self.offset,
            "bytes": self.bytes,
            "layout": self.layout.name(),
            "releases": self.layout.releases().to_string(),
            "modules": null,
            "import_tree": self.import_tree.as_ref().map(|_| json!({ "indptr": null, "indices": null })),
            "host": self.host,
            "findings": null,
            "violation": self.violation.as_ref().map(violation),
            "prefix": self.prefix,
        }))
    }

    /// Returns the JSON form.
    fn into_json(self) -> Value {
        let mut all = self.frame();
        let modules = self.modules.into_iter().map(ModuleReport::into_json);
        all.insert("modules".into(), modules.collect());
        if let Some((indptr, indices)) = self.import_tree {
            let tree = json!({ "indptr": indptr, "indices": indices });
            all.insert("import_tree".into(), tree);
        }
        all.insert("findings".into(), findings(&self.findings));
        Value::Object(all)
    }
}

impl EstimateMemory for LibraryReport {
    fn weight(&self) -> u64 {
        let modules = self.modules.iter().map(EstimateMemory::weight);
        let tree = self.import_tree.iter();
        let words = tree.flat_map(|(indptr, indices)| indptr.iter().chain(indices));
        let findings = self.findings.iter().map(EstimateMemory::weight);
        modules
            .chain(words.map(EstimateMemory::weight))
            .chain(findings)
            .fold(weight(&Value::Object(self.frame())), u64::saturating_add)
    }
}

impl ModuleReport {
    /// Returns the members of the JSON form that every module has, with null instead of the imports.
    fn frame(&self) -> Map<String, Value> {
        let mut all = Map::new();
        all.insert("index".into(), self.index.into());
        all.insert("kind".into(), self.kind.as_str().into());
        // BLOB-12: `_lib` has no payload and therefore no offset.
        if let Some((offset, bytes)) = self.payload {
            all.insert("offset".into(), offset.into());
            all.insert("bytes".into(), bytes.into());
        }
        all.insert("imports".into(), Value::Null);
        all
    }

    /// Returns the JSON form.
    fn into_json(self) -> Value {
        let mut all = self.frame();
        all.insert("imports".into(), self.imports.into());
        all.extend(self.details);
        Value::Object(all)
    }
}

impl EstimateMemory for ModuleReport {
    fn weight(&self) -> u64 {
        let imports = self.imports.iter().map(EstimateMemory::weight);
        imports
            .chain([members_weight(&self.details)])
            .fold(weight(&Value::Object(self.frame())), u64::saturating_add)
    }
}

/// Returns the two vectors of a tree, as much of them as `list` keeps.
pub(super) fn vectors(
    tree: &ImportTree<'_>,
    mut list: impl FnMut(&mut dyn Iterator<Item = u64>) -> Vec<u64>,
) -> (Vec<u64>, Vec<u64>) {
    let indptr = list(&mut tree.indptr().iter());
    (indptr, list(&mut tree.indices().iter()))
}

/// Returns the JSON form of a list of oddities.
fn findings(list: &[Finding]) -> Value {
    list.iter().map(finding).collect()
}

/// Returns the members of an object.
fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
