//! The adapter `legacy:LIB[,LIB..][@RELEASE][#TARGET]`: a runtime with the C interface of 0.7 to 0.20. The first library exports
//! the interface; the others are loaded after it. `#TARGET` works as for `ffi:`. A runtime of 0.21, whose interface no other
//! release has, is also tested here, through functions of 0.20 that `Transition` builds on its own functions.
//!
//! | operation            | executed by                                                   | compared            |
//! |----------------------|---------------------------------------------------------------|---------------------|
//! | `blob.decode`        | loading a library around the bytes (layout 0.7)                | the view `kinds`    |
//! | `module.load`        | the same                                                      | the view `kinds`    |
//! | `import_tree.decode` | the same, with one module of ours for each row                 | the view `rows`     |
//! | `payload.decode`     | the same, with the payload as the only module                  | the view `kind`     |
//! | `module.import`      | `TVMModImport` on libraries with nothing in them               | the value           |
//! | `module.find`        | `TVMModGetFunction` on libraries of a few functions            | the view `found`    |
//! | `module.open`        | `TVMModLoadFromFile`, `TVMModGetFunction`, `TVMFuncCall`       | the view `opened`   |
//! | `module.symbols`     | the same, on a library of addresses of this process            | the view `function` |
//! | `module.life`        | the same, and the mapped libraries                             | the value           |
//! | `module.environment` | `TVMBackendGetFuncFromEnv`                                     | the value           |
//! | `module.system`      | `TVMBackendRegisterSystemLibSymbol`, `runtime.SystemLib`       | the view `entry`    |
//! | `module.constants`   | a payload beside a library of initialisers                     | the value           |
//! | `module.properties`  | `runtime.ModuleGetPropertyMask`                                | the value           |
//! | `module.launch`, `barrier`, `once`, `workspace` | `TVMBackend*` of the same name      | the value           |
//! | `tensor.decode`      | `runtime.LoadParams`                                           | `tensors`, `tensor` |
//! | `tensor.encode`      | `runtime.SaveParams`                                           | the bytes           |
//! | `tensor.dtype_parse` | making a tensor of the type                                    | the value           |
//! | `tensor.dtype_text`  | a call that returns the type                                     | the text            |
//! | `value.legacy`       | a call that returns its argument                               | the value           |
//! | `value.legacy_code`  | the code of a result, and the message about a wrong argument   | the value           |
//! | `function.legacy`    | its steps: `TVMFuncCall`, `TVMFuncRegisterGlobal` and so on     | the value           |
//! | `target.generate`    | `target.build.<kind>` of a compiler among the libraries          | all but the kind of a `#TARGET` |
//! | `graph.script`       | `tvm.graph_executor.create` and its variants, with our kernels | the value           |
//!
//! Loaders of these releases read a C++ stream, and a payload ends where its loader stops. A loader of this crate therefore cannot
//! replace one that the runtime lacks. A library that needs such a loader is *unsupported*, not rejected.
//!
//! The interface of 0.20 and before does not show its release. The functions that the runtime has and lacks narrow it down, see
//! `runtime_releases`. If they match no release, the runtime stands for all of 0.8 to 0.20, unless the user states its release.

mod calls;
pub(in crate::conformance) mod modules;
mod runtime_releases;
pub(in crate::conformance) mod tensors;

use super::builtin::BuiltinTestee;
use super::library;
use super::{Identity, Reply, Testee};
use crate::conformance::module::{backend, legacy};
use crate::conformance::op::{Handler, OpError, data};
use crate::conformance::runtime::Libraries;
use crate::conformance::runtime::legacy::LegacyApi;
use crate::conformance::runtime::legacy::transition::Transition;
use crate::conformance::target::driver;
use crate::release::Release;
use runtime_releases::RuntimeReleases;
use serde_json::Value;
use std::path::Path;

/// A foreign runtime.
pub(crate) struct Legacy {
    /// The names of its files.
    name: String,
    /// The releases that it may belong to.
    stands: RuntimeReleases,
    /// The functions of the runtime, by the names of the C header.
    api: &'static LegacyApi,
}

impl Legacy {
    /// Loads the libraries. Their paths are separated by commas, and the release of the runtime follows the last `@`.
    pub(crate) fn open(libraries: &str) -> Result<Legacy, String> {
        let (libraries, generator) = library::with_generator(libraries);
        let (libraries, release) = with_release(libraries)?;
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let libraries = library::open_all("legacy", &paths)?;
        let name = library::names(&paths, generator);
        let libraries = Libraries {
            name: name.clone(),
            libraries,
            generator: generator.map(str::to_owned),
        };
        if Transition::is_release_0_21(&libraries) {
            let lacks = || format!("{name} is not a runtime of 0.21: a function is missing");
            let runtime = Box::leak(Box::new(Transition::new(libraries).ok_or_else(lacks)?));
            return Ok(Legacy {
                stands: RuntimeReleases::TRANSITION,
                api: Box::leak(Box::new(LegacyApi::from_runtime(runtime)?)),
                name,
            });
        }
        let runtime = Box::leak(Box::new(libraries));
        let api: &'static LegacyApi = Box::leak(Box::new(LegacyApi::from_runtime(runtime)?));
        Ok(Legacy {
            stands: RuntimeReleases::detect(api, release)
                .map_err(|why| format!("{name}: {why}"))?,
            name,
            api,
        })
    }
}

