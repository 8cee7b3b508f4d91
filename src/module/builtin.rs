//! Global functions for modules.

use super::{Module, property};
use crate::function::{Error, ErrorKind, Function, TypedFn, registry};
use crate::module;
use crate::object::{ArrayOf, def, def_packed};
use crate::value::{Any, AnyView, Str, cast};
use std::sync::{Mutex, PoisonError};

/// Modules that live as long as the process.
static PINNED: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// Registers the functions by which frontends use modules: those of tvm-ffi, and the names of 0.20 and before.
pub(crate) fn register() {
    register_old_names();
    def("ffi.ModuleLoadFromFile", |path: &str| load(path, ""));
    def(
        "ffi.ModuleImplementsFunction",
        |module: &Module, name: &str, deep: bool| module.implements(name, deep),
    );
    def(
        "ffi.ModuleGetFunctionMetadata",
        |module: &Module, name: &str, deep: bool| module.metadata(name, deep),
    );
    def(
        "ffi.ModuleGetFunctionDoc",
        |module: &Module, name: &str, deep: bool| module.doc(name, deep),
    );
    def(
        "ffi.ModuleGetFunction",
        |module: &Module, name: &str, deep: bool| -> Result<Option<Function>, Error> {
            module.function(name, deep)
        },
    );
    def("ffi.ModuleGetPropertyMask", |module: &Module| {
        i64::from(module.property_mask())
    });
    def(
        "ffi.ModuleInspectSource",
        |module: &Module, format: &str| module.source(format),
    );
    def("ffi.ModuleGetKind", |module: &Module| module.kind());
    def(
        "ffi.ModuleImportModule",
        |module: &Module, other: Module| module.import(other),
    );
    def("ffi.ModuleClearImports", |module: &Module| {
        module.clear_imports()
    });
    def("ffi.ModuleGlobalsAdd", |module: Module| {
        let mut pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
        // A module is added only once, as in the releases, so that removing it once is enough.
        if !pinned.contains(&module) {
            pinned.push(module);
        }
    });
    def("ffi.ModuleGlobalsRemove", |module: &Module| {
        let mut pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pinned.iter().position(|known| known == module);
        let gone = found.map(|at| pinned.swap_remove(at));
        drop(pinned);
        // Dropped after the lock is released, because this may free the module.
        drop(gone);
    });
    def_packed("ffi.SystemLib", system_library);
    def(
        "ffi.Module.load_from_file.so",
        // SAFETY: as in `load`.
        |path: &str, _format: &str| unsafe { module::load_shared(path) },
    );
    def("ffi.ModuleGetWriteFormats", |module: &Module| {
        let formats = module.write_formats()?;
        let formats = formats.into_iter().map(Any::from).collect();
        Ok::<_, Error>(ArrayOf::<Str>::new(formats))
    });
    def(
        "ffi.ModuleWriteToFile",
        |module: &Module, path: &str, format: &str| module.write_to_file(path, format),
    );
}

fn load(path: &str, format: &str) -> Result<Module, Error> {
    // SAFETY: only `registry::lookup_raw` finds the functions that call this, and its caller keeps the contract of `module::load` for the
    // library.
    unsafe { module::load_as(path, format) }
}

/// Returns the system library of a prefix, which is optional.
fn system_library(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let prefix = match args {
        [] => String::new(),
        // As in releases, arguments after the prefix are ignored.
        [prefix, ..] => cast::<String>(*prefix)?,
    };
    Ok(Any::from(module::system_library(&prefix)?))
}

/// Registers the names under which frontends of 0.7 to 0.21 use modules (MOD-33). If the runtime of TVM 0.22 or later is loaded in the
/// same process, it registers some of them itself.
fn register_old_names() {
    provide("runtime.ModuleGetTypeKey", |module: &Module| module.kind());
    provide("runtime.ModuleImportsSize", |module: &Module| {
        i64::try_from(module.imports().len()).unwrap_or(i64::MAX)
    });
    provide("runtime.ModuleGetImport", |module: &Module, at: i64| {
        let imports = module.imports();
        let import = usize::try_from(at)
            .ok()
            .and_then(|at| imports.get(at).cloned());
        import.ok_or_else(|| {
            let message = format!("there is no import {at} of {}", imports.len());
            Error::new(ErrorKind::Index, message)
        })
    });
    provide("runtime.ModuleLoadFromFile", load);
    registry::provide("runtime.SystemLib", Function::from_packed(system_library));
    provide(
        "runtime.ModuleGetSource",
        |module: &Module, format: &str| module.source(format),
    );
    provide(
        "runtime.ModuleSaveToFile",
        |module: &Module, path: &str, format: &str| module.write_to_file(path, format),
    );
    provide("runtime.RuntimeEnabled", |target: &str| {
        let device = format!("device_api.{target}");
        target == "cpu" || registry::lookup(&device).is_some()
    });
    provide("runtime.ModuleGetFormat", |module: &Module| {
        let formats = module.write_formats()?;
        Ok::<_, Error>(formats.into_iter().next().unwrap_or_default())
    });
    provide(
        "runtime.ModuleImplementsFunction",
        |module: &Module, name: &str, deep: bool| module.implements(name, deep),
    );
    provide("runtime.ModuleIsDSOExportable", |module: &Module| {
        module.property_mask() & property::EXPORTABLE != 0
    });
    provide("runtime.ModuleGetPropertyMask", |module: &Module| {
        i64::from(module.property_mask())
    });
    provide(
        "runtime.ModuleGetFunction",
        |module: &Module, name: &str, deep: bool| module.function(name, deep),
    );
    provide("runtime.ModuleClearImports", |module: &Module| {
        module.clear_imports()
    });
    provide("runtime.ModuleImport", |module: &Module, other: Module| {
        module.import(other)
    });
}

/// Registers a function that yields to any other function of its name (FUN-11).
fn provide<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) {
    registry::provide(name, Function::named(Some(name), body));
}
