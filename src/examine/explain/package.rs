//! Archives of several files of one model: the packages of tvmc, and Model Library Format. No loader of any release opens one.

use crate::blob::container::File;

/// A package, by the names of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Package<'a> {
    /// A graph, its parameters and this library, as tvmc of 0.7 to 0.19 writes them.
    TvmcGraph(&'a str),
    /// A library of the Relay VM alone, of this name, as tvmc of 0.9 to 0.19 writes it.
    TvmcVm(&'a str),
    /// Sources or objects with their metadata, as 0.8 to 0.18 write it for microTVM.
    ModelLibrary,
}

impl<'a> Package<'a> {
    /// What the archive is; `None` for any other file.
    pub(super) fn of(file: &'a File<'_>) -> Option<Package<'a>> {
        if !file.form.is_archive() {
            return None;
        }
        // The members of an inner archive have its name in front.
        let first = |name: &'a str| {
            let name = name.strip_prefix("./").unwrap_or(name);
            name.split_once('/').map_or(name, |(first, _)| first)
        };
        let names = || file.parts.iter().map(|part| first(&part.member));
        let has = |wanted: &str| names().any(|name| name == wanted);
        let named = |choices: [&'a str; 2]| choices.into_iter().find(|name| has(name));
        if has("metadata.json") && (has("codegen") || has("executor-config") || has("parameters")) {
            return Some(Package::ModelLibrary);
        }
        if let Some(library) = named(["mod.so", "mod.tar"])
            && (has("mod.json") || has("mod.params"))
        {
            return Some(Package::TvmcGraph(library));
        }
        let library = named(["lib.so", "lib.tar"])?;
        names()
            .all(|name| name == library)
            .then_some(Package::TvmcVm(library))
    }

    /// Why no release opens it, and what to do.
    pub(super) fn advice(&self) -> String {
        match self {
            Package::TvmcGraph(library) => format!(
                "it is a package of tvmc: a graph, its parameters and a library. `tvmc run` of 0.7 to 0.19 reads it, `load_module` does not, and its library has no function `default`. Unpack it, `tar -xf FILE`, then `tvmspec run --graph mod.json --params mod.params --lib {library}`; or in Python `graph_executor.create(open(\"mod.json\").read(), tvm.runtime.load_module(\"{library}\"), tvm.cpu())` and `load_params` with the bytes of `mod.params`.{}",
                unlinked(library)
            ),
            Package::TvmcVm(library) => format!(
                "it is a package of tvmc with a library of the Relay VM. `tvmc run` of 0.9 to 0.19 reads it, `load_module` does not. Unpack it, `tar -xf FILE`, and load `{library}`: `tvm.runtime.vm.VirtualMachine(tvm.runtime.load_module(\"{library}\"), tvm.cpu())`.{}",
                unlinked(library)
            ),
            Package::ModelLibrary => "it is in Model Library Format, which is for microTVM and for builds of other systems: no release loads it. Unpack it, compile `codegen/host/src/*.c` or link `codegen/host/lib/*.o` into a library; the parameters are in `parameters/`, the graph is in `executor-config/graph/`.".to_owned(),
        }
    }
}

/// What to do with a library that is an archive of objects itself.
fn unlinked(library: &str) -> &'static str {
    if library.ends_with(".tar") {
        " (Python links that archive itself; elsewhere link its members by `cc -shared` first.)"
    } else {
        ""
    }
}
