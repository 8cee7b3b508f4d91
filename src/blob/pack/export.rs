//! Conversion of modules into the files that a linker combines into a library, as `export_library` does before it calls a compiler.
//!
//! | file | content | rule |
//! |---|---|---|
//! | `lib0.o`, `lib1.c`, ... | the code of each host module | BLOB-70 |
//! | `devc.o`, or `devc.c` if no host module is machine code | the library binary | BLOB-71 |
//!
//! Nothing here runs a compiler or opens a file. [`tar()`] creates an archive of the files, and `link` (feature `runtime`) creates a
//! library.

use super::{ObjectTarget, SymbolNaming, c_text, object};
use crate::blob::{BLOB_70, BLOB_72, BLOB_73, Blob, LIBRARY, LibraryModule, StoredModule};
use crate::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, order};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use std::collections::BTreeSet;

/// A module to export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportModule {
    /// The code or the payload of the module.
    pub content: ExportContent,
    /// The modules that it imports, as positions in the list. Their order matters (TREE-21).
    pub imports: Vec<usize>,
}

/// The content that a module adds to a library.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportContent {
    /// Code of the host, which becomes part of the library itself. Releases call such a module DSO exportable.
    Host(HostCode),
    /// A payload in the form of the library's layout.
    Stored {
        /// The kind: `cuda`, `const_loader`, ...
        kind: String,
        /// Its payload, as in [`StoredModule`].
        payload: Vec<u8>,
    },
}

/// The code of a host module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCode {
    /// The format, which decides the extension of its file.
    pub format: HostFormat,
    /// The object file or the text.
    pub code: Vec<u8>,
}

/// The format of the code of a host module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostFormat {
    /// An object file, or an archive of object files, from LLVM or from a `static_library`.
    Object,
    /// C.
    C,
    /// C++, as `cc`.
    Cc,
    /// C++, as `cpp`.
    Cpp,
    /// CUDA C++, for a CUDA compiler.
    Cu,
    /// LLVM IR as text.
    Llvm,
    /// LLVM bitcode.
    Bitcode,
}

impl HostFormat {
    /// Returns the extension of a file of this format (BLOB-70).
    pub const fn extension(self) -> &'static str {
        match self {
            HostFormat::Object => "o",
            HostFormat::C => "c",
            HostFormat::Cc => "cc",
            HostFormat::Cpp => "cpp",
            HostFormat::Cu => "cu",
            HostFormat::Llvm => "ll",
            HostFormat::Bitcode => "bc",
        }
    }

    /// Returns the format of a file with this extension.
    pub fn of_extension(extension: &str) -> Option<HostFormat> {
        Some(match extension {
            "o" | "obj" | "a" => HostFormat::Object,
            "c" => HostFormat::C,
            "cc" | "cxx" => HostFormat::Cc,
            "cpp" => HostFormat::Cpp,
            "cu" => HostFormat::Cu,
            "ll" => HostFormat::Llvm,
            "bc" => HostFormat::Bitcode,
            _ => return None,
        })
    }

    /// Returns whether the code is machine code, or LLVM turns it into machine code.
    const fn is_compiled(self) -> bool {
        matches!(
            self,
            HostFormat::Object | HostFormat::Llvm | HostFormat::Bitcode
        )
    }
}

/// The files of an export, in the order in which a linker takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPlan {
    /// Name and content of each file: host code first, the packed library binary last.
    pub files: Vec<(String, Vec<u8>)>,
    /// The packed library binary, header included; `None` if the root imports nothing.
    pub blob: Option<Vec<u8>>,
}

/// Returns the files for an export of `modules`. The first module is the root. `target` is the machine of the objects.
///
/// ```
/// use tvmspec::blob::pack::{ExportContent, ExportModule, HostCode, HostFormat, SymbolNaming, ObjectTarget, plan};
/// use tvmspec::import_tree::Algorithm;
/// use tvmspec::release::Release;
///
/// let code = HostCode { format: HostFormat::C, code: b"int f;\n".to_vec() };
/// let root = ExportModule { content: ExportContent::Host(code.clone()), imports: vec![1] };
/// let more = ExportModule { content: ExportContent::Host(code), imports: vec![] };
/// let naming = SymbolNaming::library(Release::of(27));
/// let plan = plan(&[root, more], &naming, Algorithm::V0_8, ObjectTarget::host())?;
/// let names: Vec<&str> = plan.files.iter().map(|(name, _)| name.as_str()).collect();
/// assert_eq!(names, ["lib0.c", "lib1.c", "devc.c"]);
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
///
/// # Errors
///
/// Returns BLOB-70: kind missing if no module is host code, and kind type for an import that is not in the list. Returns BLOB-66 or
/// BLOB-67 for a machine whose objects cannot be written. Also fails like [`order`] and [`Blob::write`].
pub fn plan(
    modules: &[ExportModule],
    naming: &SymbolNaming,
    algorithm: Algorithm,
    target: Option<ObjectTarget>,
) -> Result<ExportPlan, Violation> {
    let host = collect(modules)?;
    // BLOB-70: without code there is nothing that a loader could open.
    BLOB_70.demand(Kind::Missing, !host.is_empty(), || {
        "no module is host code: there is nothing to make a library of".to_owned()
    })?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (index, code) in host.iter().enumerate() {
        let name = format!("lib{index}.{}", code.format.extension());
        files.push((name, code.code.clone()));
    }
    // BLOB-71: no release packs a library binary for a root without imports.
    let imports = modules.first().is_some_and(|root| !root.imports.is_empty());
    if !imports {
        return Ok(ExportPlan { files, blob: None });
    }
    let blob = pack(modules, Layout::of(naming.release()), algorithm)?.write()?;
    let compiled = host.iter().any(|code| code.format.is_compiled());
    files.push(device_part(&blob, naming, target.filter(|_| compiled))?);
    Ok(ExportPlan {
        files,
        blob: Some(blob),
    })
}

