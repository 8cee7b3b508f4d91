//! `ffi:LIB[,LIB..]`: a runtime behind the tvm-ffi C interface (0.22 on). The first library exports it; the others, such
//! as `libtvm_runtime.so`, add to it.
//!
//! | operation               | asked by                                             | what is compared          |
//! |-------------------------|------------------------------------------------------|---------------------------|
//! | `blob.decode`           | loading a library around the bytes                   | the view `modules`        |
//! | `import_tree.decode`    | the same, with one small module for each row         | the view `rows`           |
//! | `payload.decode`        | `ffi.Module.load_from_bytes.<kind>` of the runtime   | the view `kind`           |
//! | `tensor.decode`         | `runtime.LoadParams`                                 | `tensors`, `tensor`       |
//! | `tensor.encode`         | `runtime.SaveParams`                                 | the bytes                 |
//! | `tensor.dtype_*`, `value.dtype` | `TVMFFIDataTypeFromString`, `TVMFFIDataTypeToString` | the value         |
//! | `value.cell`            | looking at a value that the runtime made             | the value                 |
//! | `value.convert`, `value.device` | a typed function that shows what it took the argument for | the value    |
//! | `value.own`             | `TVMFFIAnyViewToOwnedAny`                            | the value                 |
//! | `value.life`            | `TVMFFIObjectIncRef` and `DecRef` on an object of ours | the view `released`     |
//! | `value.types`           | `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`     | the value                 |
//! | `function.call`         | `TVMFFIFunctionCall` on callbacks                    | the value                 |
//! | `function.raw_call`     | the pointer in the function object                   | the value                 |
//! | `function.error`, `function.raised`, `function.registry` | the C functions for each            | the value                 |
//! | `object.layout`         | looking at the object                                | the value                 |
//! | `object.hash`           | the slot of a map in which a key stands              | the view `home`           |
//! | `object.dlpack`         | `TVMFFITensorFromDLPackVersioned`                    | the value                 |
//! | `object.walk`, `object.rewrite` | `ffi.StructuralWalk`, `ffi.StructuralMap` with callbacks of ours | the value |
//! | other `object.*`        | the functions `ffi.*` of the same name               | the value                 |
//! | `module.load`           | as `blob.decode`                                     | the view `kinds`          |
//! | `module.import`         | `ffi.ModuleImportModule` on system libraries         | the value                 |
//! | `module.find`           | `ffi.ModuleGetFunction` on system libraries          | the view `found`          |
//! | `module.system`         | the same                                             | the view `entry`          |
//! | `module.symbols`        | loading a library with these symbols                 | the view `function`       |
//! | `module.call`, `module.life`, `module.environment`, `module.constants` | loading libraries that lead back here | the value |
//! | `module.properties`     | `ffi.ModuleGetPropertyMask`                          | the value                 |
//! | `module.once`           | `TVMFFIHandleInitOnce`                               | the value                 |
//! | `module.launch`, `module.barrier`, `module.workspace` | `TVMBackend*` of the libraries behind the first | the value |
//! | `vm.run`                | `ffi.Module.load_from_file.relax.VMExecutable`       | the value                 |
//!
//! A loader of the runtime may know one kind and not another, and keeps what it read to itself. For `blob.decode` every
//! kind in printable ASCII therefore gets a loader of ours, which notes kind and payload and gives an empty module of the
//! runtime's own (a system library under a name that nobody else uses): what is judged is the container. A kind that is not
//! printable is left to the runtime. Refusals carry the runtime's message and neither kind, rule nor offset: the interface
//! does not tell them.

mod backend;
mod compiled;
mod lookup;
mod modules;

use super::builtin::Builtin;
use super::{Identity, Reply, Testee};
use super::{library, shell};
use crate::conformance::object::layout::home;
use crate::conformance::op::Run;
use crate::conformance::runtime::Libraries;
use crate::conformance::runtime::ffi::{api::Api, tensors, unsupported};
use crate::conformance::value::driver::life;
use crate::release::Release;
use serde_json::Value;
use std::path::Path;

/// A foreign runtime.
pub(crate) struct Ffi {
    api: &'static Api,
}

impl Ffi {
    /// Loads the libraries, given as paths between commas.
    ///
    /// # Errors
    ///
    /// Says which cannot be loaded, or what it lacks.
    pub(crate) fn open(libraries: &str) -> Result<Ffi, String> {
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let libraries = library::open_all("ffi", &paths)?;
        let name = library::names(&paths);
        let runtime = Box::leak(Box::new(Libraries { name, libraries }));
        let api = Box::leak(Box::new(Api::of(runtime)?));
        Ok(Ffi { api })
    }
}

impl Testee for Ffi {
    fn identity(&self) -> Identity {
        let [major, minor, patch] = self.api.version;
        Identity {
            name: self.api.runtime.name().to_owned(),
            version: format!("tvm-ffi {major}.{minor}.{patch}"),
            releases: releases(self.api.version)
                .iter()
                .map(Release::to_string)
                .collect(),
            // Not listed: what is not done is said with its reason.
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let api = self.api;
        let reply = match op {
            "blob.decode" => modules::blob(api, args),
            "import_tree.decode" => modules::import_tree(api, args),
            "payload.decode" => modules::payload(api, args),
            "tensor.decode" => tensors::decode(api, args),
            "tensor.encode" => tensors::encode(api, args),
            "tensor.dtype_parse" => tensors::dtype_parse(api, args),
            "tensor.dtype_text" => tensors::dtype_text(api, args),
            "value.life" => life(api, args),
            "object.hash" => home(api, args),
            "module.symbols" => compiled::symbols(api, args),
            "module.call" => compiled::call(api, args),
            "module.life" => compiled::life(api, args),
            "module.environment" => compiled::environment(api, args),
            "module.constants" => compiled::constants(api, args),
            "module.system" => lookup::system(api, args),
            "module.launch" => backend::launch(api, args),
            "module.barrier" => backend::barrier(api),
            "module.workspace" => backend::workspace(api, args),
            "module.once" => backend::once(api, args),
            "module.load" => modules::walk(api, args),
            "module.import" => lookup::import(api, args),
            "module.find" => lookup::find(api, args),
            "module.properties" => lookup::properties(api, args),
            _ => match Builtin::op(op).map(|op| op.run) {
                Some(Run::Driven(drive)) => drive(api, args),
                _ => Err(unsupported(why_not(op))),
            },
        };
        reply.unwrap_or_else(|reply| reply)
    }
}

/// The TVM releases that are built on this version of tvm-ffi, as the library tells it: packages 0.1.13 to 0.1.15 say one more
/// than their name.
fn releases([major, minor, patch]: [u32; 3]) -> Vec<Release> {
    let minors: &[u8] = match (major, minor, patch) {
        (0, 1, 0..8) => &[22],
        (0, 1, 8..11) => &[23],
        (0, 1, 11) => &[24],
        (0, 1, 12) => &[25],
        _ => &[26, 27],
    };
    minors.iter().map(|minor| Release::of(*minor)).collect()
}

/// Why an operation cannot be asked through this interface.
fn why_not(op: &str) -> String {
    if let Some(why) = library::why_not(op) {
        return why.to_owned();
    }
    match op.split('.').next() {
        Some("graph") => "graph executors ended with 0.19".to_owned(),
        _ => format!("`{op}` has no way through the C interface of tvm-ffi"),
    }
}
