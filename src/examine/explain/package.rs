//! Archives with several files of one model: the packages of tvmc, and Model Library Format. No loader of any release opens one.

use super::advice::Linker;
use crate::blob::container::ContainerFile;

/// A package, with the names of its members as the archive states them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package<'a> {
    /// The kind of its content.
    pub kind: PackageKind,
    /// The library: linked, or an archive of files to link.
    pub library: Option<&'a str>,
    /// The graph.
    pub graph: Option<&'a str>,
    /// The parameters.
    pub params: Option<&'a str>,
}

/// The content of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageKind {
    /// A graph, its parameters and a library, as tvmc of 0.7 to 0.19 writes them.
    Graph,
    /// The library of a virtual machine, as tvmc of 0.9 and later writes it.
    VirtualMachine {
        /// True for a Relax VM, false for a Relay VM.
        is_relax: bool,
    },
    /// Sources or objects with their metadata, as 0.8 to 0.18 write it for microTVM.
    ModelLibrary,
}

impl<'a> Package<'a> {
    /// Recognizes a package, even if all its members are in one folder. Returns `None` for any other file.
    pub fn recognize(file: &'a ContainerFile<'_>) -> Option<Package<'a>> {
        if !file.form.is_archive() {
            return None;
        }
        let members = || file.parts.iter().map(|part| part.member.as_str());
        let folder = members()
            .next()
            .and_then(|first| strip_top_folder(first).split_once('/'));
        let folder = folder.map_or("", |(folder, _)| folder);
        let is_common = |name: &str| {
            strip_top_folder(name)
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let depth = if !folder.is_empty() && !folder.ends_with(".tar") && members().all(is_common) {
            folder.len().saturating_add(1)
        } else {
            0
        };
        // The names of an inner archive's members start with the name of that archive.
        let find = |wanted: &str| {
            members().find_map(|name| {
                let rest = strip_top_folder(name).get(depth..)?;
                let after = rest.strip_prefix(wanted)?;
                let is_whole = after.is_empty() || after.starts_with('/');
                is_whole.then(|| name.get(..name.len().saturating_sub(after.len())))?
            })
        };
        let package = |kind, library: [&str; 2]| Package {
            kind,
            library: library.into_iter().find_map(find),
            graph: find("mod.json"),
            params: find("mod.params"),
        };
        let has = |name| find(name).is_some();
        if has("metadata.json")
            && ["codegen", "executor-config", "parameters"]
                .into_iter()
                .any(has)
        {
            return Some(Package {
                graph: find("executor-config/graph"),
                params: find("parameters"),
                ..package(
                    PackageKind::ModelLibrary,
                    ["codegen/host/lib", "codegen/host/src"],
                )
            });
        }
        let graph = package(PackageKind::Graph, ["mod.so", "mod.tar"]);
        let parts = [graph.library, graph.graph, graph.params];
        if parts.iter().flatten().count() > 1 {
            return Some(graph);
        }
        let is_relax = file.blobs().any(|(_, blob)| {
            let mut windows = blob.bytes.windows(6);
            windows.any(|window| window == b"relax.")
        });
        let machine = package(
            PackageKind::VirtualMachine { is_relax },
            ["lib.so", "lib.tar"],
        );
        let library = machine.library?;
        members()
            .all(|name| name.starts_with(library))
            .then_some(machine)
    }

    /// Returns whether the package has a linked library and a graph, so that it can run as it is.
    pub fn is_runnable(&self) -> bool {
        let is_linked = self.library.is_some_and(|library| library.ends_with(".so"));
        match self.kind {
            PackageKind::Graph => is_linked && self.graph.is_some(),
            PackageKind::VirtualMachine { .. } => is_linked,
            PackageKind::ModelLibrary => false,
        }
    }

    /// Returns the reason why no release opens the package, and what to do.
    pub(super) fn advice(&self, linker: &Linker<'_>) -> String {
        let path = |name: Option<&'a str>| name.map(strip_top_folder);
        let library = path(self.library).unwrap_or("LIB");
        let params =
            path(self.params).map_or(String::new(), |params| format!(" --params {params}"));
        let (command, output) = (&linker.command, linker.output);
        let link = if library.ends_with(".tar") {
            format!(
                " (Python links that archive itself; elsewhere unpack and link it first, `{command} -o {output}` with every member.)"
            )
        } else {
            String::new()
        };
        match (self.kind, path(self.graph)) {
            (PackageKind::Graph, None) => format!(
                "it is a package of tvmc whose graph, `mod.json`, is missing: without it no executor is made. Its functions are those of `{library}`; compile the model again.{link}"
            ),
            (PackageKind::Graph, Some(graph)) if self.library.is_none() => format!(
                "it is a package of tvmc whose library, `mod.so` or `mod.tar`, is missing: there is nothing in it to link or to load. With the library, `tvmspec run --graph {graph}{params} --lib LIB`."
            ),
            (PackageKind::Graph, Some(graph)) => {
                let load = match path(self.params) {
                    Some(params) => format!(" and `load_params` with the bytes of `{params}`"),
                    None => String::new(),
                };
                format!(
                    "it is a package of tvmc: a graph, its parameters and a library. `tvmc run` of 0.7 to 0.19 reads it, `load_module` does not, and its library has no function `default`. Unpack it, `tar -xf FILE`, then `tvmspec run --graph {graph}{params} --lib {library}`; or in Python `graph_executor.create(open(\"{graph}\").read(), tvm.runtime.load_module(\"{library}\"), tvm.cpu())`{load}.{link}"
                )
            }
            (PackageKind::VirtualMachine { is_relax: true }, _) => format!(
                "it is an archive with the library of a Relax VM, and `load_module` does not open it. Unpack it, `tar -xf FILE`, and load `{library}`: `relax.VirtualMachine(tvm.runtime.load_module(\"{library}\"), tvm.cpu())`, or `tvmspec run {library}`.{link}"
            ),
            (PackageKind::VirtualMachine { is_relax: false }, _) => format!(
                "it is a package of tvmc with a library of the Relay VM. `tvmc run` of 0.9 to 0.19 reads it, `load_module` does not. Unpack it, `tar -xf FILE`, and load `{library}`: `tvm.runtime.vm.VirtualMachine(tvm.runtime.load_module(\"{library}\"), tvm.cpu())`.{link}"
            ),
            (PackageKind::ModelLibrary, graph) => {
                let code = if library.ends_with("/lib") {
                    format!("link `{library}/*.o` into a library, `{command} -o {output}`")
                } else {
                    "compile `codegen/host/src/*.c` and link it into a library".to_owned()
                };
                let params = path(self.params).map_or(String::new(), |params| {
                    format!(" The parameters are in `{params}/`.")
                });
                let runs = match graph {
                    Some(graph) => format!("The graph is in `{graph}/`: `tvmspec run --graph GRAPH --params PARAMS --lib {output}`"),
                    None => "It has no graph: its model is a function of the code, whose name ends in `___tvm_main__`".to_owned(),
                };
                format!(
                    "it is in Model Library Format, which is for microTVM and for builds of other systems: no release loads it. Unpack it and {code}.{params} {runs}."
                )
            }
        }
    }
}

/// Removes the top folder of the archive from the name of a member.
fn strip_top_folder(name: &str) -> &str {
    name.strip_prefix("./").unwrap_or(name)
}
