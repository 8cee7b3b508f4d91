//! The adapter `ffi:LIB[,LIB..][#TARGET]`: a runtime with the tvm-ffi C interface (0.22 on). The first library exports the
//! interface, and the others, such as `libtvm_runtime.so`, add functions to it. With `#TARGET` the code generator of that target is
//! tested instead of that of the case's target. It gets the cases of `target.generate` that are for a host or a device, as it is.
//!
//! | operation               | executed by                                         | compared                  |
//! |-------------------------|------------------------------------------------------|---------------------------|
//! | `blob.decode`           | loading a library around the bytes                   | the view `modules`        |
//! | `import_tree.decode`    | the same, with one small module for each row         | the view `rows`           |
//! | `payload.decode`        | `ffi.Module.load_from_bytes.<kind>` of the runtime   | the view `kind`           |
//! | `tensor.decode`         | `runtime.LoadParams`                                 | `tensors`, `tensor`       |
//! | `tensor.encode`         | `runtime.SaveParams`                                 | the bytes                 |
//! | `tensor.dtype_*`, `value.dtype` | `TVMFFIDataTypeFromString`, `TVMFFIDataTypeToString` | the value         |
//! | `value.cell`            | reading a value that the runtime made                | the value                 |
//! | `value.convert`, `value.device` | a typed function that returns its converted argument | the value             |
//! | `value.own`             | `TVMFFIAnyViewToOwnedAny`                            | the value                 |
//! | `value.life`            | `TVMFFIObjectIncRef` and `DecRef` on an object of ours | the view `released`     |
//! | `value.types`           | `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`     | the value                 |
//! | `function.call`         | `TVMFFIFunctionCall` on callbacks                    | the value                 |
//! | `function.raw_call`     | the pointer in the function object                   | the value                 |
//! | `function.error`, `function.raised`, `function.registry` | the C functions for each            | the value                 |
//! | `function.script`       | its steps: functions of the registry and callbacks of ours | the value           |
//! | `object.layout`         | reading the object                                   | the value                 |
//! | `object.hash`           | the slot of a map in which a key stands              | the view `home`           |
//! | `object.dlpack`         | `TVMFFITensorFromDLPackVersioned`                    | the value                 |
//! | `object.walk`, `object.rewrite` | `ffi.StructuralWalk`, `ffi.StructuralMap` with callbacks of ours | the value |
//! | other `object.*`        | the functions `ffi.*` of the same name               | the value                 |
//! | `module.load`           | as `blob.decode`                                     | the view `kinds`          |
//! | `module.open`           | `ffi.ModuleLoadFromFile` on the library              | the view `opened`         |
//! | `module.import`         | `ffi.ModuleImportModule` on system libraries         | the value                 |
//! | `module.find`           | `ffi.ModuleGetFunction` on system libraries          | the view `found`          |
//! | `module.system`         | the same                                             | the view `entry`          |
//! | `module.symbols`        | loading a library with these symbols                 | the view `function`       |
//! | `module.call`, `module.life`, `module.environment`, `module.constants` | loading libraries that call back here | the value |
//! | `module.properties`     | `ffi.ModuleGetPropertyMask`                          | the value                 |
//! | `module.script`         | as `function.script`, beside a library in a file     | the value                 |
//! | `module.once`           | `TVMFFIHandleInitOnce`                               | the value                 |
//! | `module.launch`, `module.barrier`, `module.workspace` | `TVMBackend*` of the libraries after the first | the value |
//! | `target.generate`       | `target.build.<kind>` of a compiler among the libraries | all but the kind of a `#TARGET` |
//! | `target.options`        | `target.ListTargetKindOptionsFromName`               | the value                 |
//! | `vm.run`                | `ffi.Module.load_from_file.relax.VMExecutable`       | the value                 |
//!
//! A loader of the runtime knows only some kinds, and does not show the fields that it read. For `blob.decode`, every kind in
//! printable ASCII therefore gets a loader of this crate. It logs kind and payload, and returns an empty module of the runtime (a
//! system library with a unique name). Only the container is judged. A kind that is not printable is left to the runtime.
//! Rejections contain the runtime's message but no kind, rule or offset, because the interface has none of these.

use super::builtin::BuiltinTestee;
use super::library;
use super::{Identity, Reply, Testee};
use crate::conformance::op::Handler;
use crate::conformance::runtime::Libraries;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::release::Release;
use serde_json::Value;
use std::path::Path;

/// A foreign runtime.
pub(crate) struct Ffi {
    /// The functions of the runtime, by the names of the C headers.
    api: &'static FfiApi,
}

impl Ffi {
    /// Loads the libraries; their paths are separated by commas.
    pub(crate) fn open(libraries: &str) -> Result<Ffi, String> {
        let (libraries, generator) = library::with_generator(libraries);
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let libraries = library::open_all("ffi", &paths)?;
        let name = library::names(&paths, generator);
        let runtime = Box::leak(Box::new(Libraries {
            name,
            libraries,
            generator: generator.map(str::to_owned),
        }));
        let api = Box::leak(Box::new(FfiApi::from_runtime(runtime)?));
        Ok(Ffi { api })
    }
}

impl Testee for Ffi {
    fn identity(&self) -> Identity {
        let [major, minor, patch] = self.api.version;
        Identity {
            name: self.api.runtime.name().to_owned(),
            version: format!("tvm-ffi {major}.{minor}.{patch}"),
            releases: self.api.releases().iter().map(Release::to_string).collect(),
            // Empty, because an operation without support is reported with its reason.
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match BuiltinTestee::op(op).map(|op| op.run) {
            Some(Handler::Driven(drive) | Handler::Partly(_, drive) | Handler::Foreign(drive)) => {
                drive(self.api, args).unwrap_or_else(|early| early)
            }
            Some(Handler::Here(_) | Handler::Compiled(_) | Handler::Legacy(_)) | None => {
                Reply::Unsupported(why_not(op))
            }
        }
    }
}

/// Explains why this interface cannot execute an operation.
fn why_not(op: &str) -> String {
    if let Some(why) = library::why_not(op) {
        return why.to_owned();
    }
    match op.split('.').next() {
        Some("graph") => "graph executors ended with 0.19".to_owned(),
        _ => format!("`{op}` is not possible through the C interface of tvm-ffi"),
    }
}