/// Packs the library binary as an object for `target`, or as text (BLOB-71).
fn device_part(
    blob: &[u8],
    naming: &SymbolNaming,
    target: Option<ObjectTarget>,
) -> Result<(String, Vec<u8>), Violation> {
    let prefix = naming.prefix();
    let text = || c_text(blob, naming).into_bytes();
    let Some(target) = target else {
        // BLOB-60: the text of a system library is C++, and so is its extension.
        let extension = if naming.register().is_some() {
            "cc"
        } else {
            "c"
        };
        return Ok((format!("{prefix}devc.{extension}"), text()));
    };
    match object(blob, naming, target) {
        Ok(object) => Ok((format!("{prefix}devc.o"), object)),
        // BLOB-67: if no constructor can be written for the machine, the C++ compiler of the machine creates it.
        Err(_) if naming.register().is_some() => Ok((format!("{prefix}devc.cc"), text())),
        Err(broken) => Err(broken),
    }
}

/// Returns the host code in the order of the files (BLOB-70): a walk from the root that visits the last import first.
fn collect(modules: &[ExportModule]) -> Result<Vec<&HostCode>, Violation> {
    let mut found = Vec::new();
    let mut stack = vec![0];
    let mut seen = BTreeSet::from([0]);
    while let Some(index) = stack.pop() {
        let Some(module) = modules.get(index) else {
            let message = format!(
                "module {index} is imported, and there are {}",
                modules.len()
            );
            return Err(BLOB_70.rejected(Kind::Type, message));
        };
        if let ExportContent::Host(code) = &module.content {
            found.push(code);
        }
        for import in &module.imports {
            // TREE-22: modules are marked when they are pushed, so a module that is imported twice is visited once.
            if seen.insert(*import) {
                stack.push(*import);
            }
        }
    }
    Ok(found)
}

/// Creates the library binary of `modules`, in the order of a release.
///
/// # Errors
///
/// Fails like [`order`]. Returns BLOB-72 for several host modules in layout 0.2, and BLOB-17 if layout 0.2 cannot hold the tree.
pub fn pack(
    modules: &[ExportModule],
    layout: Layout,
    algorithm: Algorithm,
) -> Result<Blob<'_>, Violation> {
    // BLOB-14: a blob of layout 0.2 is converted from layout 0.7, whose payloads have the same form.
    let first = match layout {
        Layout::V0_2 => Layout::V0_7,
        layout => layout,
    };
    let nodes = modules.iter().map(|module| ModuleNode {
        kind: module.kind().to_owned(),
        dso: matches!(module.content, ExportContent::Host(_)),
        imports: module.imports.clone(),
    });
    let graph = ModuleGraph {
        modules: nodes.collect(),
    };
    let stored = order(&graph, algorithm)?;
    let tree = ImportTree::new(&stored.indptr, &stored.indices, &mut Findings::default())?;
    // TREE-20, BLOB-12: a group of several modules is the merged host library, which has one entry.
    let leaders = stored.groups.iter().filter_map(|group| group.first());
    let entries = leaders.filter_map(|leader| modules.get(*leader));
    let blob = Blob {
        layout: first,
        modules: entries.map(|module| module.stored(first)).collect(),
        tree: Some(tree),
    };
    if layout == first {
        return Ok(blob);
    }
    // BLOB-72: 0.2 to 0.6 have one host module, the root.
    let hosts = graph.modules.iter().filter(|module| module.dso).count();
    BLOB_72.demand(Kind::Unsupported, hosts == 1, || {
        format!("layout 0.2 has one host module, its root, and there are {hosts}")
    })?;
    blob.convert(layout)
}

impl ExportModule {
    /// Returns the kind: `_lib` for host code.
    fn kind(&self) -> &str {
        match &self.content {
            ExportContent::Host(_) => LIBRARY,
            ExportContent::Stored { kind, .. } => kind,
        }
    }

    /// Returns the module as a library binary stores it.
    fn stored(&self, layout: Layout) -> LibraryModule<'_> {
        match &self.content {
            ExportContent::Host(_) => LibraryModule::Host,
            ExportContent::Stored { kind, payload, .. } => {
                StoredModule::new(kind.as_str(), payload.as_slice(), layout).into()
            }
        }
    }
}

impl ExportPlan {
    /// Returns one C text: the sources in their order, then the library binary (BLOB-73).
    ///
    /// # Errors
    ///
    /// Returns BLOB-73, kind unsupported, for a file in another language.
    pub fn c_source(&self) -> Result<Vec<u8>, Violation> {
        let mut text = Vec::new();
        for (name, content) in &self.files {
            BLOB_73.demand(Kind::Unsupported, name.ends_with(".c"), || {
                format!("`{name}` is not C, and cannot be in one text with the rest")
            })?;
            text.extend_from_slice(content);
            if !content.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        Ok(text)
    }
}
