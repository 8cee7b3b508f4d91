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

mod api;
mod backend;
mod calls;
mod compiled;
mod forms;
mod held;
mod layout;
mod lookup;
mod machines;
mod modules;
mod objects;
mod tensors;
mod values;
mod visits;

use super::{Identity, Rejection, Reply, Testee};
use super::{library, shell};
use crate::conformance::op::{Refusal, data};
use crate::release::Release;
use api::Api;
use held::Raised;
use serde_json::Value;
use std::ffi::CString;
use std::path::Path;

/// A foreign runtime.
pub(crate) struct Ffi {
    api: &'static Api,
    name: String,
}

impl Ffi {
    /// Loads the libraries, given as paths between commas.
    ///
    /// # Errors
    ///
    /// Says which cannot be loaded, or what it lacks.
    pub(crate) fn open(libraries: &str) -> Result<Ffi, String> {
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let api = Box::leak(Box::new(Api::open(&paths)?));
        Ok(Ffi {
            api,
            name: library::names(&paths),
        })
    }
}

impl Testee for Ffi {
    fn identity(&self) -> Identity {
        let [major, minor, patch] = self.api.version;
        Identity {
            name: self.name.clone(),
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
        let reply = match op {
            "blob.decode" => modules::blob(self.api, args),
            "import_tree.decode" => modules::import_tree(self.api, args),
            "payload.decode" => modules::payload(self.api, args),
            "tensor.decode" => tensors::decode(self.api, args),
            "tensor.encode" => tensors::encode(self.api, args),
            "tensor.dtype_parse" => tensors::dtype_parse(self.api, args),
            "tensor.dtype_text" => tensors::dtype_text(self.api, args),
            "value.dtype" => values::dtype(self.api, args),
            "value.cell" => values::cell(self.api, args),
            "value.convert" => values::convert(self.api, args),
            "value.device" => values::device(self.api, args),
            "value.own" => values::own(self.api, args),
            "value.life" => values::life(self.api, args),
            "value.types" => values::types(self.api, args),
            "function.call" => calls::call(self.api, args),
            "function.raw_call" => calls::raw_call(self.api, args),
            "function.error" => calls::error(self.api, args),
            "function.raised" => calls::raised(self.api, args),
            "function.registry" => calls::registry(self.api, args),
            "object.walk" => visits::walk(self.api, args),
            "object.rewrite" => visits::rewrite(self.api, args),
            "object.hash" => layout::home(self.api, args),
            "object.layout" => layout::layout(self.api, args),
            "object.dlpack" => tensors::dlpack(self.api, args),
            "object.repr"
            | "object.hooked"
            | "object.recursive_hash"
            | "object.structural_hash"
            | "object.recursive_equal"
            | "object.structural_equal"
            | "object.recursive_compare"
            | "object.element"
            | "object.equal"
            | "object.dict"
            | "object.make"
            | "object.json_parse"
            | "object.json_print"
            | "object.to_graph"
            | "object.from_graph" => objects::answer(self.api, op, args),
            "module.symbols" => compiled::symbols(self.api, args),
            "module.call" => compiled::call(self.api, args),
            "module.life" => compiled::life(self.api, args),
            "module.environment" => compiled::environment(self.api, args),
            "module.constants" => compiled::constants(self.api, args),
            "module.system" => lookup::system(self.api, args),
            "module.launch" => backend::launch(self.api, args),
            "module.barrier" => backend::barrier(self.api),
            "module.workspace" => backend::workspace(self.api, args),
            "module.once" => backend::once(self.api, args),
            "module.load" => modules::walk(self.api, args),
            "module.import" => lookup::import(self.api, args),
            "module.find" => lookup::find(self.api, args),
            "module.properties" => lookup::properties(self.api, args),
            "vm.run" => machines::run(self.api, args),
            _ => Err(unsupported(why_not(op))),
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

fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}

/// An answer that is the whole value.
fn told(value: Value) -> Result<Reply, Reply> {
    Ok(Reply::Ok {
        value,
        findings: None,
    })
}

/// An answer that is the part of the value which `view` names.
fn seen(view: &str, value: Value) -> Result<Reply, Reply> {
    Ok(Reply::Seen {
        view: view.to_owned(),
        value,
    })
}

/// For a C function; what is behind a zero byte is lost.
fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The bytes of a request.
fn bytes(args: &Value) -> Result<Vec<u8>, Reply> {
    data(args).map_err(|refusal| match refusal {
        Refusal::Unsupported(why) => Reply::Unsupported(why),
        Refusal::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
    })
}

impl From<Raised> for Reply {
    fn from(raised: Raised) -> Reply {
        if raised.kind == "Missing" {
            return Reply::Unsupported(raised.message);
        }
        Reply::Reject(Rejection {
            message: raised.to_string(),
            ..Rejection::default()
        })
    }
}