impl Testee for Legacy {
    fn identity(&self) -> Identity {
        let releases = self.stands.releases();
        Identity {
            name: self.name.clone(),
            version: self.stands.to_string(),
            releases: releases.map(|release| release.to_string()).collect(),
            // Empty, because an operation without support is reported with its reason.
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let (api, stands) = (self.api, self.stands);
        let reply = match op {
            // The libraries that these operations create use the calling convention of 0.20.
            "module.find" | "module.open" | "module.symbols" | "module.life"
            | "module.environment" | "module.system" | "module.constants" | "target.generate"
                if stands == RuntimeReleases::TRANSITION =>
            {
                Err(unsupported(
                    "compiled functions of 0.21 are called otherwise",
                ))
            }
            "blob.decode" | "module.load" => modules::walk(api, args),
            "import_tree.decode" => modules::import_tree(api, args),
            "payload.decode" => modules::payload(api, args),
            "module.import" => modules::import(api, args),
            "module.find" => modules::find(api, args),
            "module.open" => legacy::open(api, args),
            "module.symbols" => legacy::symbols(api, args),
            "module.life" => legacy::life(api, args),
            "module.environment" => legacy::environment(api, args),
            "module.system" => legacy::system(api, args),
            "module.constants" => legacy::constants(api, args),
            // Masks differ from release to release, so only a runtime of a known release is judged.
            "module.properties" => stands
                .for_one_release(args.get("value").unwrap_or(&Value::Null))
                .and_then(|()| legacy::properties(api, args)),
            "module.launch" => backend::launch(api, args),
            "module.barrier" => backend::barrier(api, args),
            "module.once" => backend::once(api, args),
            "module.workspace" => backend::workspace(api, args),
            "tensor.decode" => tensors::decode(api, stands, args),
            "tensor.encode" => tensors::encode(api, stands, args),
            "tensor.dtype_parse" => tensors::dtype_parse(api, stands, args),
            "tensor.dtype_text" => tensors::dtype_text(api, stands, args),
            "target.generate" => driver::generate_before_0_21(api, args),
            "value.legacy" => calls::value(api, args),
            "value.legacy_code" => calls::code_of(api, stands, args),
            _ => match BuiltinTestee::op(op).map(|op| op.run) {
                Some(Handler::Legacy(drive)) => drive(api, args),
                _ => Err(unsupported(why_not(op))),
            },
        };
        reply.unwrap_or_else(|reply| reply)
    }
}

/// Splits the libraries from the release after the last of them. An `@` in the path of a file belongs to the path.
pub(super) fn with_release(libraries: &str) -> Result<(&str, Option<Release>), String> {
    let Some((before, named)) = libraries.rsplit_once('@') else {
        return Ok((libraries, None));
    };
    // A file whose name contains an `@` is used unchanged.
    let last = libraries.rsplit(',').next().unwrap_or_default();
    if named.contains(['/', ',']) || Path::new(last).is_file() {
        return Ok((libraries, None));
    }
    let release: Option<Release> = named.parse().ok();
    match release
        .filter(|release| (RuntimeReleases::FIRST..=RuntimeReleases::LAST).contains(release))
    {
        Some(release) => Ok((before, Some(release))),
        None => Err(format!(
            "legacy: `{named}` is not a release with this interface: there are {} to {}",
            RuntimeReleases::FIRST,
            RuntimeReleases::LAST
        )),
    }
}

/// Explains why this interface cannot execute an operation.
fn why_not(op: &str) -> String {
    if let Some(why) = library::why_not(op) {
        return why.to_owned();
    }
    match op {
        "module.call" => {
            "this interface passes the arguments to a compiled function unchanged".to_owned()
        }
        "module.script" => "the steps name functions of 0.22 on".to_owned(),
        _ if op.starts_with("graph.") => {
            "an executor does not show the graph that it read".to_owned()
        }
        _ => format!("`{op}` is not possible through the C interface of 0.20 and before"),
    }
}

/// Returns the bytes of a request.
fn bytes(args: &Value) -> Result<Vec<u8>, Reply> {
    data(args).map_err(|rejection| match rejection {
        OpError::Unsupported(why) => Reply::Unsupported(why),
        OpError::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
    })
}

/// Creates the reply for an operation that this interface cannot execute.
fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}
